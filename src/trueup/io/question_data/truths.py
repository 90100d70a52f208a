"""Known truths of some questions, by their ids, for questions that are on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.libraries import need
from trueup.errors import AnswersError, TrueupError, counted, quoted
from trueup.io.readers.assemble import LARGEST_ANSWER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.answers.scale import Scale
    from trueup.core.arrays import Bools, Floats, Ints


class UntypedTruths(dict[Any, float]):
    """Truths from a text file, where "1" may mean a number as well as a text."""


class Truths(NamedTuple):
    """Known truths.

    Attributes
    ----------
    ids : pyarrow array
        The questions.
    values : array
        Their truths on the scale on which answers are combined, NaN where unknown.
    """

    ids: Any
    values: Floats

    @classmethod
    def read(cls, gold: Mapping[Any, float], kind: Any, scale: Scale) -> Truths:
        """Read a mapping from question to truth; `kind` is the type of the ids of the questions."""
        pyarrow = need("pyarrow", "files")
        try:
            names = list(gold)
            if isinstance(gold, UntypedTruths) and pyarrow.types.is_integer(kind):
                names = [_whole(name) for name in names]
            ids = pyarrow.array(names, type=kind)
            truth = np.array(list(gold.values()), dtype=np.float64)
        except (pyarrow.ArrowException, TypeError, ValueError):
            raise TrueupError(
                f"gold: its questions must be {kind} as those of the answers, and its truths numbers."
            ) from None
        bad, rule = unfit(truth, scale)
        if bad.any():
            at = int(np.argmax(bad))
            raise refused(ids[at].as_py(), float(truth[at]), rule)
        return cls(ids, scale.forward(truth))

    def find(self, ids: Any) -> Ints:
        """Return the place among the truths of each of these questions, -1 where its truth is not known."""
        compute = need("pyarrow.compute", "files")
        at = compute.index_in(ids, value_set=self.ids.cast(ids.type)).fill_null(-1).to_numpy()
        places: Ints = at.astype(np.int64)
        return places

    def at(self, places: Ints) -> Floats:
        """Return the truths at these places, NaN at -1."""
        return np.append(self.values, np.nan)[places]

    def check_found(self, found: Bools) -> None:
        """Refuse truths of questions that nobody answered."""
        if not found.all():
            missing = self.ids.take(np.flatnonzero(~found)[:1])[0].as_py()
            raise TrueupError(
                f"gold: {counted(int((~found).sum()), 'question')} of it are not in the answers, first "
                f"{quoted(missing)}."
            )


def unfit(truth: Floats, scale: Scale) -> tuple[Bools, str]:
    """Tell which truths are none that the answers could be near, and why the first kind of them is not."""
    bad = np.abs(truth) > LARGEST_ANSWER
    if bad.any():
        return bad, "it must be a finite number, or nothing where the truth is unknown"
    bad = ~np.isnan(truth) & scale.outside(truth)
    if bad.any():
        return bad, f"{scale.transform} needs truths {scale.domain}"
    if scale.bounds is not None:
        low, high = map(float, scale.bounds)
        bad = (truth < low) | (truth > high)
        return bad, f"the bounds are {low:g} and {high:g}"
    return bad, ""


def refused(question: object, truth: float, rule: str) -> AnswersError:
    """Say which truth is unfit."""
    return AnswersError(
        f"gold: question {quoted(question)} has the truth {truth:g}, but {rule}. "
        "Mend or remove it, or change transform= or bounds=."
    )


def _whole(text: object) -> object:
    """Return the whole number that a text writes in the plain way."""
    if not isinstance(text, str):
        return text
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number
