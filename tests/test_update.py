"""New answers folded into an estimate: the same numbers as from all answers, in fewer iterations, nothing lost."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from commands import Done, full_disk, run
from trueup import Answers, Estimate, TrueupError, _update, estimate, load, simulate, update
from trueup._estimate import estimate_in_memory
from trueup.algorithms import CRH, DTD, StudentT, find
from trueup.algorithms.registry import names
from trueup.io.plain_ids import MANY

if TYPE_CHECKING:
    from trueup.algorithms import Algorithm

TIGHT: dict[str, Any] = {"tol": 1e-12, "max_iter": 2000}


def rows(
    workers: int = 20, questions: int = 120, density: float = 0.5, seed: int = 1
) -> dict[str, Any]:
    """Answers in no order, one per row."""
    matrix = simulate(workers=workers, questions=questions, seed=seed).answers.to_matrix()
    rng = np.random.default_rng(seed)
    worker, question = np.nonzero(rng.random(matrix.shape) < density)
    order = rng.permutation(len(worker))
    worker, question = worker[order], question[order]
    return {
        "question": np.array([f"q{j}" for j in question], dtype=object),
        "worker": np.array([f"w{i}" for i in worker], dtype=object),
        "answer": matrix[worker, question],
    }


def part(frame: dict[str, Any], keep: Any) -> dict[str, Any]:
    return {name: column[keep] for name, column in frame.items()}


def split(frame: dict[str, Any], share: float = 0.1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cut off the last answers, all of the last worker and all to the last questions."""
    late = np.arange(len(frame["answer"])) >= (1 - share) * len(frame["answer"])
    late |= (frame["worker"] == "w0") | np.isin(frame["question"], ["q0", "q1"])
    return part(frame, ~late), part(frame, late)


def joined(*frames: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([each[name] for each in frames]) for name in frames[0]}


def assert_alike(found: Estimate, full: Estimate, tolerance: float = 1e-9) -> None:
    """The same questions and workers in the same order, and the same numbers."""
    assert found.answers.question_ids.tolist() == full.answers.question_ids.tolist()
    assert found.answers.worker_ids.tolist() == full.answers.worker_ids.tolist()
    np.testing.assert_array_equal(found.answers.indptr, full.answers.indptr)
    np.testing.assert_array_equal(found.answers.workers, full.answers.workers)
    np.testing.assert_allclose(found.answers.values, full.answers.values, rtol=1e-9, atol=1e-12)
    unit = max(float(np.std(full.base)), 1e-6 * float(np.abs(full.base).max()), 1e-300)
    names = ("base", "estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error")
    for name in names:
        difference = np.abs(getattr(found, name) - getattr(full, name))
        assert np.array_equal(np.isnan(difference), np.isnan(getattr(full, name)))
        assert np.nanmax(difference, initial=0.0) <= tolerance * unit, name
    np.testing.assert_allclose(found.aggregate.weight, full.aggregate.weight, rtol=1e-6, atol=1e-12)


VARIANTS: dict[str, Algorithm] = {
    "dtd, no correction": DTD(correction="none"),
    "crh, variance": CRH(scale="var"),
    "crh, sums": CRH(per_count=False),
    "huber": StudentT(errors="huber"),
}


@pytest.mark.parametrize("method", [*names(), *VARIANTS])
def test_an_update_ends_where_a_full_run_ends(method: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "method": VARIANTS.get(method, method),
        "shrink": "normal",
        **TIGHT,
    }
    old, new = split(rows())
    if method == "blue":
        options["worker_variance"] = {f"w{i}": 1.0 + i for i in range(0, 20, 2)}
    full = estimate(joined(old, new), **options)
    path = estimate(old, **options).save(tmp_path / "state.trueup")
    found = update(path, new, worker_variance=options.get("worker_variance"))
    assert found.diagnosis.settled
    assert_alike(found, full, 1e-9)
    assert_alike(load(path), full, 1e-9)


@pytest.mark.parametrize("method", ["crh", "dtd", "gtm", "iptd", "pm"])
def test_an_update_needs_fewer_iterations(method: str) -> None:
    frame = rows(workers=60, questions=1000, density=0.15)
    late = np.arange(len(frame["answer"])) >= 0.99 * len(frame["answer"])
    options: dict[str, Any] = {"method": method, "shrink": "none", "max_iter": 500, "tol": 1e-6}
    full = estimate(frame, **options)
    found = update(estimate(part(frame, ~late), **options), part(frame, late))
    assert found.diagnosis.settled
    assert found.diagnosis.iterations < full.diagnosis.iterations
    np.testing.assert_allclose(found.base, full.base, atol=1e-4 * float(np.std(full.base)))


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@pytest.mark.parametrize(
    "method", ["native", "ptd", "weighted_median", "student_t", "subject_bias"]
)
def test_methods_with_several_ends_begin_anew(method: str) -> None:
    """They end by definition, or where they end depends on where they begin."""
    assert find(method).max_updates is not None or not find(method).continues
    old, new = split(rows())
    full = estimate(joined(old, new), method)
    assert_alike(update(estimate(old, method), new), full, 1e-12)


def test_what_auto_chose_stays_chosen(tmp_path: Path) -> None:
    old, new = split(rows())
    est = estimate(old)
    assert est.diagnosis.why
    found = update(est.save(tmp_path / "s"), new)
    assert (found.diagnosis.method, found.diagnosis.why) == (
        est.diagnosis.method,
        est.diagnosis.why,
    )
    assert found.plan is not None
    assert found.plan.method == "auto"


def test_one_update_after_another_is_one_update() -> None:
    frame = rows()
    options: dict[str, Any] = {"method": "dtd", "shrink": "adaptive", **TIGHT}
    n = len(frame["answer"])
    est = estimate(part(frame, slice(0, n // 2)), **options)
    for start in range(n // 2, n, n // 10):
        est = update(est, part(frame, slice(start, start + n // 10)))
    assert_alike(est, estimate(frame, **options), 1e-8)


# -- the prior -------------------------------------------------------------------------------------


@pytest.fixture
def fewer_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the prior of a tenth of the answers that it takes otherwise."""
    monkeypatch.setattr(_update, "LARGE", 5000)


@cache
def many(truth: str) -> dict[str, Any]:
    """As many answers as a problem has whose prior is kept."""
    answers, _ = simulate(workers=40, questions=520, answers_per_question=10, truth=truth, seed=3)
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    order = np.random.default_rng(4).permutation(answers.n_answers)
    frame = {
        "question": np.array([f"q{j}" for j in question], dtype=object),
        "worker": np.array([f"w{i}" for i in answers.workers], dtype=object),
        "answer": answers.values + answers.centre[question],
    }
    return part(frame, order)


@pytest.mark.usefixtures("fewer_are_many")
@pytest.mark.parametrize(("truth", "model"), [("normal", "normal"), ("clustered", "mixture")])
def test_the_prior_of_many_answers_is_kept_until_they_have_grown(
    truth: str, model: str, tmp_path: Path
) -> None:
    frame = many(truth)
    n = len(frame["answer"])
    path = estimate(part(frame, slice(0, 5_050)), "mean").save(tmp_path / "s")
    found = update(path, part(frame, slice(5_050, n)))
    full = estimate(frame, "mean")
    kept, anew = found.second_step.prior_choice, full.second_step.prior_choice
    assert kept is not None
    assert anew is not None
    assert (kept.model, kept.answers, kept.changed) == (model, 5_050, n - 5_050)
    assert (anew.model, anew.answers, anew.changed) == (model, n, 0)
    assert "was chosen earlier, from 5,050 answers, and kept" in found.diagnosis.second_step
    assert "kept" not in full.diagnosis.second_step
    assert_unordered(found, full)
    # Counted from when it was chosen, over several updates; answers that were replaced count as well.
    again = part(frame, slice(0, 200))
    last = update(path, again, duplicates="replace")
    renewed = last.second_step.prior_choice
    assert renewed is not None
    assert (renewed.model, renewed.answers, renewed.changed) == (model, n, 0)
    np.testing.assert_allclose([renewed.gain, renewed.z], [anew.gain, anew.z], rtol=1e-9)
    assert_unordered(last, full)


def assert_unordered(found: Estimate, full: Estimate) -> None:
    at = found.answers.question_ids.index_of(full.answers.question_ids)
    for name in ("base", "estimate", "lower", "upper"):
        np.testing.assert_allclose(
            getattr(found, name)[at], getattr(full, name), rtol=1e-9, atol=1e-9
        )


@pytest.mark.usefixtures("fewer_are_many")
def test_what_is_known_anew_of_the_questions_is_tried() -> None:
    frame = many("clustered")
    est = estimate(part(frame, slice(0, 5_150)), "mean")
    names = est.answers.question_ids.tolist()
    cluster = {name: str(each > np.median(est.base)) for name, each in zip(names, est.base, strict=True)}  # fmt: skip
    new = part(frame, slice(5_150, None))
    found = update(est, new, groups=cluster)
    assert found.second_step.prior_choice is not None
    assert found.second_step.prior_choice.changed == 0
    again = update(found, few(["q0"], ["new"], [1.0]))
    assert again.second_step.prior_choice is not None
    assert again.second_step.prior_choice.changed == 1
    other = update(found, few(["q0"], ["new"], [1.0]), groups={"q1": "neither"})
    assert other.second_step.prior_choice is not None
    assert other.second_step.prior_choice.changed == 0


# -- ids -------------------------------------------------------------------------------------------


def test_many_texts_are_joined_whatever_library_has_them(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    names = [f"question {j} \N{SNOWMAN}" for j in range(MANY)]
    frame = few([*names, *names], ["x"] * MANY + ["y"] * MANY, np.arange(2.0 * MANY) % 7)
    path = estimate(frame, "mean", "none").save(tmp_path / "s")
    new = few([names[5], "new", names[2]], ["z", "x", "z"], [9.0, 5.0, 1.0])
    for make in (dict, pytest.importorskip("pandas").DataFrame, pytest.importorskip("polars").DataFrame):  # fmt: skip
        found = update(path, make(new), save=False)
        assert found.answers.question_ids.tolist() == [*names, "new"]
        assert found.answers.counts[[2, 5, 6, MANY]].tolist() == [3, 3, 2, 1]
        assert found.base[MANY] == 5.0
    odd = update(path, few(["half \ud800"], ["x"], [1.0]), save=tmp_path / "odd")
    assert load(tmp_path / "odd").answers.question_ids.tolist() == [*names, "half \ud800"]
    assert odd.answers.n_questions == MANY + 1
    with pytest.raises(TrueupError, match=r"question: the ids so far are text, .* whole numbers"):
        update(path, few([1], ["z"], [1.0]))


def few(questions: Any, workers: Any, answers: Any) -> dict[str, Any]:
    return {"question": list(questions), "worker": list(workers), "answer": list(answers)}


BASE = few(["a", "a", "b", "b"], ["x", "y", "x", "y"], [1.0, 2.0, 3.0, 5.0])


def test_what_is_new_comes_last_in_order_of_appearance() -> None:
    est = estimate(BASE, "mean", "none")
    found = update(est, few(["z", "a", "c"], ["w", "w", "x"], [7.0, 6.0, 9.0]))
    assert found.answers.question_ids.tolist() == ["a", "b", "z", "c"]
    assert found.answers.worker_ids.tolist() == ["x", "y", "w"]
    assert found.base.tolist() == [3.0, 4.0, 7.0, 9.0]
    assert est.answers.n_answers == 4


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_any_library(library: str, tmp_path: Path) -> None:
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    path = estimate(BASE, "mean", "none").save(tmp_path / "s")
    found = update(path, make(few(["c", "a"], ["x", "z"], [1.0, 3.0])))
    assert type(found.questions) is type(make(BASE))
    assert found.base.tolist() == [2.0, 4.0, 1.0]


def test_numbers_and_text_are_different_ids() -> None:
    est = estimate(few([1, 1, 2, 2], ["x", "y"] * 2, [1, 2, 3, 4]), "mean", "none")
    with pytest.raises(TrueupError, match=r"question: the ids so far are whole numbers.*text"):
        update(est, few(["1"], ["z"], [1.0]))
    with pytest.raises(TrueupError, match=r"question: the ids so far are whole numbers.*numbers"):
        update(est, few([1.5], ["z"], [1.0]))
    with pytest.raises(TrueupError, match=r"worker: the ids so far are text, .* whole numbers"):
        update(est, few([1], [5], [1.0]))
    found = update(est, few([1.0, 3.0], ["z", "z"], [6.0, 1.0]))
    assert found.answers.question_ids.tolist() == [1, 2, 3]
    assert found.base.tolist() == [3.0, 3.5, 1.0]


def test_ids_of_mixed_types_stay_apart() -> None:
    est = estimate(few([1, 1, "1", "1"], ["x", "y"] * 2, [1, 2, 3, 4]), "mean", "none")
    found = update(est, few(["1", "2"], ["z", "z"], [5.0, 1.0]))
    assert found.answers.question_ids.tolist() == [1, "1", "2"]
    assert found.base.tolist() == [1.5, 4.0, 1.0]


def test_large_and_unsigned_numbers_keep_their_value() -> None:
    signed = np.array([-1, 2**53 + 1])
    est = estimate(
        {"question": np.repeat(signed, 2), "worker": [0, 1, 0, 1], "answer": [1.0, 2.0, 3.0, 4.0]},
        "mean",
        "none",
    )
    found = update(
        est,
        {
            "question": np.array([2**64 - 1, 2**53 + 1], dtype=np.uint64),
            "worker": [0, 2],
            "answer": [1.0, 5.0],
        },
    )
    assert found.answers.question_ids.tolist() == [-1, 2**53 + 1, 2**64 - 1]
    assert found.base.tolist() == [1.5, 4.0, 1.0]


# -- answers given twice ---------------------------------------------------------------------------


def test_a_repeated_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = estimate(BASE, "mean", "none").save(tmp_path / "s")
    before = path.read_bytes()
    again = few(["b", "c"], ["y", "x"], [6.0, 1.0])
    with pytest.raises(TrueupError) as error:
        update(path, again)
    assert 'worker "y" on question "b"' in str(error.value)
    assert 'duplicates="replace"' in str(error.value)
    with pytest.raises(TrueupError, match="were given before"):
        update(path, again, duplicates="mean")
    assert path.read_bytes() == before
    assert update(path, again, duplicates="first", save=False).base.tolist() == [1.5, 4.0, 1.0]
    assert update(path, again, duplicates="replace").base.tolist() == [1.5, 4.5, 1.0]
    assert load(path).answers.n_answers == 5


def test_answers_repeated_among_the_new_ones() -> None:
    est = estimate(BASE, "mean", "none")
    twice = few(["c", "c"], ["x", "x"], [1.0, 2.0])
    rules: tuple[Literal["error", "replace"], ...] = ("error", "replace")
    for each in rules:
        with pytest.raises(TrueupError, match=r'repeats a worker.*worker "x" on question "c"'):
            update(est, twice, duplicates=each)
    assert update(est, twice, duplicates="mean").base[2] == 1.5
    assert update(est, twice, duplicates="first").base[2] == 1.0
    with pytest.raises(TrueupError, match='duplicates: "last" is not one of'):
        update(est, twice, duplicates="last")  # type: ignore[arg-type]
    with pytest.raises(TrueupError, match=r"duplicates: array.* is not one of"):
        update(est, twice, duplicates=np.ones(2))  # type: ignore[arg-type]


def test_new_answers_have_the_unit_of_the_old_ones(tmp_path: Path) -> None:
    answers = ["1 kg", "2 kg", "3 kg", "4 kg"]
    old = {"question": ["a", "a", "b", "b"], "worker": ["x", "y"] * 2, "answer": answers}
    more = {"question": ["c", "c"], "worker": ["x", "y"], "answer": ["5000 g", "6000 g"]}
    path = estimate(old, strip_units=True, method="mean").save(tmp_path / "s")
    before = path.read_bytes()
    with pytest.raises(TrueupError, match='the new answers are in "g", the old ones in "kg"'):
        update(path, more, strip_units=True)
    assert path.read_bytes() == before
    found = update(path, {**more, "answer": ["5 kg", "6"]}, strip_units=True)
    assert found.base.tolist() == [1.5, 3.5, 5.5]


# -- what is known besides -------------------------------------------------------------------------


def test_scale_and_variances_of_answers_go_on(tmp_path: Path) -> None:
    frame = rows(10, 40)
    frame = {**frame, "answer": np.exp(frame["answer"]), "se2": 1.0 + np.arange(len(frame["answer"])) % 3}  # fmt: skip
    old, new = split(frame)
    options: dict[str, Any] = {
        "method": "dtd", "transform": "log", "bounds": (0, 1e6), "answer_variance": "se2", **TIGHT,
    }  # fmt: skip
    full = estimate(joined(old, new), **options)
    path = estimate(old, **options).save(tmp_path / "s")
    assert_alike(update(path, new, answer_variance="se2", save=False), full)
    ready = Answers.of(new, answer_variance="se2")
    with pytest.raises(TrueupError, match="answer_variance: the old answers have one, the new"):
        update(path, new)
    options["bounds"] = (0.0, 1e6)
    assert_alike(update(estimate(old, **options), ready), full)


def test_groups_covariates_and_gold_go_on(tmp_path: Path) -> None:
    frame = rows(10, 60)
    number = np.array([int(name[1:]) for name in frame["question"]])
    frame |= {"kind": np.where(number % 2, "odd", "even").astype(object), "size": number % 7 + 0.5}
    gold = {f"q{j}": 0.1 * j for j in range(30)}
    old, new = split(frame)
    options: dict[str, Any] = {"method": "dtd", "groups": "kind", "covariates": "size", **TIGHT}
    full = estimate(joined(old, new), gold=gold, **options)
    first = {name: truth for name, truth in gold.items() if name in set(old["question"])}
    path = estimate(old, gold=first, **options).save(tmp_path / "s")
    found = update(path, new, groups="kind", covariates="size", gold=gold)
    assert_alike(found, full, 1e-7)
    assert found.groups is not None
    assert full.groups is not None
    one, two = (each.ids.take(each.codes).tolist() for each in (found.groups, full.groups))
    assert one == two
    with pytest.raises(TrueupError, match="covariates: every question needs them"):
        update(path, few(["new"], ["w1"], [1.0]), groups={"new": "odd"})
    with pytest.raises(TrueupError, match="The state has none"):
        update(estimate(BASE, "mean"), few(["c"], ["x"], [1.0]), covariates={"c": 1.0})
    again = update(path, few(["q3"], ["new"], [1.0]))  # no new question: all is known
    assert again.question_data is not None
    assert again.question_data.gold is not None
    assert np.sum(~np.isnan(again.question_data.gold)) == 30


def test_variances_given_for_each_question_cannot_go_on() -> None:
    est = estimate(BASE, "mean", variance=np.array([1.0, 2.0]))
    with pytest.raises(TrueupError, match="variance: it was given for each question"):
        update(est, few(["c"], ["x"], [1.0]))
    assert update(est, few(["a"], ["z"], [1.0])).answers.n_answers == 5


# -- the file --------------------------------------------------------------------------------------


def test_the_state_is_written_where_it_should_be(tmp_path: Path) -> None:
    path = estimate(BASE, "crh").save(tmp_path / "s")
    before = path.read_bytes()
    new = few(["c"], ["x"], [1.0])
    update(path, new, save=False)
    update(path, new, save=tmp_path / "other")
    assert path.read_bytes() == before
    update(path, new)
    assert path.read_bytes() == (tmp_path / "other").read_bytes() != before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "s"]


def test_a_state_changed_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = estimate(BASE, "crh").save(tmp_path / "s")
    other = estimate(BASE, "mean").save(tmp_path / "other")

    def meanwhile(*given: Any, **more: Any) -> Any:
        shutil.copy(other, path)
        return estimate_in_memory(*given, **more)

    monkeypatch.setattr("trueup._update.estimate_in_memory", meanwhile)
    with pytest.raises(TrueupError, match="was changed meanwhile, and nothing is written"):
        update(path, few(["c"], ["x"], [1.0]))
    assert path.read_bytes() == other.read_bytes()


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(TrueupError, match='state: found "dict"'):
        update({}, BASE)  # type: ignore[arg-type]
    with pytest.raises(TrueupError, match="not found"):
        update("nothing.trueup", BASE)
    with pytest.raises(TypeError, match="unexpected keyword argument 'shrink'"):
        update(estimate(BASE, "mean"), BASE, shrink="none")  # type: ignore[call-arg]
    with pytest.raises(TrueupError, match="method: an estimate knows its method"):
        update(estimate(BASE, "mean"), BASE, method="crh")


class Updates(RuleBasedStateMachine):
    """Whatever comes, the state is that of a full run over all answers so far."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "state.trueup")
        self.answers: dict[tuple[int, int], float] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    def frame(self, pairs: dict[tuple[int, int], float]) -> dict[str, Any]:
        questions, workers = zip(*pairs, strict=True)
        return few([f"q{j}" for j in questions], [f"w{i}" for i in workers], pairs.values())

    pairs = st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 4)),
        st.integers(-50, 50).map(lambda each: each / 4),
        min_size=1,
        max_size=12,
    )

    @initialize(method=st.sampled_from(["mean", "median", "crh"]), pairs=pairs)
    def begin(self, method: str, pairs: dict[tuple[int, int], float]) -> None:
        self.options: dict[str, Any] = {"method": method, "shrink": "normal", **TIGHT}
        # Enough answers of everybody for a single place where the loop ends.
        whole = {(j, i): float((7 * j + 3 * i * i) % 11) for j in range(6) for i in range(4)}
        self.answers = whole | pairs
        estimate(self.frame(self.answers), **self.options).save(self.path)

    @rule(pairs=pairs)
    def fold_in(self, pairs: dict[tuple[int, int], float]) -> None:
        new = {pair: value for pair, value in pairs.items() if pair not in self.answers}
        if new:
            update(self.path, self.frame(new))
            self.answers |= new

    @rule(pairs=pairs)
    def replace(self, pairs: dict[tuple[int, int], float]) -> None:
        update(self.path, self.frame(pairs), duplicates="replace")
        self.answers |= pairs

    @rule(pairs=pairs)
    def keep(self, pairs: dict[tuple[int, int], float]) -> None:
        update(self.path, self.frame(pairs), duplicates="first")
        self.answers |= {pair: value for pair, value in pairs.items() if pair not in self.answers}

    @rule()
    def save_again(self) -> None:
        before = self.path.read_bytes()
        load(self.path).save(self.path)
        assert self.path.read_bytes() == before

    @rule(bad=st.sampled_from(["repeated", "type", "nan", "nothing"]))
    def fail(self, bad: str) -> None:
        before = self.path.read_bytes()
        pair = next(iter(self.answers))
        frame = {
            "repeated": self.frame({pair: 1.0}),
            "type": few([1], ["w0"], [1.0]),
            "nan": few(["q0"], ["w0"], [float("inf")]),
            "nothing": few([], [], []),
        }[bad]
        with pytest.raises(TrueupError):
            update(self.path, frame)
        assert self.path.read_bytes() == before

    @invariant()
    def as_from_all_answers(self) -> None:
        if self.answers:
            found, full = load(self.path), estimate(self.frame(self.answers), **self.options)
            assert found.answers.n_answers == len(self.answers)
            order = found.answers.question_ids.index_of(full.answers.question_ids)
            for name in ("base", "estimate", "std_error"):
                np.testing.assert_allclose(
                    getattr(found, name)[order], getattr(full, name), rtol=1e-6, atol=1e-6
                )


TestUpdates = Updates.TestCase
TestUpdates.settings = hypothesis.settings(
    max_examples=8, stateful_step_count=8, deadline=None, derandomize=True
)
TestUpdates = pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")(TestUpdates)


# -- the command line ------------------------------------------------------------------------------


def command(*arguments: str | Path) -> Done:
    pytest.importorskip("cyclopts", reason='needs pip install "trueup[cli]"')
    pytest.importorskip("pyarrow", reason='needs pip install "trueup[cli]"')
    return run(*arguments)


def written(path: Path, frame: dict[str, Any]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(frame)
        writer.writerows(zip(*frame.values(), strict=True))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A state, new answers, and all answers."""
    old, new = split(rows(12, 40))
    state = tmp_path / "state.trueup"
    done = command(
        "estimate", written(tmp_path / "old.csv", old), "--method", "crh", "--save", state
    )
    assert done[0] == 0, done
    assert f"Written: {state}" in done[1]
    return (
        state,
        written(tmp_path / "new.csv", new),
        written(tmp_path / "all.csv", joined(old, new)),
    )


def test_the_command_updates_the_state_and_says_what_was_added(
    files: tuple[Path, Path, Path],
) -> None:
    state, new, every = files
    folder = state.parent
    code, out, err = command(
        "update", state, new, "-o", folder / "t.csv", "--workers", folder / "w.csv",
        "--report", folder / "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    n_new = len(new.read_text().splitlines()) - 1
    lines = out.splitlines()
    assert lines[0] == f"Added: {n_new} answers, 2 questions and 1 worker"
    assert lines[1].startswith("The first step took ")
    assert "answers from 12 workers to 40 questions" in lines[2]
    assert lines[-1] == f"Written: {state}"
    assert command("estimate", every, "--method", "crh", "-o", folder / "full.csv")[0] == 0
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("t.csv", "full.csv")]
    tables = [list(csv.DictReader(text.splitlines())) for text in texts]
    assert [row["question"] for row in tables[0]] == [row["question"] for row in tables[1]]
    for name in ("estimate", "lower", "upper"):
        one, two = ([float(row[name]) for row in table] for table in tables)
        np.testing.assert_allclose(one, two, atol=1e-4)
    assert "<html" in (folder / "r.html").read_text(encoding="utf-8")
    assert load(state).answers.n_workers == 12


def test_the_command_as_json_and_to_another_file(files: tuple[Path, Path, Path]) -> None:
    state, new, _ = files
    before = state.read_bytes()
    other = state.with_name("other.trueup")
    code, out, err = command("update", state, new, "--format", "json", "--state-out", other)
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["added"]["questions"] == 2
    assert content["added"]["workers"] == 1
    assert content["added"]["repeated"] == 0
    assert content["diagnosis"]["iterations"] >= 1
    assert state.read_bytes() == before
    assert load(other).answers.n_questions == 40
    code, out, err = command("update", other, new, "--duplicates", "replace")
    assert code == 0
    assert f"{content['added']['answers']} earlier answers replaced by new ones" in out
    assert "merged" not in out


def test_the_command_fails_in_one_line_and_leaves_the_state(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    state, new, every = files
    before = state.read_bytes()
    bad = tmp_path / "bad.trueup"
    bad.write_bytes(before[:-5])
    odd = written(tmp_path / "odd.csv", few([1], [2], [3.0]))
    for arguments, says in (
        ((state, every), "--duplicates replace"),
        ((state, tmp_path / "none.csv"), "none.csv"),
        ((tmp_path / "none.trueup", new), "not found"),
        ((bad, new), "damaged or no state of trueup"),
        ((state, odd), "the ids so far are text"),
        ((state, new, "-o", state), "must end in"),
        ((state, new, "-o", new), "is used already"),
        ((state, new, "--state-out", tmp_path / "x.csv"), "must end in .trueup"),
        ((tmp_path / "state", new), "must end in .trueup"),
    ):
        code, out, err = command("update", *arguments)
        assert (code, out) == (1, ""), arguments
        assert err.startswith("trueup: ")
        assert err.count("\n") == 1
        assert says in err
        assert state.read_bytes() == before
    assert command("update", state)[0] == 2


def test_a_full_disk_leaves_the_old_state_and_no_other_file(files: tuple[Path, Path, Path]) -> None:
    state, new, _ = files
    before, there = state.read_bytes(), sorted(state.parent.iterdir())
    for limit in (1000, len(before) - 1):
        with full_disk(limit):
            code, out, err = command("update", state, new, "-o", state.with_name("truths.csv"))
        assert (code, out) == (1, "")
        assert err.count("\n") == 1
        assert "too large" in err
        assert state.read_bytes() == before
        assert sorted(state.parent.iterdir()) == there


def test_an_interrupt_leaves_the_old_state(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, new, _ = files
    before, there = state.read_bytes(), sorted(state.parent.iterdir())

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trueup.io.archive.os.fsync", interrupted)
    assert command("update", state, new) == (130, "", "trueup: interrupted\n")
    assert state.read_bytes() == before
    assert sorted(state.parent.iterdir()) == there
