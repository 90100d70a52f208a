"""diagnose(): does the second step help here, by how much? diagnose_all(): all findings on workers and questions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from trueup._compare import COMPARED
from trueup._estimate import estimate_in_memory, read_answers
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.answers.scale import Scale
from trueup.core.keywords import check_names, signature_with
from trueup.core.progress import Progress
from trueup.errors import TrueupError, TrueupWarning
from trueup.findings.answers_needed import check_target
from trueup.findings.collection import ONE_PROBLEM, Findings
from trueup.findings.second_step import PANELS, check_panels, diagnose_second_step
from trueup.io.question_data import QuestionData
from trueup.pipeline.scaling import answers_on_scale
from trueup.request import KEYWORDS, Request
from trueup.result.estimate import Estimate

if TYPE_CHECKING:
    from trueup.algorithms.registry import Method
    from trueup.answers.answers import Answers
    from trueup.findings.second_step import SecondStepDiagnosis
    from trueup.request import CompareKeywords


@signature_with(KEYWORDS, COMPARED)
def diagnose(
    answers: Any,
    method: Method = "mean",
    *,
    panels: int = PANELS,
    **keywords: Unpack[CompareKeywords],
) -> SecondStepDiagnosis:
    """Return whether the second step helps on these answers, by how much, and how uniform the questions are.

    Parameters
    ----------
    answers
        As for `estimate`.
    method : str or Algorithm
        The first step.
    panels : int
        Resamples of the workers; 0 leaves them out.
    all other keywords
        As for `estimate`.

    Examples
    --------
    >>> from trueup import simulate
    >>> found = diagnose(simulate(workers=6, questions=40, truth_scale=0.5, seed=1).answers)
    >>> found.helps, round(found.expected_ratio, 2)
    (True, 0.44)
    """
    check_names("diagnose", keywords, COMPARED)
    check_panels(panels)
    request = Request.of("diagnose", answers, method=method, **keywords)
    algorithm, plan = find(method), request.plan
    # The condition of the paper is about the answers as they are, unless a scale is asked for.
    scale = plan.scale or Scale(None, plan.bounds)
    data = answers_on_scale(_one_problem(answers, request), scale)
    limits: dict[str, Any] = {"max_iter": plan.max_iter, "tol": plan.tol}
    aggregate = run(algorithm, data, **limits)
    return diagnose_second_step(data, aggregate, panels=panels, seed=plan.seed, **limits)


@signature_with(KEYWORDS, COMPARED)
def diagnose_all(
    answers: Any,
    method: Method = "auto",
    *,
    target_se: float | None = None,
    panels: int = PANELS,
    progress: bool = False,
    **keywords: Unpack[CompareKeywords],
) -> Findings:
    """Return what stands out about workers and questions, how well workers agree, and what the second step brings.

    Parameters
    ----------
    answers
        An `Estimate`, or what `estimate` takes.
    method : str or Algorithm
        The first step.
    target_se : float, optional
        Standard error that every question should have; default: that of the median question.
    panels : int
        Resamples of the workers for the condition of the second step, fewer with many answers; 0 leaves them out.
    progress : bool
        Show a bar on the error output, if that is a terminal.
    all other keywords
        As for `estimate`; an `Estimate` takes `seed` alone.

    Examples
    --------
    >>> from trueup import simulate
    >>> found = diagnose_all(simulate(workers=6, questions=40, seed=1).answers, panels=0)
    >>> print(found.workers.summary)
    Nothing stands out about any of 6 workers.
    """
    check_names("diagnose_all", keywords, COMPARED)
    given = {**keywords, "method": method}
    return diagnosed(answers, target_se, panels, given, progress=progress).findings


class Diagnosed(NamedTuple):
    """An estimate, and what stands out about it."""

    est: Estimate
    findings: Findings


def diagnosed(
    answers: Any,
    target_se: float | None,
    panels: int,
    keywords: dict[str, Any],
    *,
    progress: bool,
) -> Diagnosed:
    """Return the findings of `diagnose_all`, and the estimate that they are about."""
    check_panels(panels)
    check_target(target_se)
    request = Request.of("diagnose_all", answers, **keywords)
    with Progress("diagnose", 7, shown=progress) as bar:
        if isinstance(answers, Estimate):
            est = answers
        else:
            data = _one_problem(answers, request)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrueupWarning)  # they are among the findings
                est = estimate_in_memory(data, request, QuestionData(), bar)
        if est.problem.n_panels > 1:
            raise TrueupError(ONE_PROBLEM, argument="answers")
        findings = est.findings.asked(target_se=target_se, panels=panels, seed=request.plan.seed)
        for part in (
            "correlated",
            "workers",
            "answers",
            "answers_needed",
            "agreement",
            "second_step",
        ):
            bar.step(part.replace("_", " "))
            getattr(findings, part)
    return Diagnosed(est, findings)


def _one_problem(answers: Any, request: Request) -> Answers:
    data = read_answers(answers, request)
    if data.n_panels > 1:
        raise TrueupError(ONE_PROBLEM, argument="answers")
    return data
