"""Which workers err together, or copy one another: residual correlations, and identical answers.

    x_ij = t_j + b_i + e_ij,      r_ij = x_ij - b_i - sum_l p_lj (x_lj - b_l)

Residuals r of two workers who err independently are correlated all the same, for both helped to make the truth they
are compared with. With shares p_ij (of weights 1/max(noise_i, median noise), see `trueup.variance.worker_noise`:
nobody who looks good decides alone), variances s_i of the errors and c the covariance of those of workers i and k,

    Q_j          = sum_l p_lj^2 s_l
    E r_ij r_kj  = Q_j - p_ij s_i - p_kj s_k + c (1 - p_ij - p_kj + 2 p_ij p_kj)
    E r_ij^2     = Q_j + (1 - 2 p_ij) s_i

The s_i solve the last line, summed over the questions of each worker, at c = 0. Over the n questions that both
answered the residual correlation r has the expectation rho0 at c = 0, and the correlation of the errors is what is
beyond it:

    rho0 = sum_j E0 r_i r_k / sqrt(sum_j E r_i^2 sum_j E r_k^2),    r' = tanh(atanh r - atanh rho0)
    t    = r' sqrt(nu / (1 - r'^2)),  nu = n/phi - 2                Student, one-sided

On Fisher's scale the difference is normal for many questions; Student's distribution is right for few. phi >= 1 is
the mean product of squared standardised residuals of two workers, above 1 where some questions are harder than
others, which makes correlations more variable. Residuals are drawn in to four standard deviations, and where those of
a worker clearly depend on the truth (a worker who uses the scale in another way, or does not look) that is taken off
first.

Two who copy draw the truth toward themselves, which makes the others seem to err together as well: of each pair found
one is left out of the truths, and all is done again.

**Identical answers.** On a coarse scale ties are common. With m_j the share of equal pairs among the answers to a
question and a_i how many more ties than that worker i has with all but k, two who do not copy are equal on `a_i a_k
sum_j m_j` questions; the number of equal answers is compared with that, and one standard error of a_i a_k more, by
the binomial distribution.

The false discovery rate of both together is held at 5% (Benjamini and Hochberg, Journal of the Royal Statistical
Society B 1995), and what is too small to matter is not reported. With R the correlations of the pairs found, and 0
elsewhere, n workers are worth `n / (1 + (n - 1) mean R)` independent ones (Kish, Survey Sampling 1965).

With more than two million answers or fifty thousand questions a sample of the questions is looked at, with about a
hundred answers of each worker: two who copy are seen in a hundred shared questions as well as in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers import Answers
from trueup.arrays import compact, expand, group_order, offsets, rectangles
from trueup.draws import id_order, sample_of
from trueup.errors import TrueupError, counted, quoted
from trueup.io.results import make_frame
from trueup.result import Estimate
from trueup.variance.worker_noise import WorkerNoise, worker_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.arrays import Bools, Floats, Ints

    Sides = tuple[Floats | None, Floats | None]

#: Shared questions below which a pair is not looked at.
FEWEST = 8
#: Answers that a question must have to show a pair, and workers below which nothing can be told.
CROWD, FEWEST_WORKERS = 3, 4
#: Workers looked at, at most: those with most answers.
MOST_WORKERS = 2000
#: False discovery rate, half of it for each of the two tests.
RATE = 0.05
#: Correlation, and share of identical answers beyond ties, below which a pair is not worth a word.
MATTERS = 0.2
#: Residuals are drawn in to this many standard deviations.
CLIP = 4.0
#: A residual depends on the truth beyond this many standard errors of its slope.
CLEAR = 3.0
#: Rounds, and at least so many where they cost more than a problem with this many pairs of answers.
ROUNDS, FEWEST_ROUNDS, EASY = 20, 3, 2e7
#: Turns that find the variances of the workers, pseudo-answers at the typical one, and the smallest variance.
TURNS, PSEUDO, SMALLEST = 10, 2.0, 1e-3
#: Answers, or questions, above which a sample of the questions is looked at; how many answers of each worker that has,
#: and between which limits of all.
MANY, MANY_QUESTIONS = 2_000_000, 50_000
EACH, ENOUGH, MOST_ANSWERS = 100, 300_000, 1_000_000
#: Pairs of answers that are looked at, at most; by products of whole arrays a pair costs so many times less.
MOST_WORK = 5e8
DENSE = 16.0
#: Entries of a piece.
PIECE = 1 << 22
SHOWN = 10
TINY = 1e-300

NO_ERRORS = "Whether errors are correlated cannot be told: it takes four workers, and questions with three answers."
UNSEEN = "An error that all workers share cannot be seen in the answers."


@dataclass(frozen=True, eq=False)
class Together:
    """Pairs of workers who err together or give identical answers, the clearest first.

    Attributes
    ----------
    answers : Answers
    first, second : arrays
        Numbers of the two workers of each pair found.
    shared : array
        Questions that both answered.
    correlation, z : arrays
        Correlation of their errors, and how many standard errors that is from independence; NaN where the questions
        show nothing of it.
    identical, expected : arrays
        Share of identical answers, and what ties explain of it.
    p_value : array
        The smaller one of the two tests.
    copies : array
        Whether identical answers were found.
    n_workers, n_pairs, n_questions : int
        How many were looked at.
    effective : float
        How many independent workers they are worth.
    notes : tuple of str
        What was not looked at.
    """

    answers: Answers
    first: Ints
    second: Ints
    shared: Ints
    correlation: Floats
    z: Floats
    identical: Floats
    expected: Floats
    p_value: Floats
    copies: Bools
    n_workers: int
    n_pairs: int
    n_questions: int
    effective: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.first)

    def among(self, looked: Looked) -> Together:
        """Return what was found in a sample, with the numbers that workers have among all answers."""
        first, second = looked.workers[self.first], looked.workers[self.second]
        notes = (*self.notes, looked.note)
        return replace(self, answers=looked.whole, first=first, second=second, notes=notes)

    @property
    def pairs(self) -> Any:
        """Frame with a row per pair found."""
        ids = self.answers.worker_ids
        columns: dict[str, Any] = {
            "worker": ids.take(self.first),
            "other": ids.take(self.second),
            "shared": self.shared,
            "correlation": self.correlation,
            "z": self.z,
            "identical": self.identical,
            "identical_expected": self.expected,
            "p_value": self.p_value,
        }
        return make_frame(
            self.answers.origin.kind, columns, null_columns=("correlation", "z", "p_value")
        )

    @property
    def partner(self) -> Ints:
        """Number of the worker with whom each one is most clearly tied, -1 where there is none."""
        partner = np.full(self.answers.n_workers, -1)
        for a, b in ((self.first, self.second), (self.second, self.first)):
            for mine, other in zip(a[::-1].tolist(), b[::-1].tolist(), strict=True):
                partner[mine] = other
        return partner

    @property
    def copier(self) -> Bools:
        """Whether each worker is in a pair with identical answers."""
        found = np.zeros(self.answers.n_workers, dtype=bool)
        found[self.first[self.copies]] = found[self.second[self.copies]] = True
        return found

    @property
    def summary(self) -> str:
        """What was found, in one sentence."""
        if self.n_pairs == 0:
            return f"No two workers share {FEWEST} questions: whether some err together cannot be told."
        looked = f"{counted(self.n_pairs, 'pair')} of {counted(self.n_workers, 'worker')} looked at"
        if len(self) == 0:
            if NO_ERRORS in self.notes:
                return f"No two workers give identical answers more often than ties explain ({looked})."
            return f"No two workers err together or copy each other ({looked})."
        verb = "errs" if len(self) == 1 else "err"
        gives = "gives" if len(self) == 1 else "give"
        return (
            f"{counted(len(self), 'pair')} of workers {verb} together or {gives} identical answers ({looked}): "
            f"{counted(self.n_workers, 'worker')} are worth {self.effective:.1f} independent ones."
        )

    def describe(self, number: int) -> str:
        """Return a sentence on one of the pairs."""
        ids = self.answers.worker_ids
        one, other = (
            quoted(str(ids.tolist(each[number : number + 1])[0])).strip('"')
            for each in (self.first, self.second)
        )
        parts = []
        if not np.isnan(self.correlation[number]) and self.correlation[number] >= MATTERS:
            parts.append(f"errors correlate {self.correlation[number]:.2f}")
        if self.copies[number]:
            parts.append(
                f"{self.identical[number]:.0%} of answers identical, {self.expected[number]:.0%} expected"
            )
        return f"{one} and {other}: {'; '.join(parts)} ({counted(int(self.shared[number]), 'shared question')})"

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN))

    def lines(self, most: int) -> list[str]:
        """Return it in words, with so many pairs."""
        lines = [self.summary]
        lines += [f"  {self.describe(number)}" for number in range(min(most, len(self)))]
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most:,} more")
        return [*lines, *self.notes, UNSEEN]


def together(
    answers: Any, *, noise: WorkerNoise | None = None, seed: int = 0, **options: Any
) -> Together:
    """Find workers who err together or copy one another.

    Parameters
    ----------
    answers : Estimate, or what `trueup.estimate` takes
        `options` are those of `Answers.of`. The truths are made here, whatever the first step of an estimate was: the
        pull of a pair on its own truths must be known to be taken off.
    noise : WorkerNoise, optional
        Of these answers, where it has been computed already. That of a sample is computed here.
    seed : int
        Of the sample of questions that is looked at where there are very many.

    Examples
    --------
    >>> import trueup
    >>> x = trueup.simulate(workers=8, questions=60, seed=1).answers.to_matrix()
    >>> x[5] = x[2] + 0.1 * x[6]
    >>> print(together(x).describe(0))
    2 and 5: errors correlate 0.94 (60 shared questions)
    """
    data = answers.answers if isinstance(answers, Estimate) else Answers.of(answers, **options)
    if data.n_panels > 1:
        raise TrueupError("answers: these are panels; take one of them, `answers.panel(b)`.")
    looked = Looked.of(data, seed)
    if looked is not None:
        return together(looked.answers, seed=seed).among(looked)
    flat = _Flat.of(data, seed)
    if len(flat.one) == 0:
        return _nothing(flat)
    if noise is None and isinstance(answers, Estimate):
        noise = noise_of(answers)
    noise = worker_noise(data) if noise is None else noise
    errors = _errors(flat, noise)
    same = _identical(flat)
    return _gather(flat, errors, same)


def noise_of(estimate: Estimate) -> WorkerNoise | None:
    """Return the noise of the workers if the estimate has it already, of its answers as they were read."""
    taken = estimate.biases is not None or estimate.aggregate.bias is not None
    return None if taken or estimate.calibration is not None else estimate.second_step.noise


@dataclass(frozen=True, eq=False)
class Looked:
    """A sample of the questions of a large problem.

    Attributes
    ----------
    whole, answers : Answers
        All answers, and those of the sample.
    workers : array
        Number that each worker of the sample has among all.
    """

    whole: Answers
    answers: Answers
    workers: Ints

    @classmethod
    def of(cls, data: Answers, seed: int = 0) -> Looked | None:
        """Draw a sample; None where there are not that many answers."""
        if data.n_answers <= MANY and data.n_questions <= MANY_QUESTIONS:
            return None
        wanted = min(max(EACH * data.n_workers, ENOUGH), MOST_ANSWERS)
        questions = sample_of(data, seed, max(data.n_questions * wanted // data.n_answers, FEWEST))
        if questions is None:
            return None
        present = np.zeros(data.n_workers, dtype=bool)
        present[data.workers[expand(data.indptr[questions], data.counts[questions])]] = True
        return cls(data, data.subset(questions), np.flatnonzero(present))

    def spread(self, each: Floats, empty: float) -> Floats:
        """Return numbers of the workers of the sample as numbers of all, `empty` for the others."""
        result = np.full(self.whole.n_workers, empty)
        result[self.workers] = each
        return result

    @property
    def note(self) -> str:
        """Say that it is a sample."""
        return f"A sample of {self.answers.n_questions:,} of {self.whole.n_questions:,} questions was looked at."


@dataclass(frozen=True, eq=False)
class _Flat:
    """The answers looked at, and the pairs of chosen workers who share enough questions.

    `indptr`, `worker`, `value` are the answers to the sampled `questions` (None: all of them); `chosen` the workers
    looked at, `mine` which of the answers are theirs, `rows` where those of each question begin and `columns` whose
    they are; `one`, `two` the places of each pair among the chosen, `shared` how many questions both answered.
    """

    data: Answers
    indptr: Ints
    worker: Ints
    value: Floats
    questions: Ints | None
    chosen: Ints
    mine: Ints
    rows: Ints
    columns: Ints
    notes: tuple[str, ...]
    one: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    two: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shared: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, data: Answers, seed: int) -> _Flat:
        notes: list[str] = []
        count = np.bincount(data.workers, minlength=data.n_workers)
        chosen = np.arange(data.n_workers)
        if data.n_workers > MOST_WORKERS:
            rank = np.empty(data.n_workers, dtype=np.int64)
            rank[id_order(data)] = np.arange(data.n_workers)
            chosen = np.sort(np.lexsort((rank, -count))[:MOST_WORKERS])
            notes.append(
                f"Only the {MOST_WORKERS:,} workers with most answers, of {data.n_workers:,}, were looked at."
            )
        column = np.full(data.n_workers, -1)
        column[chosen] = np.arange(len(chosen))
        looked = np.add.reduceat((column[data.workers] >= 0).astype(np.float64), data.indptr[:-1])
        work = min(float(np.sum(looked**2)), len(chosen) ** 2 * data.n_questions / DENSE)
        indptr, inside, questions = data.indptr, slice(None), None
        if work > MOST_WORK:
            questions = sample_of(data, seed, max(int(data.n_questions * MOST_WORK / work), FEWEST))
        where: Any = inside
        if questions is not None:
            notes.append(f"A sample of {len(questions):,} questions was looked at.")
            used = np.zeros(data.n_questions, dtype=bool)
            used[questions] = True
            where = np.flatnonzero(np.repeat(used, data.counts))
            indptr = offsets(data.counts[questions])
        worker = data.workers[where].astype(np.int64)
        mine = np.flatnonzero(column[worker] >= 0)
        rows = np.searchsorted(mine, indptr)
        flat = cls(
            data,
            indptr,
            worker,
            data.values[where],
            questions,
            chosen,
            mine,
            rows,
            column[worker[mine]],
            tuple(notes),
        )
        if len(chosen) < 2:
            return flat
        one, two = np.triu_indices(len(chosen), 1)
        (shared,) = replace(flat, one=one, two=two).pair_sums((None, None))
        enough = shared >= FEWEST
        return replace(flat, one=one[enough], two=two[enough], shared=shared[enough])

    @property
    def counts(self) -> Ints:
        """Answers of each question."""
        return np.diff(self.indptr)

    def spread(self, per_question: Floats) -> Floats:
        """Return the number of its question for each answer."""
        return np.repeat(per_question, self.counts)

    def sums(self, per_answer: Floats) -> Floats:
        """Return sums over the answers of each question."""
        total: Floats = np.add.reduceat(per_answer, self.indptr[:-1])
        return total

    def pair_sums(self, *wanted: Sides) -> list[Floats]:
        """Return for each pair sums over the questions that both answered, see `_pair_sums`."""
        place = np.full((len(self.chosen), len(self.chosen)), -1, dtype=np.int64)
        place[self.one, self.two] = np.arange(len(self.one))
        return _pair_sums(self.rows, self.columns, place, len(self.one), wanted)


def _pair_sums(
    rows: Ints,
    columns: Ints,
    place: Ints,
    pairs: int,
    wanted: Sequence[Sides],
) -> list[Floats]:
    """Return sums over rows of `left of worker i times right of worker k`, for pairs i < k that are in a row together.

    `columns` are the workers of each row, in order, and `place` says which pair (or -1) two workers are; None stands
    for ones. Where most workers are in most rows by products of whole arrays, else pair by pair.
    """
    size = np.diff(rows)
    n, m = len(place), len(size)
    if float(np.sum(size.astype(np.float64) ** 2)) > n * n * m / DENSE:
        return _dense_sums(rows, columns, place, wanted)
    totals = [np.zeros(pairs) for _ in wanted]
    several = size >= 2
    if not several.all():  # an answer alone makes no pair
        inside = expand(rows[:-1][several], size[several])
        rows, columns = offsets(size[several]), columns[inside]
        wanted = [(_take(a, inside), _take(b, inside)) for a, b in wanted]
    for _, at in rectangles(rows, PIECE, square=True):
        left, right = np.triu_indices(at.shape[1], 1)
        i, k = at[:, left].ravel(), at[:, right].ravel()
        pair = place[columns[i], columns[k]]
        used = pair >= 0
        i, k, pair = i[used], k[used], pair[used]
        for total, (a, b) in zip(totals, wanted, strict=True):
            left_side, right_side = _take(a, i), _take(b, k)
            if left_side is None or right_side is None:
                weight = right_side if left_side is None else left_side
            else:
                weight = left_side * right_side
            np.add(total, np.bincount(pair, weight, minlength=pairs), out=total)
    return totals


def _take(values: Floats | None, at: Ints) -> Floats | None:
    return None if values is None else values[at]


def _dense_sums(rows: Ints, columns: Ints, place: Ints, wanted: Sequence[Sides]) -> list[Floats]:
    """Return the same by products of whole arrays, rows x workers, a piece at a time."""
    n, m = len(place), len(rows) - 1
    row = np.repeat(np.arange(m), np.diff(rows))
    one, two = np.nonzero(place >= 0)
    order = np.argsort(place[one, two], kind="stable")
    one, two = one[order], two[order]
    step = max(1, PIECE // n)

    def table(a: Floats | None, b: Floats | None) -> Floats:
        total = np.zeros((n, n))
        for start in range(0, m, step):
            here = slice(int(rows[start]), int(rows[min(start + step, m)]))
            sides = []
            for each in (a,) if b is a else (a, b):
                side = np.zeros((min(step, m - start), n))
                side[row[here] - start, columns[here]] = 1.0 if each is None else each[here]
                sides.append(side)
            total += sides[0].T @ sides[-1]
        return total

    totals: list[Floats] = []
    last: tuple[Any, Any, Floats] | None = None
    for a, b in wanted:
        if last is not None and last[0] is b and last[1] is a:  # the pair the other way round
            totals.append(last[2][two, one])
            continue
        last = (a, b, table(a, b))
        totals.append(last[2][one, two])
    return totals


def _nothing(flat: _Flat) -> Together:
    """Return what is known where no two workers share enough questions."""
    none, empty = np.zeros(0), np.zeros(0, dtype=np.int64)
    n, m = len(flat.chosen), len(flat.indptr) - 1
    return Together(
        flat.data, empty, empty, empty, none, none, none, none, none, empty > 0, n, 0, m, float(n),
        flat.notes,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Errors:
    """Correlation of the errors of each pair, its z and p-value, and whether it was found."""

    correlation: Floats
    z: Floats
    p: Floats
    found: Bools


def _errors(flat: _Flat, noise: WorkerNoise) -> _Errors:
    """Find pairs whose errors are correlated; of each pair found one is left out of the truths, until no more come."""
    pairs, n = len(flat.one), flat.data.n_workers
    empty = _Errors(
        np.full(pairs, np.nan), np.full(pairs, np.nan), np.ones(pairs), np.zeros(pairs, dtype=bool)
    )
    if n < FEWEST_WORKERS or not (noise.pool > 0).any():
        return empty
    answers = np.bincount(flat.data.workers, minlength=n)
    rank = np.empty(n, dtype=np.int64)
    rank[id_order(flat.data)] = np.arange(n)
    worth = np.lexsort((-rank, answers)).argsort()[flat.chosen]  # who of two is kept
    active = np.ones(n, dtype=bool)
    errors = empty
    work = float(np.sum(np.diff(flat.rows).astype(np.float64) ** 2))
    for _ in range(int(np.clip(ROUNDS * EASY / max(work, 1.0), FEWEST_ROUNDS, ROUNDS))):
        errors = _round(flat, noise, active)
        in_use = active[flat.chosen]
        open_pairs = np.flatnonzero(errors.found & in_use[flat.one] & in_use[flat.two])
        if len(open_pairs) == 0:
            break
        best = np.zeros(len(flat.chosen))
        one, two, z = flat.one[open_pairs], flat.two[open_pairs], errors.z[open_pairs]
        np.maximum.at(best, one, z)
        np.maximum.at(best, two, z)
        # Those who seem to err together only because others copy are far less clear than those.
        mutual = (z >= best[one]) & (z >= best[two]) & (2.0 * z >= z.max())
        drop = np.where(worth[one] < worth[two], one, two)[mutual]
        active[flat.chosen[drop]] = False
    return errors


def _round(flat: _Flat, noise: WorkerNoise, active: Bools) -> _Errors:
    """Test all pairs, the truths made by active workers alone."""
    facts = noise.apart.facts
    bias = facts.bias
    assert bias is not None  # noqa: S101  set with the noise
    typical = float(np.median(noise.variance[facts.n_informative > 0]))
    typical = typical if typical > 0 else float(noise.pool.max())
    unit, worker = np.sqrt(typical), flat.worker
    y = (flat.value - bias[worker]) / unit
    weight = (active / np.maximum(noise.variance / typical, 1.0))[worker]
    total, voices = flat.sums(weight), flat.sums(active[worker].astype(np.float64))
    gross = noise.apart.gross if flat.questions is None else noise.apart.gross[flat.questions]
    usable = (voices >= CROWD) & ~gross
    inside = usable.astype(np.float64)
    p = weight / flat.spread(np.where(total > 0, total, 1.0))
    truth = flat.sums(p * y)
    r = (y - flat.spread(truth)) * flat.spread(inside)
    centre = flat.data.centre if flat.questions is None else flat.data.centre[flat.questions]
    r -= _slopes(flat, r, (centre - centre[0]) / unit + truth, inside)
    s = _moments(flat, r, p, inside)
    q = flat.sums(p * p * s[worker])
    expected = s[worker] * (1.0 - 2.0 * p) + flat.spread(q)
    limit = CLIP * np.sqrt(np.maximum(expected, 0.0))
    r = np.clip(r, -limit, limit)
    phi = _difficulty(flat, r, expected, voices, inside)

    mine = flat.mine
    use = flat.spread(inside)[mine]
    own, share, common = r[mine], p[mine] * use, flat.spread(q * inside)[mine]
    energy = own * own
    # Sums over shared questions: their number, Q, then of r_i r_k, r_i^2, r_k^2, p_i, p_k, p_i p_k.
    n, common_sum, cross, energy_1, energy_2, share_1, share_2, both = flat.pair_sums(
        (use, None),
        (common, None),
        (own, own),
        (energy, use),
        (use, energy),
        (share, use),
        (use, share),
        (share, share),
    )
    s_1, s_2 = s[flat.chosen[flat.one]], s[flat.chosen[flat.two]]
    v_1 = s_1 * (n - 2.0 * share_1) + common_sum
    v_2 = s_2 * (n - 2.0 * share_2) + common_sum
    usual = common_sum - s_1 * share_1 - s_2 * share_2
    freedom = n / phi - 2.0
    level = np.sqrt(np.maximum(v_1 * v_2, 0.0))
    size = np.sqrt(energy_1 * energy_2)
    known = (n >= FEWEST) & (freedom >= 1.0) & (level > 0) & (size > 0)

    def ratio(above: Floats, below: Floats) -> Floats:
        value = np.divide(above, below, out=np.zeros(len(above)), where=known)
        return np.clip(value, -1.0 + 1e-9, 1.0 - 1e-9)

    beyond = np.tanh(np.arctanh(ratio(cross, size)) - np.arctanh(ratio(usual, level)))
    freedom = np.maximum(freedom, 1.0)
    p_value = np.where(known, _student(beyond, freedom), 1.0)
    # The covariance of the errors, then what it took off the variances: a share of the other in the truth.
    reach = n - share_1 - share_2 + 2.0 * both
    c = np.divide(cross - usual, reach, out=np.zeros(len(n)), where=known & (reach > 0))
    taken = 2.0 * np.maximum(c, 0.0)
    s_1 = s_1 + taken * (share_2 - both) / np.maximum(n - 2.0 * share_1 + both, 1.0)
    s_2 = s_2 + taken * (share_1 - both) / np.maximum(n - 2.0 * share_2 + both, 1.0)
    correlation = np.clip(c / np.sqrt(s_1 * s_2), -1.0, 1.0)
    found = _discoveries(p_value, known) & (correlation >= MATTERS)
    return _Errors(
        np.where(known, correlation, np.nan),
        np.where(known, _normal(p_value, beyond, freedom), np.nan),
        p_value,
        found,
    )


def _moments(flat: _Flat, r: Floats, p: Floats, inside: Floats) -> Floats:
    """Return the variance of each worker that explains its residuals, in units of the typical one.

    Solves `sum_j r_ij^2 = s_i sum_j (1 - p_ij)^2 + sum_j sum_{l != i} p_lj^2 s_l` by turns, with two more answers at
    the typical variance. Unlike the noise that weights are made of, it does not take two who copy for excellent ones.
    """
    n, worker, use = flat.data.n_workers, flat.worker, flat.spread(inside)

    def sums(values: Floats) -> Floats:
        return np.bincount(worker, values * use, minlength=n).astype(np.float64, copy=False)

    square, own, energy = p * p, sums((1.0 - p) ** 2), sums(r * r)
    s = np.ones(n)
    for _ in range(TURNS):
        others = sums(flat.spread(flat.sums(square * s[worker])) - square * s[worker])
        s = np.maximum((energy - others + PSEUDO) / (own + PSEUDO), SMALLEST)
    return s


def _slopes(flat: _Flat, r: Floats, truth: Floats, inside: Floats) -> Floats:
    """Return what the truth explains of the residuals of workers whose residuals clearly depend on it."""
    n = flat.data.n_workers
    x, use = flat.spread(truth), flat.spread(inside)

    def sums(values: Floats) -> Floats:
        return np.bincount(flat.worker, values, minlength=n).astype(np.float64, copy=False)

    count = np.maximum(sums(use), 1.0)
    x = (x - (sums(x * use) / count)[flat.worker]) * use
    xx, xr, rr = sums(x * x), sums(x * r), sums(r * r)
    slope = np.divide(xr, xx, out=np.zeros(n), where=xx > 0)
    rest = np.maximum(rr - slope * xr, 0.0) / np.maximum(count - 2.0, 1.0)
    clear = (count >= FEWEST) & (slope**2 * xx > CLEAR**2 * rest)
    return np.where(clear, slope, 0.0)[flat.worker] * x


def _difficulty(flat: _Flat, r: Floats, expected: Floats, voices: Floats, inside: Floats) -> float:
    """Return phi, the mean product of squared standardised residuals of two workers over what is usual."""
    square = np.divide(r * r, expected, out=np.zeros(len(r)), where=expected > 0)
    counts = flat.counts.astype(np.float64)
    pairs = inside * counts * (counts - 1.0)
    if pairs.sum() == 0:
        return 1.0
    first = flat.sums(square)
    product = np.sum(inside * (first**2 - flat.sums(square**2)))
    mean = np.sum(inside * first) / np.sum(inside * counts)
    # Residuals around a mean of k are correlated -1/(k - 1), and their squares 2/(k - 1)^2.
    usual = np.sum(pairs * (1.0 + 2.0 / np.maximum(voices - 1.0, 1.0) ** 2))
    return max(float(product / (usual * mean**2)), 1.0) if mean > 0 else 1.0


def _student(r: Floats, freedom: Floats) -> Floats:
    """Return the one-sided p-value of a correlation."""
    from scipy.special import stdtr

    t = r * np.sqrt(freedom / np.maximum(1.0 - r * r, TINY))
    p: Floats = np.maximum(stdtr(freedom, -t), TINY)
    return p


def _normal(p: Floats, r: Floats, freedom: Floats) -> Floats:
    """Return the normal deviate that belongs to a one-sided p-value, without loss on either side."""
    from scipy.special import ndtri

    z: Floats = np.where(r > 0, -ndtri(p), ndtri(_student(-r, freedom)))
    return z


def _discoveries(p: Floats, tested: Bools) -> Bools:
    """Return which hypotheses are rejected by Benjamini and Hochberg."""
    here = np.flatnonzero(tested)
    found = np.zeros(len(p), dtype=bool)
    if len(here) == 0:
        return found
    order = here[np.argsort(p[here], kind="stable")]
    passed = np.flatnonzero(p[order] <= 0.5 * RATE * np.arange(1, len(here) + 1) / len(here))
    if len(passed):
        found[order[: passed[-1] + 1]] = True
    return found


@dataclass(frozen=True, eq=False)
class _Same:
    """Share of identical answers of each pair, what ties explain of it, p-value, and whether it was found."""

    share: Floats
    expected: Floats
    p: Floats
    found: Bools


def _identical(flat: _Flat) -> _Same:
    """Find pairs with more identical answers than ties explain."""
    from scipy.special import betainc

    group, size = _value_groups(flat)
    k = flat.counts.astype(np.float64)
    ties = flat.sums(size - 1.0) / np.maximum(k * (k - 1.0), 1.0)
    one, two, n = flat.chosen[flat.one], flat.chosen[flat.two], flat.shared
    if not ties.any():
        nothing = np.zeros(len(n))
        return _Same(nothing, nothing, np.ones(len(n)), nothing > 0)
    equal = _equal_answers(flat, group, size)
    (usual,) = flat.pair_sums((flat.spread(ties)[flat.mine], None))
    workers = flat.data.n_workers
    had = np.bincount(flat.worker, size - 1.0, minlength=workers)
    due = np.bincount(flat.worker, flat.spread(ties * (k - 1.0)), minlength=workers)

    def eager(worker: Ints) -> Floats:
        """How many more ties than usual a worker has with all others but this one; one more for not knowing."""
        value: Floats = (np.maximum(had[worker] - equal, 0.0) + 1.0) / (
            np.maximum(due[worker] - usual, 0.0) + 1.0
        )
        return value

    # Ties that are only there because of this pair do not make ties usual: at least one among all answers, though.
    least = 1.0 / (np.sum(k * (k - 1.0)) / 2.0 + 2.0)
    rate = eager(one) * eager(two) * usual / n
    rate = np.clip(rate, least, 1.0 - 1e-9)
    # How eager they are is known up to the ties it was counted on: one standard error on the safe side.
    unsure = np.sqrt(sum(1.0 / (np.maximum(had[each] - equal, 0.0) + 1.0) for each in (one, two)))
    safe = np.minimum(rate * (1.0 + unsure), 1.0 - 1e-9)
    p = np.where(
        equal > 0, betainc(np.maximum(equal, 1.0), np.maximum(n - equal, 0.0) + 1.0, safe), 1.0
    )
    share = equal / n
    found = _discoveries(p, np.ones(len(n), dtype=bool)) & (share - rate >= MATTERS)
    return _Same(share, rate, np.maximum(p, TINY), found)


def _value_groups(flat: _Flat) -> tuple[Ints, Floats]:
    """Return for each answer the number of its group of equal answers to its question, and how many there are."""
    group = np.empty(len(flat.value), dtype=np.int64)
    for _, positions in rectangles(flat.indptr):
        value = flat.value[positions]
        order = np.argsort(value, axis=1, kind="stable")
        value = np.take_along_axis(value, order, axis=1)
        new = np.ones(value.shape, dtype=bool)
        np.not_equal(value[:, 1:], value[:, :-1], out=new[:, 1:])
        first = np.maximum.accumulate(np.where(new, np.arange(value.shape[1]), 0), axis=1)
        group[np.take_along_axis(positions, order, axis=1)] = positions[:, :1] + first
    return group, np.bincount(group, minlength=len(group))[group].astype(np.float64)


def _equal_answers(flat: _Flat, group: Ints, size: Floats) -> Floats:
    """Return the number of equal answers of each pair: both are in the same group."""
    several = size[flat.mine] >= 2
    of_chosen, columns = group[flat.mine][several], flat.columns[several]
    of_chosen, _ = compact(of_chosen, len(group))
    order = group_order(of_chosen, int(of_chosen.max(initial=0)) + 1)
    rows = offsets(np.bincount(of_chosen))
    grouped = replace(flat, rows=rows, columns=columns[order])
    return grouped.pair_sums((None, None))[0]


def _gather(flat: _Flat, errors: _Errors, same: _Same) -> Together:
    """Put both tests together."""
    found = np.flatnonzero(errors.found | same.found)
    p = np.minimum(errors.p, same.p)
    # The clearest first; where p-values end, the more identical, then the more correlated.
    order = np.lexsort(
        (flat.two[found], flat.one[found], -np.nan_to_num(errors.z[found]), p[found])
    )
    found = found[order]
    n = len(flat.chosen)
    tie = np.maximum(
        np.where(errors.found, np.nan_to_num(errors.correlation), 0.0),
        np.where(same.found, same.share, 0.0),
    )
    mean = 2.0 * float(tie.sum()) / (n * (n - 1.0))
    return Together(
        answers=flat.data,
        first=flat.chosen[flat.one[found]],
        second=flat.chosen[flat.two[found]],
        shared=flat.shared[found].astype(np.int64),
        correlation=errors.correlation[found],
        z=errors.z[found],
        identical=same.share[found],
        expected=same.expected[found],
        p_value=p[found],
        copies=same.found[found],
        n_workers=n,
        n_pairs=len(flat.one),
        n_questions=len(flat.indptr) - 1,
        effective=n / (1.0 + (n - 1.0) * mean),
        notes=flat.notes + (NO_ERRORS,) * bool(np.isnan(errors.correlation).all()),
    )
