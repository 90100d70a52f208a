"""What is to be thought of each worker? Noise and bias with intervals, and in words what stands out.

**Noise.** s_i with nu_i = (d_i + 2) / (1 + kappa/2) degrees of freedom, those of its residuals and two pseudo-answers
(`trueup.variance.worker_noise`), fewer where the errors of all have the excess kurtosis kappa > 0 and so tell less,
has the interval of a variance,

    nu_i s_i / chi2(0.975, nu_i)  to  nu_i s_i / chi2(0.025, nu_i)

as moderated variances have (Smyth, Statistical Applications in Genetics and Molecular Biology 2004; for kappa Box,
Biometrika 1953). A worker is much noisier than others if all of it is above four times the median worker.

**Bias.** A random effect with its standard error (`trueup.variance.bias`), clear of 0 beyond 1.96 of them: a worker
with few answers is believed to have hardly any. Harsh or lenient is called who is clear of 0 by more than a fifth of a
standard deviation of a typical answer, a small effect (Cohen, Statistical Power Analysis 1988).

**Far off.** Answers further than five robust standard deviations (1.4826 times the median distance) from the median
of their question, the bias of the worker taken off; at least two of them and a tenth of its answers are pointed out.

Of a worker with fewer than five answers to questions that somebody else answered, nothing of this is said.

With very many answers biases, far answers and pairs are those of a sample of the questions
(`trueup.variance.correlated`), and so is the noise where the estimate does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.core.arrays import segment_median
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions
from trueup.errors import TrueupError, counted, quoted
from trueup.io.frames_out import make_frame
from trueup.result.estimate import SAME_ANSWER, SHARES_NOTHING
from trueup.variance.bias import estimate_biases
from trueup.variance.correlated import Looked, Together, noise_of
from trueup.variance.correlated import together as find_together
from trueup.variance.correlated.sample import note, sample_size
from trueup.variance.worker_noise import WorkerNoise, worker_noise

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.io.table import Ids
    from trueup.pipeline.solve import Solution
    from trueup.result.estimate import Estimate
    from trueup.variance.bias import Biases

#: Shared answers below which nobody is judged.
FEWEST = 5
#: Degrees of freedom that the moderation of a variance is worth.
PSEUDO = 2.0
#: Standard errors from 0 at which a bias is clear, and the share of a typical standard deviation that matters.
CLEAR, MATTERS = 1.959963984540054, 0.2
#: Times the variance of the median worker that is much.
MUCH = 4.0
#: Robust standard deviations at which an answer is far off, and when that is pointed out.
FAR, FEWEST_FAR, SHARE_FAR = 5.0, 2, 0.1
NORMAL = 1.4826
MOST_KURTOSIS = 20.0
SHOWN = 10

TOO_FEW = "too few answers to judge"
NOISY = "much noisier than the median worker"
FAR_OFF = "answers far off"
HARSH = "answers too low (harsh)"
LENIENT = "answers too high (lenient)"
COPIES = "identical answers"
TOGETHER = "errs together"
#: The worst first.
WORST = (
    SAME_ANSWER, COPIES, NOISY, FAR_OFF, TOGETHER, HARSH, LENIENT, SHARES_NOTHING, TOO_FEW,
)  # fmt: skip


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
    together : Together
        Who errs together with whom.
    note : str
        That only a sample of the questions was looked at, if so.
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
    together: Together
    note: str = ""

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
        return make_frame(self.kind, columns, null_columns=unknown)

    @property
    def remarkable(self) -> Ints:
        """Numbers of the workers with something to look at, the worst first, then those with most answers."""
        some = [i for i, each in enumerate(self.flags) if each and each != (TOO_FEW,)]
        at = np.array(some, dtype=np.int64)
        worst = np.array([min(map(WORST.index, self.flags[i])) for i in some], dtype=np.int64)
        return at[np.lexsort((-self.n_answers[at], worst))]

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
                f" {counted(few, 'worker')} {verb} fewer than {FEWEST} answers to questions that others answered as "
                f"well: {TOO_FEW}."
            )
        return f"{text} {self.note}".rstrip()

    def describe(self, number: int) -> str:
        """Return a sentence on one worker, with the numbers behind its flags."""
        ids = self.worker_ids
        parts = []
        for flag in self.flags[number]:
            text = flag
            if flag in (HARSH, LENIENT):
                text += (
                    f", by {abs(self.bias[number]):.3g} ± {CLEAR * self.bias_std_error[number]:.2g}"
                )
            elif flag == NOISY:
                times = self.variance / self.median_variance
                text += f", {times[number]:.3g} times its variance"
            elif flag == FAR_OFF:
                text += f", {self.far_off[number]:.0%} of them"
            elif flag in (COPIES, TOGETHER):
                other = ids.tolist(self.partner[number : number + 1])[0]
                text += " with " + quoted(str(other)).strip('"')
            parts.append(text)
        name = quoted(str(ids.tolist(np.array([number]))[0])).strip('"')
        return f"{name} ({counted(int(self.n_answers[number]), 'answer')}): {'; '.join(parts)}"

    def __str__(self) -> str:
        at = self.remarkable
        lines = [self.summary, *(f"  {self.describe(i)}" for i in at[:SHOWN].tolist())]
        return "\n".join(
            lines + ([f"  ... and {len(at) - SHOWN:,} more"] if len(at) > SHOWN else [])
        )


def worker_table(
    estimate: Estimate, *, together: Together | None = None, noise: WorkerNoise | None = None
) -> WorkerTable:
    """Return the verdict on every worker.

    Parameters
    ----------
    estimate : Estimate
    together : Together, optional
        Who errs together with whom, where it has been found already.
    noise : WorkerNoise, optional
        Of the answers of the estimate, where it has been computed already.

    Examples
    --------
    >>> import trueup
    >>> x = trueup.simulate(workers=8, questions=40, seed=1).answers.to_matrix()
    >>> x[3] = 0.5
    >>> worker_table(trueup.estimate(x)).flag[3]
    'always the same answer'
    """
    answers = estimate.answers
    if answers.n_panels > 1:
        raise TrueupError("estimate: it is of panels; ask for the workers of one of them.")
    looked = Looked.of(answers)
    noise = noise or noise_of(estimate)
    if looked is None:
        noise = seen = noise or worker_noise(answers)
        sample = Sample(answers, seen, np.arange(answers.n_workers))
    else:
        sample = Sample(looked.answers, worker_noise(looked.answers), looked.workers, looked.note)
    if together is None:
        together = find_together(sample.answers, noise=sample.noise)
        together = together if looked is None else together.among(looked)
    known = Known(
        worker_ids=answers.worker_ids,
        kind=answers.origin.kind,
        aggregate=estimate.aggregate,
        noise=noise,
        biases=estimate.biases,
        flag=estimate.flag,
        partner=together.partner,
        copier=together.copier,
    )
    return _judged(known, sample, together)


def worker_table_of(solution: Solution, flag: list[str | None]) -> WorkerTable:
    """Return the verdict on every worker of answers that are not in memory.

    As many questions as are looked at of so many answers in memory, and the same ones, are brought here. `flag` is what
    `trueup.result.estimate.worker_flags` says of all; `together` has the workers of the sample.
    """
    engine = solution.root
    problem = engine.problem
    size = sample_size(problem.n_answers, problem.n_questions, problem.n_workers)
    drawn = sample_questions(engine, 0, size)
    part = engine.gather(None if drawn.limit is None else drawn.inside, drawn.reads)
    workers = problem.worker_ids.index_of(part.worker_ids)
    sample = Sample(part, worker_noise(part), workers, note(part.n_questions, problem.n_questions))
    together = find_together(part, noise=sample.noise)
    partner, copier = np.full(problem.n_workers, -1), np.zeros(problem.n_workers, dtype=bool)
    partner[workers] = np.append(workers, -1)[together.partner]
    copier[workers] = together.copier
    taken = (solution.biases, solution.aggregate.bias, solution.calibration)
    known = Known(
        worker_ids=problem.worker_ids,
        kind="pyarrow",
        aggregate=solution.aggregate,
        noise=solution.moved.noise if all(each is None for each in taken) else None,
        biases=solution.biases,
        flag=flag,
        partner=partner,
        copier=copier,
    )
    return _judged(known, sample, together)


class Known(NamedTuple):
    """What is known of all workers, of their names and from all answers; the noise only where it has been computed."""

    worker_ids: Ids
    kind: str
    aggregate: Aggregate
    noise: WorkerNoise | None
    biases: Biases | None
    flag: list[str | None]
    partner: Ints
    copier: Bools


class Sample(NamedTuple):
    """Answers that are looked at closely, their noise, and the number of each of their workers among all."""

    answers: Answers
    noise: WorkerNoise
    workers: Ints
    note: str = ""

    def spread(self, each: Floats, empty: float, n_workers: int) -> Floats:
        """Return numbers of these workers as numbers of all, `empty` for the others."""
        result = np.full(n_workers, empty)
        result[self.workers] = each
        return result


def _judged(known: Known, sample: Sample, together: Together) -> WorkerTable:
    facts, seen = known.aggregate.facts, sample.noise

    def spread(each: Floats, empty: float) -> Floats:
        return sample.spread(each, empty, facts.n_workers)

    shared = facts.n_informative.astype(np.int64)
    if known.noise is None:
        count, kurtosis = spread(seen.n_informative, 0.0), _kurtosis(seen)
        variance, lower, upper = (spread(each, np.nan) for each in _noise(seen, kurtosis))
    else:
        count = known.noise.n_informative
        variance, lower, upper = _noise(known.noise, _kurtosis(seen))
    if known.biases is not None:
        value, error = known.biases.value, known.biases.std_error
    else:
        biases = estimate_biases(sample.answers)
        value, error = (spread(each, np.nan) for each in (biases.value, biases.std_error))
    value, error = (np.where(count > 0, each, np.nan) for each in (value, error))
    far = _far_off(seen)
    count_far, far_off = spread(far[0], 0.0), spread(far[1], np.nan)
    judged = shared >= FEWEST
    clear = judged & (np.abs(value) > CLEAR * error)
    among = variance[judged & ~np.isnan(variance)]
    median = float(np.median(among)) if len(among) else np.nan
    marks = {
        NOISY: judged & (lower > MUCH * median) & (median > 0),
        FAR_OFF: judged & (count_far >= FEWEST_FAR) & (far_off >= SHARE_FAR),
        HARSH: clear & (-value - CLEAR * error > MATTERS * np.sqrt(median)),
        LENIENT: clear & (value - CLEAR * error > MATTERS * np.sqrt(median)),
        COPIES: known.copier,
        TOGETHER: (known.partner >= 0) & ~known.copier,
    }
    flags: list[list[str]] = [[] if text is None else [text] for text in known.flag]
    for text, mark in marks.items():
        for at in np.flatnonzero(mark).tolist():
            if SAME_ANSWER not in flags[at] or text in (COPIES, TOGETHER):
                flags[at].append(text)
    for at in np.flatnonzero(~judged).tolist():
        if SHARES_NOTHING not in flags[at]:
            flags[at].append(TOO_FEW)
    return WorkerTable(
        worker_ids=known.worker_ids,
        kind=known.kind,
        n_answers=facts.n_answers.astype(np.int64),
        n_shared=shared,
        weight=known.aggregate.weight,
        variance=variance,
        variance_lower=lower,
        variance_upper=upper,
        bias=value,
        bias_std_error=error,
        bias_clear=clear,
        far_off=far_off,
        partner=known.partner,
        flags=tuple(map(tuple, flags)),
        median_variance=median,
        together=together,
        note=sample.note,
    )


def _noise(noise: WorkerNoise, kurtosis: float) -> tuple[Floats, Floats, Floats]:
    """Return the variance of each worker and its 95% interval, NaN where there is nothing to learn it from."""
    from scipy.special import chdtri

    known = (noise.n_informative > 0) & (noise.pool > 0)
    freedom = (noise.freedom + PSEUDO) / (1.0 + 0.5 * kurtosis)
    variance = np.where(known, noise.variance, np.nan)
    # chdtri takes the probability above
    return (
        variance,
        variance * freedom / chdtri(freedom, 0.025),
        variance * freedom / chdtri(freedom, 0.975),
    )


def _kurtosis(noise: WorkerNoise) -> float:
    """Return the excess kurtosis of the errors, each in units of its worker, at least 0; gross questions aside.

    Residuals around a mean of k answers have about (1 - 1/k)^2 of it.
    """
    unit = np.divide(
        1.0, noise.variance, out=np.zeros(len(noise.variance)), where=noise.variance > 0
    )

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        r = block.residuals(block.mean)
        own = 1.0 - 1.0 / np.maximum(block.counts, 2)
        square = r * r * unit[block.worker_slice].take(block.workers) / block.spread(own)
        inside = block.informative
        sums = [block.by_question(each) for each in (square, square * square)]
        rows = [
            inside * block.counts,
            inside * sums[0],
            inside * sums[1],
            inside * block.counts * own**2,
        ]
        return Visit(panel_sums=np.array([[row.sum()] for row in rows]))

    n, second, fourth, share = noise.screening.engine.sweep(visit).panel_sums[:, 0]
    if second <= 0:
        return 0.0
    return float(np.clip((n * fourth / second**2 - 3.0) * n / share, 0.0, MOST_KURTOSIS))


def _far_off(noise: WorkerNoise) -> tuple[Floats, Floats]:
    """Return how many answers of each worker are far off, and their share; biases are taken off."""
    engine, facts = noise.screening.engine, noise.screening.facts
    n = facts.n_workers
    far = np.zeros(n)
    count = np.zeros(n)
    scale = _deviation_of_an_answer(noise)

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        distance = np.abs(block.residuals(block.median))
        several = (block.counts >= 3).astype(np.float64)
        beyond = (distance > FAR * scale).astype(np.float64)
        return Visit(
            sums=np.stack([block.by_worker(beyond, several), block.by_worker(None, several)])
        )

    if scale > 0:
        far, count = engine.sweep(visit).sums
    share = np.divide(far, count, out=np.full(n, np.nan), where=count > 0)
    return far, share


def _deviation_of_an_answer(noise: WorkerNoise) -> float:
    """Return the robust standard deviation of an answer around the median of its question; the pooled one if it is 0.

    The mean over blocks of their median distances: one number, found in one pass.
    """

    def visit(block: Block, kept: dict[str, Floats]) -> Visit:  # noqa: ARG001
        several = block.spread((block.counts >= 3).astype(np.float64))
        distance = np.abs(block.residuals(block.median))
        middle = float(segment_median(distance, several, np.array([0, len(distance)]))[0])
        count = float(several.sum())
        return Visit(panel_sums=np.array([[middle * count], [count]]))

    total, count = noise.screening.engine.sweep(visit).panel_sums[:, 0]
    if count == 0:
        return 0.0
    middle = float(total / count)
    return NORMAL * middle if middle > 0 else float(np.sqrt(noise.screening.facts.pool.max()))
