"""What was chosen and why, and what to be careful about, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.errors import counted

if TYPE_CHECKING:
    from trueup.engines.protocol import Problem


def size_in_words(problem: Problem) -> str:
    """Say how many answers of how many workers to how many questions there are."""
    text = (
        f"{counted(problem.n_answers, 'answer')} from {counted(problem.n_workers, 'worker')} to "
        f"{counted(problem.n_questions, 'question')}"
    )
    return f"{text} in {problem.n_panels:,} panels" if problem.n_panels > 1 else text


@dataclass(frozen=True)
class Diagnosis:
    """What was chosen and why, and what to be careful about.

    Attributes
    ----------
    method, shrink : str
        The two steps.
    iterations : int
        Iterations of the first step.
    settled : bool
        Whether the first step came to rest within them.
    why : str
        Why the method was chosen, if it was.
    models : str
        What the native method believes of the workers, in words.
    transform : str
        Name of the scale on which the answers were combined; "none": as they are.
    scale : str
        Why this scale was chosen, in words, where there is something to say.
    pooling : str
        Which workers err together and count as one, in words.
    target : str
        Which target was used and why, and what the other would change, in words.
    second_step : str
        What the second step did, in words.
    gold : str
        What the known truths showed, in words.
    assumptions : tuple of str
        What the numbers rest on.
    warnings : tuple of str
        What may be wrong with them.
    rough : str
        Why the intervals are rough, if they are: too few answers to know how much workers differ.
    """

    method: str
    shrink: str
    iterations: int
    settled: bool
    why: str = ""
    models: str = ""
    transform: str = "none"
    scale: str = ""
    pooling: str = ""
    target: str = ""
    second_step: str = ""
    gold: str = ""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rough: str = ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        lines = [f"method {self.method}{why}, shrink {self.shrink}"]
        lines += [text for text in (self.models, self.scale, self.pooling) if text]
        if self.iterations:
            rest = "" if self.settled else ", not converged"
            lines.append(counted(self.iterations, "iteration") + rest)
        lines += [text for text in (self.second_step, self.target, self.gold) if text]
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"rough: {self.rough}"] if self.rough else []
        lines += [f"assumed: {text}" for text in self.assumptions]
        return "\n".join(lines)
