"""Suspicious answers: single ones far from what others answered to the same question, with what would fit instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.errors import counted
from trueup.findings.answers import NEXT
from trueup.report.markup import Name
from trueup.report.names import shown
from trueup.report.page import PageTable, Section
from trueup.report.sections.report_data import WHOLE, ReportData, brief
from trueup.report.sections.worker_rows import isolated

if TYPE_CHECKING:
    from trueup.findings.answers import OddAnswers
    from trueup.io.table import Ids

TITLE = "Suspicious answers"
MOST_ROWS = 500


def suspicious_section(data: ReportData) -> Section | None:
    """Write the section; None where no question has three answers."""
    odd = data.odd_answers
    if odd is None:
        return None
    if len(odd) == 0:
        return Section(TITLE, text=odd.summary)
    text = (
        f"{odd.summary.rstrip(':')}. They may be typing errors, wrong units, or right after all. {NEXT} Workers are "
        "judged without them."
    )
    count = min(len(odd), MOST_ROWS)
    rows = [
        (
            _cell(odd.question_ids, number),
            _cell(odd.worker_ids, number),
            float(odd.answer[number]),
            float(odd.expected[number]),
            float(odd.lower[number]),
            float(odd.upper[number]),
            odd.hint[number] or "",
        )
        for number in range(count)
    ]
    note = f"Others suggest, from, to: what would fit, and its {data.percent} interval."
    if count < len(odd):
        note = f"The {count:,} most suspicious of {len(odd):,}. {note}"
    columns = ["question", "worker", "answer", "others suggest", "from", "to", "perhaps"]
    table = PageTable(
        counted(len(odd), "suspicious answer"), columns, rows, "a suspicious answer", note
    )
    return Section(TITLE, text=text, tables=[table])


def entries_of(odd: OddAnswers, most: int) -> list[tuple[Name | str, str]]:
    """Return the most suspicious answers as entries of a list: the question, and words on the answer."""
    entries: list[tuple[Name | str, str]] = []
    for number in range(min(len(odd), most)):
        worker = isolated(odd.worker_ids.name(number))
        answer, expected = brief(odd.answer[number]), brief(odd.expected[number])
        text = f"worker {worker} answered {answer}; the others suggest about {expected}"
        hint = odd.hint[number]
        text = text if hint is None else f"{text} ({hint})"
        entries.append((_cell(odd.question_ids, number), text))
    return entries


def _cell(ids: Ids, number: int) -> Name:
    name = ids.name(number)
    return Name(shown(name), shown(name, WHOLE))
