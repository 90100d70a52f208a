"""What is known of the questions besides their answers, on a cluster: vectors over the questions of a block.

Groups, covariates and, where they are a column, gold truths travel with the rows of the answers until blocks are made;
gold truths given by question travel with the function that makes them. A row without an answer may still tell what its
question has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.answers.build import NAMED
from trueup.engines.vectors import QuestionVectors
from trueup.errors import AnswersError, counted, quoted
from trueup.io.question_data.truths import refused, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.answers.scale import Scale
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.io.question_data.truths import Truths

#: The vectors of groups and truths; those of covariates are numbered.
GROUP, GOLD = "group", "gold"


class Told(NamedTuple):
    """What the rows of a block tell of its questions.

    Attributes
    ----------
    vectors : array
        A row for each name of the attributes.
    faults : dict
        How often something is wrong, and examples; see `Attributes.check`.
    found : array
        Places among the truths given by question of those that are here.
    """

    vectors: Floats
    faults: dict[str, Any]
    found: Ints


class Attributes(NamedTuple):
    """What is known of the questions.

    Attributes
    ----------
    groups : str or None
        Column with labels.
    covariates : tuple of str
        Columns with numbers.
    gold : str or None
        Column with truths.
    labels : pyarrow array or None
        The labels of all groups: a question has the number of its own, -1 without one.
    truths : Truths or None
        Truths by question.
    """

    groups: str | None = None
    covariates: tuple[str, ...] = ()
    gold: str | None = None
    labels: Any = None
    truths: Truths | None = None

    @property
    def columns(self) -> dict[str, str]:
        """The vectors that come with the rows, and the column of each."""
        columns = {} if self.groups is None else {GROUP: self.groups}
        columns |= {f"covariate-{k}": name for k, name in enumerate(self.covariates)}
        return columns if self.gold is None else {**columns, GOLD: self.gold}

    @property
    def names(self) -> tuple[str, ...]:
        """All vectors."""
        return (*self.columns, *([] if self.truths is None else [GOLD]))

    @property
    def question_vectors(self) -> QuestionVectors:
        """What a second step is told that there is."""
        return QuestionVectors(self.groups is not None, len(self.covariates))

    def read(self, rows: Any, starts: Ints, told: Bools, ids: Any, scale: Scale) -> Told:
        """Read what the rows of a block tell.

        Parameters
        ----------
        rows : pyarrow table
            Ordered by question.
        starts : array
            First row of each question.
        told : array
            Whether a question has an answer; of others nothing is asked.
        ids : pyarrow array
            Those that have one.
        """
        vectors, faults, found = [], {}, np.zeros(0, dtype=np.int64)
        for name in self.columns:
            each = self._codes(rows[name]) if name == GROUP else rows[name].to_numpy()
            # Neither looks at NaN where there is a number.
            least, most = (pick.reduceat(each, starts)[told] for pick in (np.fmin, np.fmax))
            two = np.flatnonzero(least < most)
            if len(two):
                some = zip(_some(ids, two), least[two].tolist(), most[two].tolist(), strict=False)
                faults[f"two {name}"] = [len(two), [list(each) for each in some]]
            without = np.flatnonzero(np.isnan(least))
            if name not in (GROUP, GOLD) and len(without):
                faults[f"no {name}"] = [len(without), _some(ids, without)]
            if name == GROUP:
                least = np.where(np.isnan(least), -1.0, least)
            if name == GOLD:
                bad, rule = unfit(least, scale)
                if bad.any():
                    first = [*_some(ids, np.flatnonzero(bad)[:1]), float(least[bad][0]), rule]
                    faults["truths"] = [int(bad.sum()), [first]]
                least = scale.forward(np.where(bad, np.nan, least))
            vectors.append(least)
        if self.truths is not None:
            places = self.truths.find(ids)
            found = places[places >= 0]
            vectors.append(self.truths.at(places))
        return Told(np.array(vectors).reshape(-1, len(ids)), faults, found)

    def _codes(self, labels: Any) -> Floats:
        """Return the number of the label of each row, NaN where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        codes = pc.index_in(labels, value_set=self.labels.cast(labels.type))
        found: Floats = codes.cast(pa.float64()).to_numpy()
        return found

    def check(self, faults: Mapping[str, tuple[int, list[Any]]]) -> None:
        """Refuse what contradicts itself, is missing or cannot be used."""
        for name, column in self.columns.items():
            if f"two {name}" in faults:
                question, *two = _first(faults[f"two {name}"][1])
                what, argument = f"values of {quoted(column)}", GOLD
                if name == GROUP:
                    what, argument = "labels", "groups"
                    two = [self.labels[int(each)].as_py() for each in two]
                elif name != GOLD:
                    argument = "covariates"
                raise AnswersError(
                    f"{argument}: question {quoted(question)} has two {what}, {quoted(two[0])} and {quoted(two[1])}. "
                    "Give one per question."
                )
            if f"no {name}" in faults:
                count, some = faults[f"no {name}"]
                first = quoted(_first([[each] for each in some])[0])
                raise AnswersError(
                    f"covariates: {counted(count, 'question')} without a value of {quoted(column)}, first {first}. "
                    "Every question needs one: fill it in, or leave out this covariate."
                )
        if "truths" in faults:
            raise refused(*_first(faults["truths"][1]))


def _some(ids: Any, at: Ints) -> list[Any]:
    """Return the first of these questions as they can be written down."""
    return [plain(ids[int(each)].as_py()) for each in at[:NAMED]]


def plain(value: Any) -> Any:
    """Return an id as JSON has it."""
    return value if isinstance(value, str | int | float) else str(value)


def _first(some: list[Any]) -> Any:
    """Return the one whose question comes first; ids of a column are of one kind."""
    return min(some, key=lambda each: each[0])
