"""Ranking: what `trueup.rank` returns, systems compared by a panel of judges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.parameters import number
from trueup.io.frames_out import make_frame
from trueup.ranking.gate import Gate, decide
from trueup.ranking.improvements import Improvement, improvements
from trueup.ranking.judges import Favours, favours
from trueup.ranking.text import described

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from trueup.io.columns import IdNames
    from trueup.io.table import Ids
    from trueup.ranking.components import Components
    from trueup.ranking.judges import JudgeWeights
    from trueup.ranking.standings import Standings

#: Columns that may be unknown.
UNKNOWN = (
    "estimate", "difference", "lower", "upper", "std_error", "p_value", "adjusted_p", "weight", "variance", "bias",
    "favours", "favours_std_error", "cost",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Systems compared by a panel of judges.

    Attributes
    ----------
    standings : Standings
        The arithmetic.
    system_ids, judge_ids : Ids
        Names of systems and judges.
    weights : JudgeWeights
        How much each judge counts.
    notes : tuple of str
        What was dropped or averaged when reading.
    kind : str
        Kind of frame of the tables.
    names : IdNames
        What the caller calls the judges.
    """

    standings: Standings
    system_ids: Ids
    judge_ids: Ids
    weights: JudgeWeights
    notes: tuple[str, ...]
    kind: str
    names: IdNames

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return self.standings.level

    @cached_property
    def system_names(self) -> list[object]:
        """Names of the systems, by number."""
        return self.system_ids.tolist()

    @cached_property
    def system_columns(self) -> dict[str, Any]:
        """The columns of `systems`."""
        standings, order = self.standings, self.standings.order
        means = [standings.means[s] for s in order.tolist()]
        low, high = standings.ranks
        ends = np.array([mean.interval for mean in means]).reshape(-1, 2)
        ranks: dict[str, Any] = {"rank_low": low[order], "rank_high": high[order]}
        if not standings.complete:
            ranks = {name: [None] * len(order) for name in ranks}
        return {
            "system": self.system_ids.take(order),
            "estimate": np.array([mean.value for mean in means]),
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "std_error": np.array([mean.std_error for mean in means]),
            **ranks,
            "n_items": np.array([mean.judged.items for mean in means]),
            "n_answers": standings.scores.counts[order],
            "basis": [mean.basis for mean in means],
        }

    @cached_property
    def difference_columns(self) -> dict[str, Any]:
        """The columns of `differences`."""
        standings = self.standings
        pairs = np.array(standings.pairs, dtype=np.int64).reshape(-1, 2)
        found = [standings.difference(*pair) for pair in standings.pairs]
        ends = np.array([each.interval for each in found]).reshape(-1, 2)
        return {
            "first": self.system_ids.take(pairs[:, 0]),
            "second": self.system_ids.take(pairs[:, 1]),
            "difference": np.array([each.value for each in found]),
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "std_error": np.array([each.std_error for each in found]),
            "p_value": standings.p_values,
            "adjusted_p": standings.adjusted,
            "verdict": list(standings.verdicts),
            "n_items": np.array([each.judged.items for each in found], dtype=np.int64),
            "basis": [each.basis for each in found],
        }

    @cached_property
    def judge_columns(self) -> dict[str, Any]:
        """The columns of `judges`."""
        judges, systems = len(self.judge_ids), len(self.system_ids)
        judge = np.repeat(np.arange(judges), systems)
        system = np.tile(self.standings.order, judges)
        effects = self.favours
        counts = np.bincount(self.standings.scores.judge, minlength=judges)
        return {
            "worker": self.judge_ids.take(judge),
            "weight": self.weights.each[judge],
            "variance": self.weights.variance[judge],
            "bias": self.weights.bias[judge],
            "n_answers": counts[judge],
            "system": self.system_ids.take(system),
            "favours": effects.effect[judge, system],
            "favours_std_error": effects.std_error[judge, system],
            "adjusted_p": effects.adjusted_p[judge, system],
            "stands_out": effects.named[judge, system],
        }

    @cached_property
    def favours(self) -> Favours:
        """How much each judge favours each system, as arrays."""
        return favours(self.standings.scores, self.level)

    @cached_property
    def systems(self) -> Any:
        """Frame with a row per system, the best first: estimate, interval, and the ranks that are possible.

        `lower` and `upper` are those of a single mean, not adjusted for the number of systems. `rank_low` is one more
        than the number of systems that are clearly better. `basis` says what a row rests on: "labels", "these judges"
        or "judges like these".
        """
        return self._frame(self.system_columns)

    @cached_property
    def differences(self) -> Any:
        """Frame with a row per pair of systems: difference of the first and the second, interval, p-values, verdict.

        `lower`, `upper` and `p_value` are those of a single comparison; `adjusted_p` is adjusted for all pairs by
        Holm's method, and the verdict about the first system ("better", "worse", "not clear", "cannot be compared")
        rests on it.
        """
        return self._frame(self.difference_columns)

    @cached_property
    def judges(self) -> Any:
        """Frame with a row per judge and system: weight, noise and bias of the judge, and how it favours the system."""
        return self._frame(self.judge_columns)

    @property
    def components(self) -> Components:
        """Variances of a score by where they come from."""
        return self.standings.components

    def plan(
        self,
        items: float | None = None,
        judges: float | None = None,
        runs: float | None = None,
        *,
        cost_item: float | None = None,
        cost_answer: float | None = None,
    ) -> Any:
        """Predict the standard error of a difference of two systems for other numbers of items, judges and runs.

        Parameters
        ----------
        items, judges, runs : number, optional
            Where one is given, the others stay as they are, and the result is a number. Judges are equal and
            independent ones.
        cost_item, cost_answer : float, optional
            Price of an item and of one score, for a column of costs.

        Returns
        -------
        float or frame
            NaN where the scores do not tell. Without numbers, a frame of a few ways to go on, in which `half_width` is
            half the width of the interval.
        """
        now = {"items": items, "judges": judges, "runs": runs}
        if any(value is not None for value in now.values()):
            for name, value in now.items():
                if value is not None:
                    number(name, value, 1.0)
            standings = self.standings
            size = items or standings.typical_items
            if not size:
                return float("nan")
            return float(
                np.sqrt(
                    self.components.variance(
                        size,
                        judges or max(standings.scores.effective_judges, 1.0),
                        runs or standings.runs,
                    )
                )
            )
        return self._frame(self._plan_columns(self.improvements(cost_item, cost_answer)))

    def improvements(
        self, cost_item: float | None = None, cost_answer: float | None = None
    ) -> list[Improvement]:
        """Return a few ways to go on; the first is to leave all as it is."""
        for name, price in (("cost_item", cost_item), ("cost_answer", cost_answer)):
            if price is not None:
                number(name, price)
        return improvements(self.standings, cost_item, cost_answer)

    @staticmethod
    def _plan_columns(ways: list[Improvement]) -> dict[str, Any]:
        return {
            "change": [way.change for way in ways],
            "items": np.array([way.items for way in ways], dtype=float),
            "judges": np.array([way.judges for way in ways], dtype=float),
            "runs": np.array([way.runs for way in ways], dtype=float),
            "std_error": np.array([way.std_error for way in ways], dtype=float),
            "half_width": np.array([way.half_width for way in ways], dtype=float),
            "cost": np.array([way.cost for way in ways], dtype=float),
        }

    def gate(self, baseline: object, margin: float = 0.0, fail_if: str = "worse") -> Gate:
        """Decide whether some system is clearly worse than a baseline, or is not clearly better.

        Parameters
        ----------
        baseline : object
            The system that the others are compared with.
        margin : float
            How much worse, or better, counts.
        fail_if : {"worse", "not-better"}
            Fail if some system is clearly worse than the baseline by more than the margin, or if some system is not
            clearly better by more than the margin.
        """
        return decide(self.standings, self.system_names, baseline, margin, fail_if)

    def report(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write a page for people: one HTML file that works offline.

        A page of trueup there already is replaced, any other file only with `force=True`.
        """
        from trueup.report.ranking_page import write_ranking

        return write_ranking(self, path, force=force)

    def plot(self) -> Any:
        """Return the systems with their intervals as an altair chart."""
        from trueup.report.ranking_page import plot_ranking

        return plot_ranking(self)

    def _frame(self, columns: dict[str, Any]) -> Any:
        return make_frame(self.kind, columns, null_columns=UNKNOWN, names=self.names)

    def __str__(self) -> str:
        return "\n".join(described(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from trueup.report.ranking_card import ranking_card

        return ranking_card(self)
