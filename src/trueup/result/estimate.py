"""Estimate: what came out, with where it came from; one class, wherever the answers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueup.engines.memory import MemoryEngine
from trueup.errors import TrueupError
from trueup.findings.collection import Findings
from trueup.io.limits import memory
from trueup.io.rejects import Rejects
from trueup.result import tables
from trueup.result.text import account, first_questions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from pathlib import Path
    from typing import Self

    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Problem
    from trueup.io.question_data import Labels, QuestionData
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.diagnosis import Diagnosis
    from trueup.pipeline.pooling import Pooling
    from trueup.pipeline.shrunk import SecondStepResult
    from trueup.pipeline.solution import Solution
    from trueup.request import Plan, Request
    from trueup.variance.bias import Biases

#: Memory that an answer takes when it is brought from disk, and the share of all memory that may be used.
BYTES_AN_ANSWER, SHARE = 40, 0.6


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """The estimates of all questions and the findings on all workers.

    Attributes
    ----------
    request : Request
        What was asked for; `print(est.request.as_call())` shows a call that gives the same numbers.
    question_data : QuestionData
        Groups, covariates and known truths, as they were read.
    solution : Solution
        What both steps found.
    kind : str
        Library of the frames: that of the caller.
    path : Path or None
        The file with the estimates, where they were written on the way.
    worker_values : mapping or None
        Variance and bias of each worker, where they come from a saved state.
    """

    request: Request
    question_data: QuestionData
    solution: Solution
    kind: str
    path: Path | None = None
    worker_values: Mapping[str, Floats] | None = None

    # -- tables --------------------------------------------------------------------------------------

    @cached_property
    def questions(self) -> Any:
        """Frame with a row per question, in the order of first appearance."""
        return tables.question_frame(self, self.kind)

    @cached_property
    def workers(self) -> Any:
        """Frame with a row per worker, in the order of first appearance."""
        return tables.worker_frame(self, self.kind)

    @cached_property
    def worker_columns(self) -> dict[str, Any]:
        """The columns of `workers`."""
        return tables.worker_columns(self)

    @cached_property
    def partition(self) -> Any:
        """Frame with the parts a question belongs to and their probabilities; None where no partition was found."""
        return tables.partition_frame(self)

    @cached_property
    def findings(self) -> Findings:
        """What stands out about workers and questions; each part is computed once, when it is asked for."""
        kind = "pyarrow" if self.kind == "spark" else self.kind
        return Findings(self.solution, kind)

    # -- numbers -------------------------------------------------------------------------------------

    @property
    def estimate(self) -> Floats:
        """Estimate of each question, in answer units and in the order of `questions`."""
        return self.solution.column("estimate")

    @property
    def lower(self) -> Floats:
        """Lower end of the interval of each question, NaN where unknown."""
        return self.solution.column("lower")

    @property
    def upper(self) -> Floats:
        """Upper end of the interval of each question, NaN where unknown."""
        return self.solution.column("upper")

    @property
    def truth_lower(self) -> Floats:
        """Lower end of the interval for the truth of each question, NaN where unknown."""
        return self.solution.column("truth_lower")

    @property
    def truth_upper(self) -> Floats:
        """Upper end of the interval for the truth of each question, NaN where unknown."""
        return self.solution.column("truth_upper")

    @property
    def std_error(self) -> Floats:
        """Standard error of each question, NaN where unknown."""
        return self.solution.column("std_error")

    @property
    def base(self) -> Floats:
        """Aggregate of each question: the outcome of the first step."""
        return self.solution.column("base")

    @property
    def base_std_error(self) -> Floats:
        """Standard error of each aggregate, NaN where unknown."""
        return self.solution.column("base_std_error")

    @property
    def shrinkage(self) -> Floats:
        """Share of the way that the second step moved each question."""
        return self.solution.column("shrinkage")

    # -- parts ---------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """What was to be done with the answers."""
        return self.request.plan

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return float(self.request.plan.level)

    @property
    def diagnosis(self) -> Diagnosis:
        """What was chosen and why, what the second step did, warnings."""
        return self.solution.diagnosis

    @property
    def aggregate(self) -> Aggregate:
        """The outcome of the first step."""
        return self.solution.aggregate

    @property
    def second_step(self) -> SecondStepResult:
        """Certainty of the first step, prior and posterior, on the scale on which the answers were combined."""
        return self.solution.second_step

    @property
    def biases(self) -> Biases | None:
        """Biases of the workers, where they were removed first."""
        return self.solution.biases

    @property
    def calibration(self) -> Calibration | None:
        """The error that all workers share, where gold questions showed it."""
        return self.solution.calibration

    @property
    def pooling(self) -> Pooling | None:
        """Workers who count as one, where some err together."""
        return self.solution.pooling

    @property
    def groups(self) -> Labels | None:
        """Group of each question, where they are known."""
        return self.question_data.groups

    @property
    def problem(self) -> Problem:
        """Numbers of questions, workers and answers, and their ids."""
        return self.solution.root.problem

    @property
    def rejects(self) -> Rejects:
        """Rows that were set aside because they cannot be used: `counts` by kind, and the `rows`."""
        origin = getattr(self.problem, "origin", None)  # answers in memory have one
        return Rejects() if origin is None else origin.rejects

    @cached_property
    def answers(self) -> Answers:
        """The answers, in memory; those on disk are read if there is room for them."""
        root, problem = self.solution.root, self.problem
        if self.kind == "spark":
            raise TrueupError(
                "they are on the cluster.",
                argument="answers",
                remedy="Write est.questions there, or estimate in memory or on disk.",
            )
        if not isinstance(root, MemoryEngine):
            wanted = problem.n_answers * BYTES_AN_ANSWER
            if wanted > SHARE * memory():
                raise TrueupError(
                    f"{problem.n_answers:,} of them need about {wanted / 1e9:.0f} GB of memory, which is more "
                    "than there is. est.questions, est.workers and est.findings work without them.",
                    argument="answers",
                )
        return root.gather()

    # -- for people ----------------------------------------------------------------------------------

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        unit: str | None = None,
        command: str | None = None,
        truth: Any = None,
        force: bool = False,
    ) -> Path:
        """Write a report for people: one HTML file that works offline. See `trueup.report.write.write_report`."""
        from trueup.report.write import write_report

        return write_report(
            self, path, title=title, unit=unit, command=command, truth=truth, force=force
        )

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write this to a file, which `trueup.load` reads and `trueup.update` continues from.

        A state there already is replaced, any other file only with `force=True`. The file holds data and no code:
        methods and rules are kept by their registered name.
        """
        from trueup.result.save import save

        return save(self, path, force=force)

    def plot(self, kind: str = "estimates", *, unit: str | None = None) -> Any:
        """Return an altair chart of the "estimates", of the "truth" they may be off, the "workers" or the "prior".

        `unit`, such as "cm", is shown on the axes.
        `est.plot().save("figure.pdf")` writes it to a file: .pdf and .svg for a paper, .png for slides, .html for a
        browser. A page takes its scripts from the network unless you say `save("figure.html", inline=True)`.
        """
        from trueup.report.single_chart import plot

        return plot(self, kind, unit=unit)

    def close(self) -> None:
        """Free what the answers take on a disk or a cluster; tables that were not asked for before are gone then."""
        close = getattr(self.solution.root, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        from trueup.report.card import card

        return card(self)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [*account(self), str(self.diagnosis)]
        if self.kind == "spark":
            return "\n".join(lines)
        if self.path is not None:
            return "\n".join([*lines, f"estimates in {self.path}"])
        return "\n".join([*lines, "", *first_questions(self)])
