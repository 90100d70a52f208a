"""All findings on one estimate, each computed when it is first asked for, once, and then kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from trueup.algorithms.driver import run
from trueup.algorithms.native import Native
from trueup.engines.memory import MemoryEngine
from trueup.errors import Message, TrueupError
from trueup.findings.agreement import agreement
from trueup.findings.answers import odd_answers
from trueup.findings.answers_needed import answers_needed, check_target
from trueup.findings.correlated import CorrelatedWorkers
from trueup.findings.second_step import PANELS, SHARED, diagnose_second_step
from trueup.findings.workers import constant_workers, judge_workers
from trueup.pipeline.diagnosis import size_in_words
from trueup.variance.correlated import find_pairs, sample_answers
from trueup.variance.worker_noise import worker_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.answers.answers import Answers
    from trueup.findings.agreement import Agreement
    from trueup.findings.answers import OddAnswers
    from trueup.findings.answers_needed import AnswersNeeded
    from trueup.findings.second_step import SecondStepDiagnosis
    from trueup.findings.worker_table import WorkerTable
    from trueup.pipeline.solution import Solution
    from trueup.variance.correlated import AnswerSample
    from trueup.variance.worker_noise import WorkerNoise

    Part = TypeVar("Part")

#: Pairs and questions that are listed where everything is.
FEW = 5
#: Answers in all resamples of the workers, beyond which there are fewer of them, and the fewest that say something.
MOST_RESAMPLED, FEWEST_PANELS = 10_000_000, 50
#: Answers that take as long as one worker.
ANSWERS_A_WORKER = 40
#: Parts that may be unknown, in words.
NAMES = {
    "answers": "suspicious answers",
    "correlated": "workers with correlated errors",
    "answers_needed": "which questions need more answers",
    "agreement": "agreement",
    "second_step": "whether the second step helps",
}
ONE_PROBLEM = "these are panels; diagnose one with `answers.panel(b)`."


@dataclass(frozen=True)
class FindingOptions:
    """What can be asked of the findings.

    Attributes
    ----------
    target_se : float or None
        Standard error that every question should have; None: that of the median question.
    panels : int
        Resamples of the workers for the condition of the paper; 0 leaves them out.
    seed : int
        Seed of the samples of questions, the resamples and the bootstrap.
    """

    target_se: float | None = None
    panels: int = PANELS
    seed: int = 0


class Findings:
    """What stands out about workers and questions, and whether the second step helps.

    Each part is computed when it is first asked for and then kept. A part that cannot be known is None, and `missing`
    says why.

    Attributes
    ----------
    flags : list of str or None
        For each worker whether it always gives the same answer, or shares no question with anybody.
    workers : WorkerTable
        Noise and bias of each worker with intervals, and what stands out.
    answers : OddAnswers or None
        Single answers that do not fit what others say about the same question.
    correlated : CorrelatedWorkers or None
        Pairs of workers who err together or copy one another.
    answers_needed : AnswersNeeded or None
        Which questions need more answers, and how many.
    agreement : Agreement or None
        How well the workers agree: intraclass correlations and Krippendorff's alpha.
    second_step : SecondStepDiagnosis or None
        Whether the second step is expected to help.
    missing : tuple of str
        What could not be known, and why.
    """

    def __init__(self, solution: Solution, kind: str) -> None:
        self._solution = solution
        self._kind = kind
        self._options = FindingOptions()
        # By name and by the options that it depends on: shared with findings for other options.
        self._parts: dict[tuple[Any, ...], Any] = {}
        self._reasons: dict[str, str] = {}

    def asked(
        self, *, target_se: float | None = None, panels: int = PANELS, seed: int = 0
    ) -> Findings:
        """Return the findings for other options; parts that do not depend on them are not computed again."""
        check_target(target_se)
        findings = copy(self)
        vars(findings).update(_options=FindingOptions(target_se, panels, seed), _reasons={})
        return findings

    # -- parts ---------------------------------------------------------------------------------------

    @property
    def flags(self) -> list[str | None]:
        """For each worker whether it always gives the same answer, or shares no question with anybody."""
        solution, root = self._solution, self._solution.root

        def find() -> list[str | None]:
            as_given = solution.scaled is root and root.problem.n_panels == 1
            sample = self._sample if as_given else sample_answers(root)
            return constant_workers(root, solution.aggregate.facts, sample)

        return self._once("flags", find)

    @property
    def workers(self) -> WorkerTable:
        """Noise and bias of each worker, and what stands out."""

        def find() -> WorkerTable:
            sample, sample_noise = self._sample, self._sample_noise
            # Neither needs the other, and both leave a processor idle.
            with ThreadPoolExecutor(1) as pool:
                pairs = pool.submit(lambda: self._correlated)
                suspicious, correlated = self.answers, pairs.result()
            return judge_workers(
                self._solution,
                self._kind,
                flags=self.flags,
                sample=sample,
                sample_noise=sample_noise,
                noise=self._noise,
                correlated=correlated,
                suspicious=np.empty(0, np.int64) if suspicious is None else suspicious.places,
            )

        return self._once("workers", find, self._options.seed)

    @property
    def answers(self) -> OddAnswers | None:
        """Single answers that do not fit what others say about the same question."""

        def find() -> OddAnswers:
            solution, sample = self._solution, self._sample
            aggregate = solution.aggregate
            # Whatever the first step was: the native one, which knows workers and far answers, is the measure.
            if aggregate.algorithm != Native() or not solution.is_plain or not self._sees_all:
                aggregate = run(Native(), sample.answers)
            return odd_answers(solution, aggregate, sample, self._kind)

        return self._known("answers", find)

    @property
    def correlated(self) -> CorrelatedWorkers | None:
        """Pairs of workers who err together or copy one another."""
        return self._known("correlated", lambda: self._correlated, self._options.seed)

    @property
    def answers_needed(self) -> AnswersNeeded | None:
        """Which questions need more answers, and how many."""

        def find() -> AnswersNeeded:
            return answers_needed(self._solution, self._kind, self._options.target_se)

        return self._known("answers_needed", find, self._options.target_se)

    @property
    def agreement(self) -> Agreement | None:
        """How well the workers agree."""
        seed = self._options.seed
        return self._known("agreement", lambda: agreement(self._answers, seed=seed), seed)

    @property
    def second_step(self) -> SecondStepDiagnosis | None:
        """Whether the second step is expected to help."""
        panels, seed = self._affordable_panels, self._options.seed

        def find() -> SecondStepDiagnosis:
            solution, plan = self._solution, self._solution.plan
            limits: dict[str, Any] = {"max_iter": plan.max_iter, "tol": plan.tol}
            aggregate = solution.aggregate
            if not solution.is_plain or not self._sees_all:
                aggregate = run(aggregate.algorithm, self._answers, **limits)
            return diagnose_second_step(
                self._answers, aggregate, panels=panels, seed=seed, **limits
            )

        return self._known("second_step", find, panels, seed)

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be known, and why."""
        few = []
        if self._affordable_panels < self._options.panels:
            done = (
                f"only {self._affordable_panels} resamples were made"
                if self._affordable_panels
                else "it was left out"
            )
            few = [f"the condition by resampled workers: with so many answers or workers {done}."]
        unknown = [name for name in NAMES if getattr(self, name) is None]
        return (*few, *(f"{NAMES[name]}: " + self._reasons[name] for name in unknown))

    def __str__(self) -> str:
        """Say everything in words, what can be acted upon first."""
        problem, diagnosis = self._solution.root.problem, self._solution.diagnosis
        why = f" ({diagnosis.why})" if diagnosis.why else ""
        lines = [f"{size_in_words(problem)}; aggregation (first step): {diagnosis.method}{why}"]
        lines += [text for text in (diagnosis.scale, diagnosis.pooling) if text]
        lines += ["warning: " + text for text in diagnosis.warnings]
        parts = {"Workers": str(self.workers).splitlines()}
        if self.answers is not None:
            parts["Suspicious answers"] = self.answers.lines(FEW)
        if self.correlated is not None:
            parts["Workers with correlated errors"] = self.correlated.lines(FEW)
        if self.answers_needed is not None:
            parts["Questions"] = self.answers_needed.lines(FEW)
        if self.agreement is not None:
            agreed = self.agreement
            parts["Agreement"] = agreed.lines((agreed.one, agreed.alpha, *agreed.two_way[::2]))
        if self.second_step is not None:
            # What cannot be seen is said above, and notes are for those who ask for this part alone.
            text = str(self.second_step).splitlines()
            parts["Second step"] = [line for line in text if line != SHARED and "note:" not in line]
        if self.missing:
            parts["Not known"] = list(self.missing)
        for title, texts in parts.items():
            lines += ["", title, *("  " + line for line in texts)]
        return Message("\n").join(lines)

    # -- what several parts need ---------------------------------------------------------------------

    @property
    def _sample(self) -> AnswerSample:
        """The answers that are examined closely, in memory."""
        if self._solution.root.problem.n_panels > 1:
            raise TrueupError(ONE_PROBLEM, argument="answers")
        return self._once("sample", lambda: sample_answers(self._solution.scaled))

    @property
    def _answers(self) -> Answers:
        """All answers if they are in memory, else a sample of them."""
        engine = self._solution.scaled
        if not isinstance(engine, MemoryEngine):
            return self._sample.answers
        return self._once("gathered", engine.gather)

    @property
    def _sees_all(self) -> bool:
        """Whether the answers that are examined closely are all answers, with the same numbers of workers."""
        in_memory = isinstance(self._solution.scaled, MemoryEngine)
        return in_memory and self._sample.answers.n_questions == self._answers.n_questions

    @property
    def _correlated(self) -> CorrelatedWorkers:
        """Pairs of workers who err together; an error where they cannot be known."""

        def find() -> CorrelatedWorkers:
            sample, seed = self._sample, self._options.seed
            pairs = find_pairs(sample.answers, noise=self._sample_noise, seed=seed)
            problem = self._solution.root.problem
            found = pairs.in_all(sample)
            return CorrelatedWorkers(found, problem.worker_ids, self._kind, problem.names)

        return self._once("pairs", find, self._options.seed)

    @property
    def _noise(self) -> WorkerNoise | None:
        """The noise of the workers from all answers, if it is known without looking at all of them again."""
        solution = self._solution
        # The native method removes biases itself: the noise was computed with them, like that of findings.
        unbiased = solution.biases is None and solution.aggregate.bias is None
        as_given = unbiased or solution.aggregate.algorithm.concludes
        if as_given and solution.calibration is None and solution.second_step.noise is not None:
            return solution.second_step.noise
        return self._own_noise if self._sees_all else None

    @property
    def _own_noise(self) -> WorkerNoise:
        """The noise of the workers from their answers as they were given."""
        return self._once("noise", lambda: worker_noise(self._answers))

    @property
    def _sample_noise(self) -> WorkerNoise:
        """The noise of the workers of the sample."""
        if self._sees_all and self._noise is not None:
            return self._noise
        return self._once("sample noise", lambda: worker_noise(self._sample.answers))

    @property
    def _affordable_panels(self) -> int:
        """Resamples that do not take too long with this many answers."""
        problem = self._solution.root.problem
        size = max(problem.n_answers, ANSWERS_A_WORKER * problem.n_workers)
        affordable = MOST_RESAMPLED // max(size, 1)
        if affordable >= self._options.panels:
            return self._options.panels
        return affordable if affordable >= FEWEST_PANELS else 0

    def _once(self, name: str, find: Callable[[], Part], *options: object) -> Part:
        """Return a part that depends on some of the options; it is computed the first time."""
        key = (name, *options)
        if key not in self._parts:
            self._parts[key] = find()
        part: Part = self._parts[key]
        return part

    def _known(self, name: str, find: Callable[[], Part], *options: object) -> Part | None:
        """Return a part, None where it cannot be known; the reason is kept in its place."""

        def attempt() -> Part | TrueupError:
            try:
                return find()
            except TrueupError as error:
                return error

        part = self._once(name, attempt, *options)
        if isinstance(part, TrueupError):
            self._reasons[name] = part.message
            return None
        return part
