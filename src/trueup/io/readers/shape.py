"""Whether a table has one row per answer, or one row per question and a column per worker.

A table is taken for wide only where it cannot be long, and where both are possible that is an error that shows both.
What speaks for long: names that people use for workers and answers. What speaks for wide: a column of ids without
repetitions and three or more columns of numbers on one scale; names such as "rater 1", "rater 2"; columns that cannot
be ids since they hold fractions or gaps.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.errors import (
    MOST_NAMES,
    AnswersError,
    listing,
    option,
    options,
    quoted,
    warn,
)
from trueup.io.columns import KNOWN_NAMES, choose, guess, plain_name, question_columns, resolve
from trueup.io.encode import encode
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerReader, AnswerRules
from trueup.io.readers.assemble import read_long
from trueup.io.readers.evidence import (
    ID_NAMES,
    are_whole,
    is_no_header,
    is_text_of_ids,
    named_alike,
    named_like_questions,
    names_ids,
    on_one_scale,
    speaks_for_long,
)
from trueup.io.readers.no_workers import beside_workers, describes, is_unnamed
from trueup.io.readers.wide import Wide, check_wide, read_wide
from trueup.io.series import take, to_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.io.readers.source import Source
    from trueup.io.series import Series
    from trueup.io.table import Table

# Fewest columns of answers of a table that can be wide, and that number of a table that can hardly be long.
FEWEST, SEVERAL, MANY = 2, 3, 7
# Rows from which on it is no accident that one column alone never repeats.
ENOUGH = 10
# Columns that a message shows the first row of.
SHOWN = 4


def read_table(
    source: Source,
    *,
    question: Any,
    worker: str,
    answer: str,
    panel: str | None,
    numbers: Sequence[str],
    wide: bool | str | None,
    question_data: Sequence[str] = (),
    rules: AnswerRules = PLAIN_RULES,
) -> Table:
    """Read a table of any shape; columns of `question_data` say something about the questions, and are no workers."""
    if source.question and isinstance(question, str) and question == "question":
        question = list(source.question)
    asked = {"question": question, "worker": worker, "answer": answer}
    with source.named():
        shape = _asked_shape(wide)
        if source.question:
            shape = _long_shape(shape, source)
        view = _View(source, asked, panel, numbers, question_data, rules)
        layout, advice = None, Advice()
        if shape in ("question", "worker"):
            layout = view.layout(shape)
            check_wide(layout, source.names, numbers)
        elif shape is None:
            layout, advice = view.guessed()
    if layout is not None:
        table = read_wide(source, layout, view.columns if shape is None else None, rules)
        return _with_types(table, source)
    with source.named():
        try:
            roles = choose(
                source.names, **asked, panel=panel, numbers=numbers, is_number=view.may_be_number
            )
        except AnswersError as error:
            if source.hint:
                advice = Advice(source.hint, source.fixes)
            elif not advice.text:
                advice = _advice(source, view, error)
            error = error.advised(error.remedy, advice.text).mended_by(
                *(advice.fixes or error.fixes)
            )
            raise error from error.__cause__
    return _with_types(read_long(source, roles, rules), source)


def _with_types(table: Table, source: Source) -> Table:
    """Keep the types of the columns of ids that only their database has."""
    titles = (*table.names.question, table.names.worker)
    types = tuple((name, kind) for name, kind in source.sql_types.items() if name in titles)
    return replace(table, names=table.names._replace(sql_types=types)) if types else table


def _asked_shape(wide: Any) -> str | None:
    """Return what a row is: "question", "worker" or "answer"; None: that is to be found out."""
    if isinstance(wide, bool | np.bool_):
        return "question" if wide else "answer"
    if wide is None:
        return None
    if isinstance(wide, str) and wide in ("questions", "workers"):
        return wide.removesuffix("s")
    raise AnswersError(
        f'found {quoted(wide)}, must be True, False, "questions" (one row per question) '
        'or "workers" (one row per worker).',
        argument="wide",
    )


def _long_shape(shape: str | None, source: Source) -> str:
    """Return the shape of a format that has one row per answer."""
    if shape in ("question", "worker"):
        raise AnswersError(
            f"is for tables, and {source.label or 'this'} has one score after another.",
            argument="wide",
            remedy="Leave it out.",
        )
    return "answer"


class Advice(NamedTuple):
    """Another way to read a table, and keywords that read it so."""

    text: str = ""
    fixes: tuple[dict[str, Any], ...] = ()


def _advice(source: Source, view: _View, error: AnswersError) -> Advice:
    """Suggest another way to read the table."""
    if source.untyped and len(source.names) == 1:
        return Advice(
            "If another character is between the columns, pass " + option("sep", "...") + "."
        )
    resolved = view.resolved
    if source.joined and "worker" not in resolved.columns:
        parts = [part for part in ("question", "answer") if part not in resolved.columns]
        used = [name for names in resolved.columns.values() for name in names]
        roles = guess(source.names, parts, used, view.may_be_number)
        fix = {**roles, "worker_from": "file"}
        text = "If each file holds the answers of one worker, pass " + options(fix) + "."
        return Advice(text, (*error.fixes, fix)) if len(roles) == len(parts) else Advice()
    others = [name for name in source.names if name not in resolved.columns.get("worker", ())]
    if resolved.columns.keys() == {"worker"} and all(map(view.is_number, others)):
        wide = option("wide", "workers")
        return Advice(
            "To read one row per worker and one column per question, pass " + wide + ".",
            ({"wide": "workers"},),
        )
    if (
        source.untyped
        and not resolved.columns
        and any(re.fullmatch(r"[+-]?\d+(?:[.,]\d+)?", name) for name in source.names)
    ):
        return Advice(
            "If its first line is an answer and names no columns, write one above it that does."
        )
    return Advice()


class _View:
    """What the names and the values of a table say about its shape."""

    def __init__(
        self,
        source: Source,
        asked: dict[str, Any],
        panel: str | None,
        numbers: Sequence[str],
        question_data: Sequence[str],
        rules: AnswerRules,
    ) -> None:
        self.source, self.asked, self.panel, self.numbers = source, asked, panel, numbers
        # Whether a table is wide is decided by all it holds, also by what may be set aside later.
        self.rules = AnswerRules(rules.writing)
        # Columns with a role of their own.
        self.others = (panel, *question_data)
        self.resolved = resolve(
            source.names, asked, [*numbers, *([] if panel is None else [panel])]
        )

    @cached_property
    def columns(self) -> dict[str, Series]:
        """All columns; those that may hold ids as such."""
        names = [name for name in dict.fromkeys(self.source.names) if name != self.panel]
        extra = [name for name in (self.panel, self.source.index) if name is not None]
        ids = [*self._row_names, *extra]
        return self.source.fetch([*names, *(each for each in extra if each not in names)], ids)

    @property
    def _row_names(self) -> tuple[str, ...]:
        """The columns that may name the rows: that of the questions, or the first one."""
        first = tuple(name for name in self.source.names if name not in self.others)[:1]
        return self.resolved.columns.get("question", first)

    @cached_property
    def _cells(self) -> dict[str, NDArray[np.float64] | AnswersError]:
        found: dict[str, NDArray[np.float64] | AnswersError] = {}
        for name, series in self.columns.items():
            try:
                found[name] = AnswerReader(self.rules).read(series, name)
            except AnswersError as error:
                found[name] = error
        return found

    def is_number(self, name: str) -> bool:
        """Tell whether a column holds numbers only; True where that cannot be known."""
        if self.source.differs:
            return True
        try:
            return not isinstance(self._cells.get(name), AnswersError)
        except AnswersError:
            return True

    def may_be_number(self, name: str) -> bool:
        """Tell whether a column holds numbers, perhaps written in another way: "3,5", "172 cm"."""
        return self.is_number(name) or bool(getattr(self._cells.get(name), "notation", False))

    def _numbers(self, name: str) -> NDArray[np.float64]:
        values = self._cells[name]
        assert not isinstance(values, AnswersError)  # noqa: S101  asked of columns of numbers only
        return values

    def _is_complete(self, name: str) -> bool:
        codes, n, _ = encode(self.columns[name], column=str(name))
        return n > 0 and bool((codes >= 0).all())

    def _is_unique(self, name: str) -> bool:
        codes, n, _ = encode(self.columns[name], column=str(name))
        return bool((codes >= 0).all()) and n == len(codes)

    # -- a wide table --------------------------------------------------------------------------------

    def layout(self, rows: str) -> Wide:
        """Return how a table is laid out that the caller says is wide."""
        found, part = self.source.names, self.resolved.columns.get(rows, ())
        passed = rows if not isinstance(self.asked[rows], str) else self.asked[rows]
        if part or passed != rows:
            ids = part or question_columns(self.asked[rows], found)
        elif self._index_names_rows:
            ids = (str(self.source.index),)
        else:
            first = self._first_column
            ids = () if first is None or not self._holds_ids(first) else (first,)
        return self._wide(rows, ids)

    def _wide(self, rows: str, ids: tuple[str, ...]) -> Wide:
        cells = [name for name in self.source.names if name not in (*ids, *self.others)]
        if ids:
            cells = [name for name in cells if not (is_unnamed(name) and self._numbers_rows(name))]
        return Wide(rows, ids, self.panel, cells)

    def _numbers_rows(self, name: str) -> bool:
        """Tell whether a column without a name numbers the rows; an error if it holds something else."""
        if self.is_number(name):
            values = self._numbers(name)
            if are_whole(values) and self._is_unique(name) and np.ptp(values) == len(values) - 1:
                return True
        raise AnswersError(
            f"Column {quoted(name)}: has no name. Name it after whom its answers are from, or leave it out."
        )

    @property
    def _first_column(self) -> str | None:
        return next((name for name in self.source.names if name not in self.others), None)

    def _holds_ids(self, name: str) -> bool:
        """Tell whether a first column clearly holds ids and not answers."""
        if len(set(self.source.names)) < len(self.source.names) or self.source.differs:
            return False
        if names_ids(name):
            return True
        if not self.is_number(name):
            return is_text_of_ids(self._some(name))
        values = self._numbers(name)
        if not self._is_unique(name) or len(values) < SEVERAL or not are_whole(values):
            return False
        if np.ptp(values) == len(values) - 1:
            return True  # 1, 2, 3, ... in any order
        others = [
            self._numbers(each)
            for each in self.source.names
            if each not in (name, *self.others) and self.is_number(each)
        ]
        if len(values) >= ENOUGH and all(len(np.unique(each)) < len(each) for each in others):
            return True  # only this column never repeats
        known = np.concatenate(others) if others else np.empty(0)
        known = known[~np.isnan(known)]
        return bool(len(known)) and bool(values.min() > known.max() or values.max() < known.min())

    @property
    def _index_names_rows(self) -> bool:
        """Tell whether rows have labels, and not a first column that clearly is meant to name them."""
        first = self._first_column
        unnamed = self.source.index is not None and not self.source.index
        return self.source.index is not None and not (
            unnamed and first is not None and not self.is_number(first) and self._holds_ids(first)
        )

    def _counts_rows(self, name: str) -> bool:
        """Tell whether a column may count rows rather than name questions."""
        return self.is_number(name) and plain_name(name).replace(":", "") in {*ID_NAMES, "id"}

    def _may_hold_ids(self, name: str) -> bool:
        values = self._numbers(name)
        return len(values) >= SEVERAL and are_whole(values) and self._is_unique(name)

    def _some(self, name: str) -> list[object]:
        series = self.columns[name]
        return [v for v in to_list(take(series, np.arange(min(len(series), 100)))) if v is not None]

    # -- which of both -------------------------------------------------------------------------------

    def guessed(self) -> tuple[Wide | None, Advice]:
        """Return the layout of a table that can only be wide; else None, and what else to say if it is not long."""
        source, asked, columns = self.source, self.asked, self.resolved.columns
        names = source.names
        passed = asked["worker"] != "worker" or asked["answer"] != "answer" or bool(self.numbers)
        known = columns.keys() & {"worker", "answer"}
        if (
            passed
            or known
            or self.resolved.rivals.get("worker")
            or self.resolved.rivals.get("answer")
        ):
            return None, Advice()
        twice = any(count > 1 for count in Counter(names).values())
        if twice or source.differs or (self.panel is not None and self.panel not in names):
            return None, Advice()
        ids = columns.get("question", ())
        if any(name not in names for name in ids) or self.resolved.rivals.get("question"):
            return None, Advice()
        if not ids and self._index_names_rows:
            ids = (str(source.index),)
        cells = [name for name in names if name not in (*ids, *self.others)]
        first = cells[0] if cells and not ids else None
        others = cells[1:] if first is not None and speaks_for_long(first) else cells
        if is_no_header(cells, ids):
            return None, Advice()
        self._check_beside_workers(cells, ids)
        if len(cells) < FEWEST or any(map(speaks_for_long, others)):
            return None, Advice()
        text = [name for name in cells if not self.is_number(name)]
        if text == [first] and self._holds_ids(text[0]):
            ids, text = (text[0],), []
        elif first is not None and first not in text and self._holds_ids(first):
            ids = (first,)
        layout = self._wide("question", ids)
        if text:
            return None, self._not_numbers(layout, text)
        if len(layout.cells) < (FEWEST if ids else SEVERAL):
            return None, Advice()
        if ids and self.panel is None and not self._names_rows(ids):
            return None, Advice(
                f"It was not read as {layout}, since a {layout.rows} is in more than one row: pass "
                + options(self._choice(layout))
                + " if that is intended."
            )
        if any(map(speaks_for_long, layout.cells)):
            return None, Advice()
        if source.unnamed or ("question" not in columns and named_like_questions(layout.cells)):
            raise self._rows_or_columns(layout)
        alike = named_alike(layout.cells)
        if not ids and not alike and first is not None and self._may_hold_ids(first):
            raise self._both(self._wide("question", (first,)))
        if alike or not self._can_be_long(layout):
            if not ids:
                self._tell(layout)
            return layout, Advice()
        raise self._both(layout)

    def _check_beside_workers(self, cells: Sequence[str], ids: tuple[str, ...]) -> None:
        """Check that no other columns stand beside those that look like one per worker."""
        named = [name for name in cells if not is_unnamed(name)]
        text = [name for name in named if not self.is_number(name)]
        # A worker with a bad cell is none of the columns of words; where all its numbers are written in another way,
        # another message says so.
        damaged = [name for name in text if not self._is_text(name)]
        if any(map(self.may_be_number, damaged)):
            return
        text = [name for name in text if name not in damaged]
        odd = [
            name
            for name in named
            if name not in text and (speaks_for_long(name) or describes(name))
        ]
        workers = [name for name in named if name not in (*text, *odd)]
        unnamed = tuple(name for name in cells if is_unnamed(name))
        question = (*ids, *text) or unnamed[:1]
        plain = len(question) == 1 and (bool(ids) or question[0] == cells[0]) and not damaged
        if not question or (plain and not odd and {*unnamed} <= {*question}):
            return
        if named_like_questions(workers):
            return
        if len(workers) >= FEWEST and named_alike(workers) and self._names_rows(question):
            sure = named_alike(workers, strictly=True)
            raise beside_workers(workers, question, odd, damaged, sure=sure)

    def _is_text(self, name: str) -> bool:
        """Tell whether a column holds words, of which no value is a number or an error of a spreadsheet."""
        values = self._some(name)
        return is_text_of_ids(values) and not any(str(value).startswith("#") for value in values)

    def _names_rows(self, ids: tuple[str, ...]) -> bool:
        """Tell whether no two rows have the same id; those without one are an error later."""
        if len(ids) == 1:
            codes, n, _ = encode(self.columns[ids[0]], column=str(ids[0]))
            return n == np.count_nonzero(codes >= 0)
        keys = list(zip(*(to_list(self.columns[name]) for name in ids), strict=True))
        return len(set(keys)) == len(keys)

    def _can_be_long(self, layout: Wide) -> bool:
        """Tell whether the columns can be those of a table with one row per answer."""
        cells, ids = layout.cells, layout.ids
        if len(ids) > 1 or (ids and not self._is_complete(ids[0])):
            return False
        values = [self._numbers(name) for name in cells]
        # Row numbers say nothing: a table with one row per answer often has them, too.
        names_questions = bool(ids) and not self._counts_rows(ids[0])
        if sum(map(are_whole, values)) < (1 if names_questions else 2):
            return False  # besides the answers there must be columns of ids
        if names_questions and len(cells) == FEWEST and not are_whole(values[0]):
            return False
        return not on_one_scale(values) or len(cells) < (SEVERAL if names_questions else MANY)

    # -- what is said --------------------------------------------------------------------------------

    def _not_numbers(self, layout: Wide, text: Sequence[str]) -> Advice:
        errors = {
            name: error for name in text if isinstance(error := self._cells[name], AnswersError)
        }
        commas = [name for name, error in errors.items() if getattr(error, "notation", False)]
        words = [name for name in text if name not in commas]
        if len(layout.cells) - len(words) < FEWEST:
            return Advice()
        if not words:
            remedy = errors[commas[0]].remedy
            return Advice(
                f"It was not read as {layout}, for values in column {quoted(commas[0])}. " + remedy,
                errors[commas[0]].fixes,
            )
        text = words
        name = ", or " + option(layout.rows, text[0]) + f" if it names the {layout.rows}s"
        return Advice(
            f"It was not read as {layout}, since column {quoted(text[0])} does not hold numbers "
            "only: leave it out and pass "
            + option("wide", True)
            + ("" if layout.ids else name)
            + "."
        )

    def _rows_or_columns(self, layout: Wide) -> AnswersError:
        why = (
            "have no names"
            if self.source.unnamed
            else f"({listing(layout.cells, SHOWN)}) have names of questions"
        )
        return AnswersError(
            f"the columns {why}, and a row may be a question or a worker.",
            argument="wide",
            remedy="Pass "
            + option("wide", "workers")
            + " for one row per worker, or "
            + option("wide", "questions")
            + " for one row per question.",
        ).mended_by({"wide": "workers"}, {"wide": "questions"})

    def _tell(self, layout: Wide) -> None:
        right = option("wide", True) + " if that is right, " + option("wide", False) + " if not."
        label = f"{self.source.label}: " if self.source.label else ""
        warn(
            f"{label}read as {layout} ({listing(layout.cells, MOST_NAMES)}), as it has "
            "none of the columns question, worker and answer. Pass " + right
        )

    def _both(self, layout: Wide) -> AnswersError:
        """Show both ways to read a table with a row of it, and how to say which is right."""
        parts = [part for part in KNOWN_NAMES if part not in self.resolved.columns]
        used = [name for names in self.resolved.columns.values() for name in names]
        used += [name for name in self.others if name is not None]
        roles = guess(self.source.names, parts, used, self.is_number)
        if len(roles) < len(parts):
            roles = dict(zip(parts, layout.cells, strict=False))
        question = roles.get("question") or self.resolved.columns["question"][0]
        value = self._first_value
        as_long = (
            f"worker {value(roles['worker'])} answered {value(roles['answer'])} to question {value(question)} (pass "
            + options(roles)
            + ")"
        )
        row = value(layout.ids[0]) if layout.ids else "0"
        said = [f"{value(name)} by worker {quoted(name)}" for name in layout.cells[:SHOWN]]
        said += ["..."] if len(layout.cells) > SHOWN else []
        as_wide = f"question {row} was answered {', '.join(said)} (pass "
        as_wide += options(self._choice(layout)) + ")"
        return AnswersError(
            "a row may be one answer or all answers to a question. The first row says either that",
            remedy=as_long + ", or that " + as_wide + ".",
        ).mended_by(roles, self._choice(layout))

    def _choice(self, layout: Wide) -> dict[str, object]:
        """Return the keywords that ask for a layout."""
        if "question" in self.resolved.columns or layout.ids in ((), (self.source.index,), ("",)):
            return {"wide": True}
        return {"question": layout.ids[0], "wide": True}

    def _first_value(self, name: str) -> str:
        series = self.columns[name]
        values = to_list(take(series, np.arange(min(len(series), 1))))
        value = values[0] if values else None
        return quoted(value) if not isinstance(value, str) else quoted(value)[1:-1]
