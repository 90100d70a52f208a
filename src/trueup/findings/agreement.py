"""How well do the workers agree? Intraclass correlations and Krippendorff's alpha, with intervals.

One-way analysis of variance over m questions with k_j answers each, N in all (Shrout and Fleiss, Psychological
Bulletin 1979; for unequal k_j Donner, International Statistical Review 1986):

    MSB = sum_j k_j (mean_j - mean)^2 / (m - 1),   MSW = sum_j sum_i (x_ij - mean_j)^2 / (N - m)
    k0  = (N - sum k_j^2 / N) / (m - 1),           the typical number of answers
    ICC(1)   = (MSB - MSW) / (MSB + (k0 - 1) MSW)  one answer
    ICC(1,k) = (MSB - MSW) / MSB                   the mean of k0 answers, also known as ICC(2)

The interval of ICC(1) is Wald's, exact for normal answers however unequal the k_j are (Annals of Mathematical
Statistics 1940; Harville and Fenech, Biometrics 1985): with `w_j = k_j (1 - r) / (1 + (k_j - 1) r)` the ratio

    H(r) = sum_j w_j (mean_j - weighted mean)^2 / ((m - 1) MSW)

has the F distribution with m - 1 and N - m degrees of freedom at the true r, and falls with r. With equal k_j it is
the interval of Shrout and Fleiss.

Where every worker answered every question the two-way coefficients are known as well: ICC(2,1) and ICC(2,k) count
differences of level between workers as disagreement (absolute agreement, ICC(A,1) and ICC(A,k) of McGraw and Wong,
Psychological Methods 1996), ICC(3,1) and ICC(3,k) do not (consistency, ICC(C,1) and ICC(C,k)).

Krippendorff's alpha for interval data (Computing Krippendorff's Alpha-Reliability, 2011), over the n answers to
questions with at least two: `1 - observed / expected disagreement`, which for squared differences is

    alpha = 1 - (n - 1)/n * sum_j k_j/(k_j - 1) SS_j / SS_total

with a bootstrap over questions (Zapf et al., BMC Medical Research Methodology 2016), corrected for bias and skewness
(Efron, Journal of the American Statistical Association 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.block import ROUNDING
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.engines.protocol import Visit
from trueup.errors import TrueupError, option
from trueup.findings.coefficient import Coefficient, two_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Kept

LEVEL = 0.95
#: Resamples of the questions behind the interval of alpha, and groups that many questions are put into for it.
RESAMPLES = 1000
GROUPS = 1000
#: Questions with two answers below which a bootstrap says nothing.
FEWEST = 5
HALVINGS = 100
LEVEL_MATTERS = (
    "Much of the disagreement comes from workers who consistently answer higher or lower than others; "
    + option("bias", True)
    + " removes it."
)


@dataclass(frozen=True)
class Agreement:
    """How well the workers agree.

    Attributes
    ----------
    one, mean : Coefficient
        ICC(1) of a single answer, ICC(1,k) of the mean of the typical `k` answers.
    k : float
        Typical number of answers of a question.
    alpha : Coefficient
        Krippendorff's alpha for interval data.
    two_way : tuple of Coefficient
        ICC(2,1), ICC(2,k), ICC(3,1), ICC(3,k), where every worker answered every question; else empty.
    """

    one: Coefficient
    mean: Coefficient
    k: float
    alpha: Coefficient
    two_way: tuple[Coefficient, ...] = ()

    @property
    def summary(self) -> str:
        """The agreement in one sentence."""
        return (
            f"The correlation of two answers to the same question is {two_digits(self.one.value)} ({self.one.word}), "
            f"that of two means of {self.k:.3g} answers {two_digits(self.mean.value)} ({self.mean.word})."
        )

    @property
    def is_chance(self) -> bool:
        """Whether answers to the same question are no more alike than answers to different ones."""
        return bool(self.one.value <= 0)

    @property
    def level_matters(self) -> bool:
        """Whether differences of level between workers are a large part of the disagreement."""
        return bool(self.two_way) and self.two_way[2].value - self.two_way[0].value > 0.1

    def __getitem__(self, name: str) -> Coefficient:
        """Return a coefficient by its name."""
        for each in (self.one, self.mean, self.alpha, *self.two_way):
            if each.name == name:
                return each
        raise KeyError(name)

    def __str__(self) -> str:
        return "\n".join(self.lines((self.one, self.mean, self.alpha, *self.two_way)))

    def lines(self, shown: tuple[Coefficient, ...]) -> list[str]:
        """Return it in words, with some of the coefficients."""
        lines = [self.summary, *(f"  {each}" for each in shown)]
        return lines + [LEVEL_MATTERS] * self.level_matters


def agreement(answers: Any, *, seed: int = 0, **options: Any) -> Agreement:
    """Return how well the workers agree.

    Parameters
    ----------
    answers
        As for `trueup.estimate`; `options` are those of `Answers.of`.
    seed : int
        Of the bootstrap over questions.

    Examples
    --------
    >>> judges = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
    >>> print(agreement(judges).one)
    ICC(1) = 0.17 (95% interval -0.13 to 0.72): poor; one answer
    """
    data = Answers.of(answers, **options)
    if data.n_panels > 1:
        raise TrueupError(
            "these are panels; take one of them, `answers.panel(b)`.", argument="answers"
        )
    if data.n_questions < 2 or (data.counts < 2).all():
        raise TrueupError(
            "agreement needs two questions, and one of them with two answers.", argument="answers"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _Sums.of(data)
    one, mean, k = _one_way(sums)
    complete = data.n_answers == data.n_questions * data.n_workers
    return Agreement(
        one,
        mean,
        k,
        _alpha(data, sums, seed),
        _two_way(sums) if complete else (),
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the answers boil down to: of each question its number of answers, mean and sum of squares around it.

    `level` is the sum over questions of the distance of each worker from their means. Means are relative to their mean
    over answers, and everything is in units of the largest deviation.
    """

    k: Floats
    mean: Floats
    ss: Floats
    level: Floats

    @classmethod
    def of(cls, data: Answers) -> _Sums:
        engine = MemoryEngine(data)
        peak = max(float(np.abs(data.values).max()), float(np.ptp(data.centre)))
        if not 0 < peak < np.inf:
            raise TrueupError(
                "they are all the same, so agreement cannot be measured."
                if peak == 0
                else "they are too far apart to be compared; combine them on another scale.",
                argument="answers",
            )

        def visit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            y = block.values / peak
            mean = block.by_question(y) / block.counts
            deviation = y - block.spread(mean)
            ss = block.by_question(deviation * deviation) * (block.std > 0)
            level = block.by_worker(deviation, np.ones(block.n_questions))
            return Visit(
                sums=level[None], questions={vectors.ANSWER_MEAN: mean, vectors.SQUARES_WITHIN: ss}
            )

        level = engine.sweep(visit).sums[0]
        k = data.counts.astype(np.float64)
        mean = (data.centre - data.centre[0]) / peak + engine.kept(vectors.ANSWER_MEAN)
        mean = mean - np.average(mean, weights=k)
        mean[np.abs(mean) <= ROUNDING * max(1.0, float(np.abs(data.centre / peak).max()))] = 0.0
        return cls(k, mean, engine.kept(vectors.SQUARES_WITHIN), level)


def _one_way(sums: _Sums) -> tuple[Coefficient, Coefficient, float]:
    """Return ICC(1), ICC(1,k) and k."""
    k, m, total = sums.k, len(sums.k), float(sums.k.sum())
    k0 = (total - float(np.sum(k**2)) / total) / (m - 1)
    between = float(np.sum(k * sums.mean**2)) / (m - 1)
    within = float(sums.ss.sum()) / (total - m)
    if between == 0 and within == 0:
        raise TrueupError(
            "they are all the same, so agreement cannot be measured.", argument="answers"
        )

    def steps_up(r: float) -> float:
        return _steps_up(r, k0)

    if within == 0:
        one = (1.0, 1.0, 1.0)
    else:
        value = (between - within) / (between + (k0 - 1.0) * within)
        low, high = _wald(sums, within, m - 1, total - m)
        # With very unequal numbers of answers the value may be below what a correlation can be.
        one = (value, min(low, value), max(high, value))
    return (
        _icc("ICC(1)", "one answer", one),
        _icc("ICC(1,k)", f"the mean of {k0:.3g} answers, also called ICC(2)", map(steps_up, one)),
        k0,
    )


def _icc(name: str, meaning: str, values: Iterable[float]) -> Coefficient:
    value, lower, upper = values
    return Coefficient(name, meaning, value, lower, upper)


def _steps_up(r: float, k: float) -> float:
    """Carry a correlation of single answers to that of means of k (Spearman and Brown); never below -1."""
    below = 1.0 + (k - 1.0) * r
    return max(k * r / below, -1.0) if below > 0 else -1.0


def _wald(sums: _Sums, within: float, df1: int, df2: float) -> tuple[float, float]:
    """Return the interval of ICC(1), by halving."""
    k, kind = np.unique(sums.k, return_inverse=True)
    count = np.bincount(kind).astype(np.float64)
    mean = np.bincount(kind, sums.mean) / count
    spread = np.bincount(kind, (sums.mean - mean[kind]) ** 2)

    def ratio(r: float) -> float:
        w = k * (1.0 - r) / (1.0 + (k - 1.0) * r)
        middle = np.sum(w * count * mean) / np.sum(w * count)
        return float(np.sum(w * (spread + count * (mean - middle) ** 2))) / (df1 * within)

    lowest = -1.0 / (float(k[-1]) - 1.0)
    high, low = _quantile(df1, df2, 0.5 + 0.5 * LEVEL), _quantile(df1, df2, 0.5 - 0.5 * LEVEL)
    return _falls_to(ratio, high, lowest), _falls_to(ratio, low, lowest)


def _falls_to(ratio: Callable[[float], float], target: float, lowest: float) -> float:
    """Return where a falling function of r has come down to a target."""
    low, high = lowest, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if ratio(middle) > target else (low, middle)
    return 0.5 * (low + high)


def _two_way(sums: _Sums) -> tuple[Coefficient, ...]:
    """Return the coefficients of a complete panel: n questions, k workers, mean squares R, C and E."""
    n, k = len(sums.k), len(sums.level)
    rows = k * float(np.sum(sums.mean**2)) / (n - 1)
    columns = float(np.sum(sums.level**2)) / n
    rest = float(sums.ss.sum()) - columns
    error = rest / ((n - 1) * (k - 1)) if rest > ROUNDING * columns else 0.0
    columns /= k - 1
    total = rows + (k - 1) * error
    whole = total + k * (columns - error) / n
    if min(total, whole) <= ROUNDING * (rows + columns + error):
        return ()  # questions that do not differ at all
    absolute = (rows - error) / whole
    consistent = (rows - error) / total
    ratio = rows / error if error > 0 else np.inf
    df1, df2 = n - 1, (n - 1) * (k - 1)
    low = ratio / _quantile(df1, df2, 0.5 + 0.5 * LEVEL)
    high = ratio * _quantile(df2, df1, 0.5 + 0.5 * LEVEL)
    fixed = tuple((f - 1.0) / (f + k - 1.0) if np.isfinite(f) else 1.0 for f in (low, high))
    random = _absolute_interval(n, k, rows, columns, error, absolute)
    level = "differences of level between workers count"
    free = "differences of level between workers do not count"
    alone = (absolute, *random), (consistent, *fixed)
    means = [[_steps_up(r, k) for r in each] for each in alone]
    return (
        _icc("ICC(2,1)", f"one answer, absolute agreement: {level}", alone[0]),
        _icc("ICC(2,k)", f"the mean of {k} answers, absolute agreement", means[0]),
        _icc("ICC(3,1)", f"one answer, consistency: {free}", alone[1]),
        _icc("ICC(3,k)", f"the mean of {k} answers, consistency", means[1]),
    )


def _absolute_interval(
    n: int, k: int, rows: float, columns: float, error: float, value: float
) -> tuple[float, float]:
    """Return the interval of ICC(2,1), with Satterthwaite's degrees of freedom (Shrout and Fleiss; McGraw and Wong)."""
    # a of the columns and b of the error, both times n (1 - value): no division where agreement is perfect
    a, b = k * value, n * (1.0 - value) + k * value * (n - 1)
    above = (a * columns + b * error) ** 2
    below = (a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    if below <= 0:
        return (value, value)
    v = above / below
    f1 = _quantile(n - 1, v, 0.5 + 0.5 * LEVEL)
    f2 = _quantile(v, n - 1, 0.5 + 0.5 * LEVEL)
    rest = k * columns + (k * n - k - n) * error
    low = n * (rows - f1 * error) / (f1 * rest + n * rows)
    high = n * (f2 * rows - error) / (rest + n * f2 * rows)
    return low, high


def _quantile(df1: float, df2: float, p: float) -> float:
    """Return the quantile of the F distribution."""
    from scipy.special import fdtri

    return float(fdtri(df1, df2, p))


def _alpha(data: Answers, sums: _Sums, seed: int) -> Coefficient:
    """Return Krippendorff's alpha for interval data."""
    paired = np.flatnonzero(sums.k >= 2)
    k, ss = sums.k[paired], sums.ss[paired]
    mean = sums.mean[paired] - np.average(sums.mean[paired], weights=k)
    # Everything is a sum over questions: k, k mean, sum of squares, and that within questions, pair by pair.
    parts = np.stack([k, k * mean, k * mean**2 + ss, ss * k / (k - 1.0)])
    value = float(_alpha_of(parts.sum(axis=1)))
    if np.isnan(value):  # the questions with two answers have nothing to disagree about
        raise TrueupError(
            "all questions with two answers got the same one, so that agreement has nothing to be measured "
            "against.",
            argument="answers",
        )
    low = high = np.nan
    if len(paired) >= FEWEST:
        parts = _grouped(parts[:, np.argsort(_rank(data)[paired], kind="stable")], seed)
        rng = np.random.default_rng([seed, 1])
        size = parts.shape[1]
        drawn = rng.multinomial(size, np.full(size, 1.0 / size), size=RESAMPLES)
        resampled = _alpha_of(parts @ drawn.T.astype(np.float64))
        left_out = _alpha_of(parts.sum(axis=1)[:, None] - parts)
        low, high = _corrected(resampled, left_out, value)
    about = "all answers to questions with at least two"
    return Coefficient("Krippendorff's alpha", about, value, low, high, "alpha")


def _corrected(resampled: Floats, left_out: Floats, value: float) -> tuple[float, float]:
    """Return the interval of a bootstrap, corrected for bias and skewness by what leaving out each question shows."""
    from scipy.special import ndtr, ndtri, stdtrit

    resampled, left_out = (each[np.isfinite(each)] for each in (resampled, left_out))
    if len(resampled) <= RESAMPLES // 2 or len(left_out) < FEWEST:
        return np.nan, np.nan
    spread = left_out.mean() - left_out
    below = float(np.sum(spread**2)) ** 1.5
    skew = float(np.sum(spread**3)) / (6.0 * below) if below > 0 else 0.0
    half = 0.5 / len(resampled)
    share = np.mean(resampled < value) + 0.5 * np.mean(resampled == value)
    middle = ndtri(np.clip(share, half, 1.0 - half))
    # Student's quantile, for few questions (Hesterberg, The American Statistician 2015).
    count = len(left_out)
    reach = stdtrit(count - 1.0, 0.5 + 0.5 * LEVEL) * np.sqrt(count / (count - 1.0))
    ends = middle + np.array([-reach, reach])
    ends = middle + ends / np.maximum(1.0 - skew * ends, 0.1)
    low, high = np.quantile(resampled, ndtr(ends)).tolist()
    return low, high


def _alpha_of(sums: Floats) -> Floats:
    """Return alpha from sums over questions, NaN where all answers are the same."""
    n, first, square, within = sums
    total = square - first**2 / n
    some = total > ROUNDING * square
    share = np.divide(within, total, out=np.full(np.shape(total), np.nan), where=some)
    value: Floats = 1.0 - (n - 1.0) / n * share
    return value


def _rank(data: Answers) -> Ints:
    """Return the place of each question in the order of ids: a draw must not depend on the order of rows."""
    order = data.origin.question_ids.sort_order()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank if data.question_source is None else rank[data.question_source]


def _grouped(parts: Floats, seed: int) -> Floats:
    """Put many questions into random groups of equal size: resampling those costs less and says the same."""
    size = parts.shape[1]
    if size <= 2 * GROUPS:
        return parts
    place = np.random.default_rng([seed, 0]).permutation(size) % GROUPS
    return np.stack([np.bincount(place, row, minlength=GROUPS) for row in parts])
