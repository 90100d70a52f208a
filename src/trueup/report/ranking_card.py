"""A ranking in a notebook: who leads, the systems, and what to know about them, as HTML without scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from trueup.ranking import text
from trueup.report.card import STYLE
from trueup.report.markup import Name, table
from trueup.report.names import distinct
from trueup.result.text import interval

if TYPE_CHECKING:
    from trueup.ranking.ranking import Ranking

SHOWN = 12
MORE = (
    "Tables: ranking.systems, ranking.differences, ranking.judges. "
    "Full report: ranking.report(&quot;ranking.html&quot;)."
)


def ranking_card(ranking: Ranking) -> str:
    """Write who leads, and the first systems."""
    standings = ranking.standings
    low, high = standings.ranks
    names = distinct(ranking.system_names)
    order = standings.order.tolist()
    rows = []
    for system in order[:SHOWN]:
        mean = standings.means[system]
        ranks = f"{low[system]} to {high[system]}" if low[system] < high[system] else low[system]
        rows.append(
            (
                Name(names[system]),
                "unknown" if np.isnan(mean.value) else float(f"{mean.value:.4g}"),
                Name(interval(*mean.interval)),
                Name(str(ranks) if standings.complete else "unknown"),
                mean.judged.items,
                int(standings.scores.counts[system]),
            )
        )
    columns = [
        "system",
        "estimate",
        f"{100 * ranking.level:g}% interval",
        "rank",
        "items",
        "scores",
    ]
    left = len(order) - len(rows)
    more = f"… and {left:,} more. " if left else ""
    first, *others = text.leaders(ranking)
    about = [
        *others, *text.both_intervals(ranking), *text.favoured(ranking), *text.additions(ranking),
        *text.meaning(ranking),
    ]  # fmt: skip
    return "\n".join(
        [
            f'<div class="trueup"><style>{STYLE}</style>',
            f"<p><b>{escape(first)}</b></p>",
            *(f'<p class="careful">{escape(line)}</p>' for line in text.disagreements(ranking)),
            f"<p>{escape(text.size(ranking))}</p>",
            *(f"<p>{escape(line)}</p>" for line in ranking.notes),
            f'<div style="overflow-x:auto">{table(columns, rows)}</div>',
            *(f"<p>{escape(line)}</p>" for line in about),
            f'<p class="faint">{escape(more)}{MORE}</p></div>',
        ]
    )
