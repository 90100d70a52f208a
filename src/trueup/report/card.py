"""An estimate in a notebook: a few lines and the first rows, as HTML without scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import counted
from trueup.report.markup import Name, table
from trueup.report.sections.context import Facts, named

if TYPE_CHECKING:
    from trueup.result.estimate import Estimate

SHOWN = 8
MORE = "est.questions and est.workers have the tables, est.report(&quot;report.html&quot;) all of it for people."
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
    facts = Facts(est)
    answers, said = est.answers, est.diagnosis
    lines = [
        f"{counted(answers.n_answers, 'answer')} of {counted(answers.n_workers, 'worker')} to "
        f"{counted(answers.n_questions, 'question')}"
        + (f" in {answers.n_panels:,} panels" if answers.n_panels > 1 else ""),
        f"method {said.method}{f' ({said.why})' if said.why else ''}, shrink {said.shrink}",
        *(text for text in (said.pooling, said.second_step, said.gold) if text),
    ]
    first = np.arange(min(SHOWN, facts.m))
    columns = ["question", "estimate", f"{facts.percent} interval", "answers"]
    rows: list[list[object]] = []
    ends = zip(facts.rounded(est.lower[first]), facts.rounded(est.upper[first]), strict=True)
    for name, value, (low, high), count in zip(
        named(facts.questions(first)),
        facts.rounded(est.estimate[first]),
        ends,
        answers.counts[first].tolist(),
        strict=True,
    ):
        interval = f"{low} to {high}" if np.isfinite(low.value) else "unknown"
        rows.append([name, value, Name(interval), count])
    left = facts.m - len(first)
    more = f"… and {left:,} more. " if left else ""
    return "\n".join(
        [
            f'<div class="trueup"><style>{STYLE}</style>',
            f"<p><b>{escape(lines[0])}</b></p>",
            *(f"<p>{escape(line)}</p>" for line in lines[1:]),
            *(f'<p class="careful">{escape(text)}</p>' for text in said.warnings),
            table(columns, rows),
            f'<p class="faint">{escape(more)}{MORE}</p></div>',
        ]
    )
