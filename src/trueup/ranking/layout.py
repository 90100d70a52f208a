"""Which columns hold systems, items and runs, and what to say where they do not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import (
    AnswersError,
    Mention,
    Message,
    TrueupError,
    missing_column,
    nearest,
    option,
    options,
    quoted,
)
from trueup.io.columns import ITEM_NAMES, RUN_NAMES, SYSTEM_NAMES, plain_name
from trueup.io.question_data.tables import column_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Names people use for the columns of each role.
NAMES = {"item": ITEM_NAMES, "by": SYSTEM_NAMES, "run": RUN_NAMES}


class Layout(NamedTuple):
    """Where the systems and items are.

    Attributes
    ----------
    by, item
        Column of the systems and columns of the items, or mappings from question.
    columns
        The columns that name a question, the run last.
    run
        The column that numbers runs, if there is one.
    """

    by: Any
    item: Any
    columns: Any
    run: str | None

    @classmethod
    def of(cls, scores: Any, by: Any, item: Any, run: str | None, question: Any) -> Layout:
        """Check the names of columns as far as that is possible before scores are read."""
        if by is None:
            raise TrueupError(
                "found None.", argument="by", remedy="Name the column of the systems."
            )
        if not isinstance(run, str | None):
            raise TrueupError(
                f"found {quoted(run)}.", argument="run", remedy="Name the column of the runs."
            )
        available = [str(name) for name in column_names(scores)]
        asked = question if item is None else item
        items = _several(asked, available)
        if item is None and items:
            items = tuple(name for name in items if not (isinstance(by, str) and name == by))
        for argument, names in (("by", (by,)), ("item", items), ("run", (run,))):
            for name in names:
                if isinstance(name, str) and available and name not in available:
                    raise missing_column(name, available, argument)
        plain = isinstance(by, str) and bool(items)
        if len(items) > 1 and not plain:
            raise TrueupError(
                f"found {len(items)} columns, and systems that are in none.",
                argument="item",
                remedy="Name one column, or the column of the systems.",
            )
        # What names no column is told where the scores are read.
        own = _several(question, available) or (question,)
        columns: list[Any] = [*items, by] if plain else list(own)
        if run is not None:
            columns = [*columns, run]
        texts = [name for name in columns if isinstance(name, str)]
        twice = [name for name in texts if texts.count(name) > 1]
        if twice:
            raise AnswersError(
                f"column {quoted(twice[0])} is asked for as two of item, system and run.",
                argument="by",
                remedy="Give each its own column.",
            )
        where = items if plain else items[0] if items else asked
        return cls(by, where, columns if len(columns) > 1 else columns[0], run)

    @property
    def names_question(self) -> bool:
        """Whether items and system together name a question."""
        return isinstance(self.by, str) and isinstance(self.item, tuple)

    @contextmanager
    def advice(self) -> Iterator[None]:
        """Let errors about columns advise the keywords of `rank`: the caller named no question."""
        try:
            yield
        except AnswersError as error:
            advised = self._advised(error) if self.names_question else None
            if advised is None:
                raise
            raise advised from error.__cause__

    def _advised(self, error: AnswersError) -> AnswersError | None:
        if error.runs:
            remedy = "Pass " + option("run", error.runs) + " to average them."
            return error.advised(remedy).mended_by({"run": error.runs})
        if any(name not in error.columns for name in self.columns) and error.columns:
            return self._renamed(error)
        further = next((mention.value for mention in _mentions(error, "question")), None)
        if not isinstance(further, list):
            return None
        apart = [name for name in further if name not in self.columns]
        if not apart:
            return None
        items = [*self.item, *apart]
        return error.advised(
            Message("Pass ", option("item", items), " if each of them is an item of its own, ")
            + option("where", f"{apart[0]}=...")
            + " for one of them, or "
            + option("duplicates", "mean-all")
            + " to average over them."
        ).mended_by({"item": items}, {"duplicates": "mean-all"})

    def _renamed(self, error: AnswersError) -> AnswersError:
        """Say which columns may be meant where some are not there."""
        there = error.columns
        others = {
            mention.name: mention.value
            for part in ("worker", "answer")
            for mention in _mentions(error, part)
        }
        used = [name for name in self.columns if name in there]
        used += [name for name in others.values() if name in there]
        likely: dict[str, Any] = {}
        unknown: list[str] = []
        roles: dict[str, tuple[Any, ...]] = {
            "item": self.item,
            "by": (self.by,),
            "run": (self.run,),
        }
        for role, names in roles.items():
            if all(name is None or name in there for name in names):
                continue
            found = []
            for name in names:
                each = name if name in there else _likely(name, role, there, used)
                found.append(each)
                used.append(each)
            if None in found:
                unknown.append(role)
            else:
                likely[role] = found if len(found) > 1 else found[0]
        known = {name: value for name, value in others.items() if value in there}
        unknown += [name for name in others if name not in known]
        remedies = []
        if likely or known:
            remedies.append("Did you mean " + options({**likely, **known}) + "?")
        if unknown:
            ways = Message(", ").join(option(name, "...") for name in unknown)
            what = "column that holds it: " if len(unknown) == 1 else "columns that hold them: "
            remedies.append(f"Name the {what}" + ways + ".")
        return error.advised(*remedies)


def _several(given: Any, available: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a text or a list names; none for anything else."""
    if isinstance(given, str):
        parts = tuple(part.strip() for part in given.split(","))
        return parts if given not in available and len(parts) > 1 and all(parts) else (given,)
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    return ()


def _mentions(error: AnswersError, name: str) -> list[Mention]:
    parts = getattr(error.remedy, "parts", ())
    return [part for part in parts if isinstance(part, Mention) and part.name == name]


def _likely(name: str, role: str, there: Sequence[Any], used: Sequence[Any]) -> Any:
    """Return the column that may be meant: one spelled alike, named like the role, or the only one with such a name."""
    free = [each for each in there if isinstance(each, str) and each not in used]
    alike = nearest(name, free)
    named = [each for each in free if plain_name(each) in NAMES[role]]
    exact = [each for each in named if plain_name(each) == role]
    likely = exact or named
    return alike or (likely[0] if len(likely) == 1 else None)
