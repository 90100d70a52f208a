"""Why a worker answered a question more than once: runs of one judge, or a column that tells the answers apart."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.faults import listed_answers, repeated_answers
from trueup.errors import AnswersError, Message, counted, listing, option, quoted
from trueup.io.encode import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.core.arrays import Ints
    from trueup.io.table import Table

#: Names of columns that number the runs of one judge, and of those that tell apart what is judged.
RUNS = re.compile(
    r"(?i)(run|epoch|repeat|repetition|replicate|trial|seed|round|attempt)s?([ _.-]?(id|no|nr|number|index))?"
)
SYSTEMS = re.compile(
    r"(?i)(system|model|variant|candidate|policy|condition|version|arm|prompt|aspect|criterion|dimension|metric|scale)s?"
    r"([ _.-]?(id|name))?"
)  # fmt: skip
#: Values up to which a column has few, and the chance up to which it does not tell answers apart by accident.
FEW, CHANCE = 20, 0.2
#: Columns that are looked at.
MOST_COLUMNS = 40


class Repeats(NamedTuple):
    """What tells repeated answers apart.

    Attributes
    ----------
    columns
        Columns of few values in which all answers of a worker to a question differ; none if they are runs.
    runs
        Whether these columns number runs.
    """

    columns: tuple[str, ...] = ()
    runs: bool = False


class _Column(NamedTuple):
    name: str
    codes: Ints
    size: int


def explain(question: Any, worker: Any, columns: Mapping[str, Any]) -> Repeats:
    """Find the columns in which repeated answers differ.

    Parameters
    ----------
    question, worker
        Codes of each answer.
    columns
        Other columns of the same rows.
    """
    pair = _codes(np.asarray(question, dtype=np.int64), np.asarray(worker, dtype=np.int64))
    again = np.bincount(pair)[pair] > 1
    pair = np.unique(pair[again], return_inverse=True)[1]
    runs: list[_Column] = []
    few: list[_Column] = []
    for name, series in list(columns.items())[:MOST_COLUMNS]:
        found = _column(name, series, again)
        if found is not None and isinstance(name, str):
            if RUNS.fullmatch(name.strip()):
                runs.append(found)
            elif 1 < found.size <= FEW and 2 * found.size <= len(again):
                few.append(found)
    for each in runs:
        if _tells_apart(pair, each):
            return Repeats((each.name,), runs=True)
        pair = _codes(pair, each.codes)
    left = np.bincount(pair)[pair] > 1
    pair = np.unique(pair[left], return_inverse=True)[1]
    few = [_Column(each.name, each.codes[left], each.size) for each in few]
    for each in few:
        if _tells_apart(pair, each) and (SYSTEMS.fullmatch(each.name) or _systematic(pair, each)):
            return Repeats((each.name,))
    for one, two in combinations(few, 2):
        both = _Column("", _codes(one.codes, two.codes), one.size * two.size)
        if both.size <= 2 * FEW and _tells_apart(pair, both) and _systematic(pair, both):
            return Repeats((one.name, two.name))
    return Repeats()


def _column(name: str, series: Any, rows: Any) -> _Column | None:
    """Return the codes of a column in the rows of repeated answers; None where it cannot be encoded."""
    try:
        codes, _, first = encode(series, column=name)
    except (AnswersError, TypeError, ValueError):
        return None
    return _Column(name, np.asarray(codes, dtype=np.int64)[rows] + 1, len(first))


def _codes(one: Ints, two: Ints) -> Ints:
    """Return a code for each pair of codes."""
    if not len(one):
        return one
    pairs: Ints = np.unique(one * (int(two.max()) + 1) + two, return_inverse=True)[1]
    return pairs


def _tells_apart(pair: Ints, column: _Column) -> bool:
    """Tell whether no two answers of a worker to a question have the same value."""
    return len(pair) > 0 and bool((np.bincount(_codes(pair, column.codes)) == 1).all())


def _systematic(pair: Ints, column: _Column) -> bool:
    """Tell whether values given at random would hardly tell all answers apart."""
    share = np.bincount(column.codes) / len(column.codes)
    alike = float((share**2).sum())
    sizes = np.bincount(pair)
    pairs = float((sizes * (sizes - 1) / 2).sum())
    return (1.0 - alike) ** pairs <= CHANCE if alike < 1.0 else False


def explain_table(table: Table) -> Repeats:
    """Find out why answers of a table repeat; columns that cannot be read explain nothing."""
    question, worker = (
        np.asarray(codes, dtype=np.int64) for codes in (table.question, table.worker)
    )
    if table.panel is not None:
        question = _codes(question, np.asarray(table.panel, dtype=np.int64))
    try:
        columns = table.others()
    except AnswersError:
        return Repeats()
    return explain(question, worker, columns)


def repeated_error(
    table: Table, count: int, positions: Ints, *, merging: bool
) -> AnswersError | None:
    """Build the error about repeated answers: all of them, or where merging, only those that must not be merged.

    Parameters
    ----------
    table
        The answers.
    count
        How many answers repeat another.
    positions
        Some of them.
    merging
        Whether the caller asked for their mean.
    """
    examples = listed_answers(
        table.worker_ids.tolist(table.worker[positions]),
        table.question_ids.tolist(table.question[positions]),
    )
    why = explain_table(table)
    if merging:
        return mixed_error(why, count, examples, table.names.question)
    if not why.columns:
        error = repeated_answers(count, f"first {examples}")
        return error.mended_by({"duplicates": "mean"})
    if why.runs:
        error = AnswersError(
            f"{_found(why, count, examples)}, which seems to number runs.",
            argument="duplicates",
            remedy="Pass " + option("duplicates", "mean") + " to average them.",
        )
        error.runs = why.columns[0]
        return error.mended_by({"duplicates": "mean"})
    return _apart(why, f"{_found(why, count, examples)}.", table.names.question)


def mixed_error(
    why: Repeats, count: int, examples: str, question: Sequence[str], among: str = ""
) -> AnswersError | None:
    """Build the error about repeated answers whose mean would mix what a column tells apart; None if there is none."""
    if why.runs or not why.columns:
        return None
    found = _found(why, count, examples, among)
    return _apart(why, f"{found}, and their mean would mix what is told apart there.", question)


def _found(why: Repeats, count: int, examples: str, among: str = "") -> str:
    noun = "column" if len(why.columns) == 1 else "columns"
    return (
        f"{counted(count, 'answer')}{among} repeat{'s' if count == 1 else ''} a worker on the same question, "
        f"first {examples}. They differ in {noun} {listing(why.columns, len(why.columns))}"
    )


def _apart(why: Repeats, found: str, question: Sequence[str]) -> AnswersError:
    keys = [*question, *why.columns]
    over = quoted(why.columns[0]) if len(why.columns) == 1 else "them"
    return AnswersError(
        found,
        argument="duplicates",
        remedy=Message("Pass ", option("question", keys))
        + " if each of them is a question of its own, or "
        + option("duplicates", "mean-all")
        + f" to average over {over}.",
    ).mended_by({"question": keys}, {"duplicates": "mean-all"})
