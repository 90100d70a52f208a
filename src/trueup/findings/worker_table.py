"""The table of workers: noise and bias with intervals, and in words what stands out about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted, quoted
from trueup.io.frames_out import make_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.findings.correlated import CorrelatedWorkers
    from trueup.io.table import Ids

#: Shared answers below which a worker is not judged.
FEWEST = 5
#: Standard errors from 0 at which a bias is clear.
CLEAR = 1.959963984540054
SHOWN = 10

SAME_ANSWER = "always the same answer"
NEARLY_SAME = "nearly always the same answer"
SHARES_NOTHING = "shares no question with other workers"
TOO_FEW = "too few answers to judge"
NOISY = "much noisier than others"
FAR_OFF = "answers far off"
HARSH = "answers too low (harsh)"
LENIENT = "answers too high (lenient)"
COPIES = "identical answers"
TOGETHER = "correlated errors"
#: What to act upon first; a bias that was corrected needs nothing and comes after all of it.
WORST = (
    SAME_ANSWER, NEARLY_SAME, COPIES, NOISY, FAR_OFF, TOGETHER, HARSH, LENIENT, SHARES_NOTHING, TOO_FEW,
)  # fmt: skip


def _short(name: object) -> str:
    """Write an id on one line."""
    return quoted(str(name)).strip('"')


@dataclass(frozen=True, eq=False)
class WorkerTable:
    """The verdict on every worker, in the order of the workers of the estimate.

    Variances and biases are on the scale on which the answers are combined, NaN where they cannot be known.

    Attributes
    ----------
    worker_ids : Ids
        Who they are.
    kind : str
        Library of the frames.
    n_answers, n_shared : arrays
        Answers of each worker, and those to questions that somebody else answered as well.
    weight : array
        Weight in the first step.
    variance, variance_lower, variance_upper : arrays
        Noise with its 95% interval.
    bias, bias_std_error : arrays
        Bias and its standard error.
    bias_clear : array
        Whether the bias is clear of 0; never with too few answers.
    far_off : array
        Share of answers that are far off.
    partner : array
        Number of the worker with whom each errs together or shares identical answers, -1 where there is none.
    flags : tuple of tuple of str
        What stands out, in words.
    median_variance : float
        Variance of the median worker.
    correlated : CorrelatedWorkers
        Pairs of workers who err together.
    note : str
        Says that only a sample of the questions was used, if so.
    in_logarithms : bool
        Whether logarithms of the answers were combined: biases are then said in per cent.
    corrected : bool
        Whether the biases were removed from the answers.
    n_suspicious : array or None
        Number of suspicious answers of each worker, which were set aside before judging its typical answers.
    """

    worker_ids: Ids
    kind: str
    n_answers: Ints
    n_shared: Ints
    weight: Floats
    variance: Floats
    variance_lower: Floats
    variance_upper: Floats
    bias: Floats
    bias_std_error: Floats
    bias_clear: Bools
    far_off: Floats
    partner: Ints
    flags: tuple[tuple[str, ...], ...]
    median_variance: float
    correlated: CorrelatedWorkers
    note: str = ""
    in_logarithms: bool = False
    corrected: bool = False
    n_suspicious: Ints | None = None

    @property
    def judged(self) -> Bools:
        """Workers with enough shared answers to be judged."""
        return self.n_shared >= FEWEST

    @property
    def flag(self) -> list[str | None]:
        """What stands out about each worker as one text, None where nothing does."""
        return ["; ".join(each) or None for each in self.flags]

    @property
    def workers(self) -> Any:
        """Frame with a row per worker."""
        names: list[object] = [None] * len(self.partner)
        tied = np.flatnonzero(self.partner >= 0)
        for at, name in zip(tied.tolist(), self.worker_ids.tolist(self.partner[tied]), strict=True):
            names[at] = str(name)
        columns: dict[str, Any] = {
            "worker": self.worker_ids,
            "n_answers": self.n_answers,
            "n_shared": self.n_shared,
            "weight": self.weight,
            "variance": self.variance,
            "variance_lower": self.variance_lower,
            "variance_upper": self.variance_upper,
            "bias": self.bias,
            "bias_std_error": self.bias_std_error,
            "bias_clear": self.bias_clear,
            "far_off": self.far_off,
            "partner": names,
            "flag": self.flag,
        }
        unknown = (
            "variance",
            "variance_lower",
            "variance_upper",
            "bias",
            "bias_std_error",
            "far_off",
        )
        return make_frame(self.kind, columns, null_columns=unknown, names=self.correlated.names)

    @property
    def remarkable(self) -> Ints:
        """Numbers of the workers with something to look at, the worst first, then those with most answers."""
        some = [i for i, each in enumerate(self.flags) if each and each != (TOO_FEW,)]
        at = np.array(some, dtype=np.int64)
        worst = np.array([min(map(self._urgency, self.flags[i])) for i in some], dtype=np.int64)
        return at[np.lexsort((-self.n_answers[at], worst))]

    def _urgency(self, flag: str) -> int:
        """Return the place of a flag among all, the one to act upon first being 0."""
        done = self.corrected and flag in (HARSH, LENIENT)
        return WORST.index(flag) + len(WORST) * done

    @property
    def summary(self) -> str:
        """What was found, in one or two sentences."""
        found, n = len(self.remarkable), len(self.flags)
        text = (
            f"Nothing stands out about any of {counted(n, 'worker')}."
            if found == 0
            else f"{found:,} of {counted(n, 'worker')} should be looked at."
        )
        few = int((~self.judged).sum())
        if few:
            verb = "has" if few == 1 else "have"
            text += (
                f" {counted(few, 'worker')} {verb} too few answers to judge: fewer than {FEWEST} to questions that "
                "others answered too."
            )
        return f"{text} {self.note}".rstrip()

    def remarks(self, number: int, written: Callable[[object], str] = _short) -> list[str]:
        """Return what stands out about one worker, with the numbers behind it; `written` writes the id of another."""
        remarks = []
        for flag in self.flags[number]:
            text = flag
            if flag in (HARSH, LENIENT):
                side = "low" if flag == HARSH else "high"
                done = "corrected" if self.corrected else "not corrected"
                text = f"answers about {self._bias_in_words(number)} too {side}; {done}"
            elif flag == NOISY:
                times = np.sqrt(self.variance[number] / self.median_variance)
                text += f": typical error {times:.1f}x the median worker's"
            elif flag == FAR_OFF:
                text = f"{self.far_off[number]:.0%} of answers are far off"
            elif flag in (COPIES, TOGETHER):
                partner = self.worker_ids.tolist(self.partner[number : number + 1])[0]
                text += f" with {written(partner)}"
            remarks.append(text)
        return remarks

    def _bias_in_words(self, number: int) -> str:
        """Return the size of a bias with its 95% margin: of logarithms as a share of the value, in per cent."""
        bias, error = self.bias[number], CLEAR * self.bias_std_error[number]
        if not self.in_logarithms:
            return f"{abs(bias):.2g} ± {error:.2g}"
        return f"{abs(np.expm1(bias)):.0%} ± {error * np.exp(bias):.0%}"

    def describe(self, number: int) -> str:
        """Return a line on one worker."""
        name = _short(self.worker_ids.tolist(np.array([number]))[0])
        answers = counted(int(self.n_answers[number]), "answer")
        return f"{name} ({answers}): {'; '.join(self.remarks(number))}"

    def __str__(self) -> str:
        at = self.remarkable
        lines = [self.summary, *(f"  {self.describe(i)}" for i in at[:SHOWN].tolist())]
        return "\n".join(
            lines + ([f"  ... and {len(at) - SHOWN:,} more"] if len(at) > SHOWN else [])
        )
