"""An estimate in a notebook: a few lines and the first rows, as HTML without scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from trueup.pipeline.diagnosis import size_in_words
from trueup.report.markup import Name, table
from trueup.report.sections.report_data import ReportData
from trueup.result.text import interval_columns

if TYPE_CHECKING:
    from trueup.core.arrays import Floats
    from trueup.result.estimate import Estimate

SHOWN = 8
MORE = "Tables: est.questions and est.workers. Full report: est.report(&quot;report.html&quot;)."
# Colours are those of whatever shows it, light or dark.
STYLE = (
    ".trueup{font-size:13px;line-height:1.45;max-width:60em}"
    ".trueup p{margin:.2em 0}"
    ".trueup table{border-collapse:collapse;margin:.5em 0;font-size:inherit;color:inherit;"
    "font-variant-numeric:tabular-nums}"
    ".trueup th,.trueup td{padding:.15em .7em;text-align:left;font-weight:400;border:0;"
    "border-bottom:1px solid rgba(128,128,128,.35);background:none;color:inherit;white-space:nowrap}"
    ".trueup tbody th{max-width:30em;white-space:normal;overflow-wrap:anywhere}"
    ".trueup thead th{font-weight:600}"
    ".trueup .number{text-align:right}"
    ".trueup .faint{opacity:.7}"
    ".trueup .careful{border-left:3px solid #d55e00;padding-left:.6em}"
)


def card(est: Estimate) -> str:
    """Write the summary and the first questions."""
    data, about = ReportData(est), est.diagnosis
    lines = [
        size_in_words(data.problem),
        f"method {about.method}{f' ({about.why})' if about.why else ''}, shrink {about.shrink}",
        *(text for text in (about.pooling, about.second_step, about.target, about.gold) if text),
    ]
    first = np.arange(min(SHOWN, data.m))
    names = data.question_cells(first)
    intervals = {
        title: _intervals(data, getattr(est, low)[first], getattr(est, high)[first])
        for title, (low, high) in interval_columns(est).items()
    }
    columns = [data.problem.names.question_title, "estimate", *intervals, "answers"]
    counts = data.problem.counts[first].tolist()
    values = data.rounded(est.estimate[first])
    rows = list(zip(names, values, *intervals.values(), counts, strict=True))
    left = data.m - len(first)
    more = f"… and {left:,} more. " if left else ""
    return "\n".join(
        [
            f'<div class="trueup"><style>{STYLE}</style>',
            f"<p><b>{escape(lines[0])}</b></p>",
            *(f"<p>{escape(line)}</p>" for line in lines[1:]),
            *(f'<p class="careful">{escape(text)}</p>' for text in about.warnings),
            table(columns, rows),
            f'<p class="faint">{escape(more)}{MORE}</p></div>',
        ]
    )


def _intervals(data: ReportData, low: Floats, high: Floats) -> list[Name]:
    """Write intervals as cells."""
    return [
        Name(f"{start} to {end}" if np.isfinite(start.value) else "unknown")
        for start, end in zip(data.rounded(low), data.rounded(high), strict=True)
    ]
