"""A data set: answers, and what is known about their questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Answers and, where known, the true values. The keys of all mappings are question ids.

    Attributes
    ----------
    name : str
    answers : Answers
    truth : mapping or None
        Known true values; None if there are none.
    blocks : mapping or None
        Block of each question; the same workers answered all questions of a block.
    labels : mapping or None
        Readable name of each question.
    description, source, citation : str
        What was asked, where the data come from, and what to cite.
    """

    name: str
    answers: Answers
    truth: Mapping[Any, float] | None = None
    blocks: Mapping[Any, str] | None = None
    labels: Mapping[Any, str] | None = None
    description: str = ""
    source: str = ""
    citation: str = ""

    @property
    def truth_array(self) -> Floats:
        """True values in the order of the questions of `answers`, NaN where unknown."""
        known = self.truth or {}
        return np.array([known.get(id_, np.nan) for id_ in self.answers.question_ids.tolist()])

    def __repr__(self) -> str:
        known = f"truth of {len(self.truth):,} questions" if self.truth else "no truth"
        return f"Dataset({self.name!r}, {self.answers!r}, {known})"
