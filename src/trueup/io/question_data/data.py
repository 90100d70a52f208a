"""What is known about the questions besides their answers: groups, covariates and gold truths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.errors import TrueupError
from trueup.io.plain_ids import joined

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.io.table import Ids


@dataclass(frozen=True, eq=False)
class Labels:
    """The group of each question.

    Attributes
    ----------
    codes
        Number of the label of each question, -1 where it has none.
    ids
        The labels, in the order in which the questions first have them.
    """

    codes: Ints
    ids: Ids


@dataclass(frozen=True, eq=False)
class Covariates:
    """Numbers known about every question.

    Attributes
    ----------
    values
        One row per question, one column per covariate, all finite.
    names
        Names of the columns.
    """

    values: Floats
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class QuestionData:
    """Groups, covariates and gold truths of all questions.

    Attributes
    ----------
    groups
        The group of each question, or None.
    covariates
        Numbers known about every question, or None.
    gold
        Known truths in the unit of the answers, NaN where unknown, or None.
    """

    groups: Labels | None = None
    covariates: Covariates | None = None
    gold: Floats | None = None

    def merged(self, new: QuestionData, n_questions: int, rows: Ints) -> QuestionData:
        """Merge with data about more questions; where both know something, the new data win.

        Parameters
        ----------
        new
            Groups and gold of all questions, covariates of the questions of the new answers.
        n_questions
            Number of questions, old ones first.
        rows
            For each row of the new covariates, the number of its question among all.
        """
        gold = self.gold
        if gold is not None:
            gold = np.append(gold, np.full(n_questions - len(gold), np.nan))
        if new.gold is not None:
            gold = new.gold if gold is None else np.where(np.isnan(new.gold), gold, new.gold)
        return QuestionData(
            _merged_groups(self.groups, new.groups, n_questions),
            _merged_covariates(self.covariates, new.covariates, n_questions, rows),
            gold,
        )


def _merged_groups(old: Labels | None, new: Labels | None, n_questions: int) -> Labels | None:
    if old is None:
        return new
    codes = np.append(old.codes, np.full(n_questions - len(old.codes), -1))
    if new is None:
        return Labels(codes, old.ids)
    code_of_new, ids = joined(old.ids, new.ids, "groups")
    has = new.codes >= 0
    codes[has] = code_of_new[new.codes[has]]
    return Labels(codes, ids)


def _merged_covariates(
    old: Covariates | None, new: Covariates | None, n_questions: int, rows: Ints
) -> Covariates | None:
    needed = TrueupError("every question needs them, old and new.", argument="covariates")
    if old is None:
        if new is None:
            return None
        raise needed.advised("The state has none; estimate again from all answers.")
    if new is None:
        if n_questions == len(old.values):
            return old
        raise needed.advised("Give those of the new questions.")
    if len(new.names) != len(old.names):
        raise TrueupError(
            f"the state has {len(old.names)}, the new questions {len(new.names)}.",
            argument="covariates",
            remedy="Give the same ones.",
        )
    # By name where the names are the same, else by position.
    same = set(new.names) == set(old.names)
    order = [new.names.index(name) for name in old.names] if same else slice(None)
    values = np.empty((n_questions, len(old.names)))
    values[: len(old.values)] = old.values
    values[rows] = new.values[:, order]
    return Covariates(values, old.names)
