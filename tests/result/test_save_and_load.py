"""An estimate in a file: it comes back as it was, or with one clear error."""

from __future__ import annotations

import datetime as dt
import decimal
import errno
import hashlib
import io
import json
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trueup
from commands import full_disk
from trueup import Answers, Estimate, TrueupError, estimate, load, simulate, update
from trueup.algorithms import CRH, DTD, Algorithm
from trueup.io import archive
from trueup.io.plain_ids import MANY, pack, unpack
from trueup.io.table import Ids
from trueup.pipeline.solution import COLUMNS
from trueup.result.state import OLDEST, VERSION
from trueup.shrinkage import EBE

if TYPE_CHECKING:
    from collections.abc import Callable

ODD = (
    "plain",
    "",
    'a "quote", a comma',
    "two\nlines\r\n",
    "emoji 👩‍👩‍👧 🎉",
    "עברית מימין לשמאל",
    "\u202egnirts desrever",
    "nul \0 inside",
    "../../etc/passwd",
    "half of a pair \ud800",
    " 1",
    "1",
)


def small(seed: int = 1, workers: int = 8, questions: int = 40) -> Answers:
    return simulate(workers=workers, questions=questions, seed=seed).answers


def assert_same(found: Estimate, expected: Estimate) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name, column in expected.worker_columns.items():
        if name == "worker":
            assert found.worker_columns[name].tolist() == column.tolist()
        elif name == "flag":
            assert found.worker_columns[name] == column
        else:
            np.testing.assert_array_equal(found.worker_columns[name], column)
    assert found.answers.question_ids.tolist() == expected.answers.question_ids.tolist()
    assert found.diagnosis == expected.diagnosis
    assert str(found) == str(expected)


def test_what_is_saved_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    est = estimate(small())
    path = est.save(tmp_path / "state.trueup")
    again = load(path)
    assert_same(again, est)
    assert again.questions.equals(est.questions)
    assert again.workers.equals(est.workers)


def test_what_follows_is_found_again(tmp_path: Path) -> None:
    est = estimate(small(), method="dtd")
    again = load(est.save(tmp_path / "state.trueup"))
    assert "second_step" not in vars(again.solution)  # until it is asked for
    np.testing.assert_array_equal(again.second_step.posterior.mean, est.second_step.posterior.mean)
    assert again.second_step is again.second_step


@pytest.mark.parametrize(
    "options",
    [
        {"method": "mean", "shrink": "none"},
        {"method": CRH(loss="absolute", scale="var"), "shrink": EBE(positive=True), "variance": 0.3},
        {"method": DTD(preset="paper"), "shrink": "normal", "caution": 0.5, "level": 0.8},
        {"method": "subject_bias", "max_iter": 2, "tol": 0.0, "seed": 7},
        {"method": "gtm", "bias": True, "variance": "plugin"},
        {"method": "kdem", "variance": np.full(40, 0.25)},
        {"groups": ["a", "b"] * 20, "covariates": np.arange(40.0), "gold": dict.fromkeys(range(10), 0.5)},
        {"gold": {j: j / 7 for j in range(25)}, "method": "dtd"},
    ],
    ids=["mean", "own parameters", "paper", "cut short", "bias", "variances", "known", "gold"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_every_plan_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    est = estimate(small(), **options)
    again = load(est.save(tmp_path / "state.trueup"))
    assert_same(again, est)
    assert again.aggregate.algorithm == est.aggregate.algorithm
    assert est.plan is not None
    assert again.plan is not None
    assert again.plan.rule == est.plan.rule
    np.testing.assert_array_equal(again.second_step.marks, est.second_step.marks)


@pytest.mark.parametrize("transform", ["log", "log1p", "logit"])
def test_scale_and_variances_come_back(tmp_path: Path, transform: str) -> None:
    frame = {
        "question": [0, 0, 1, 1, 2, 2],
        "worker": [0, 1, 0, 1, 0, 1],
        "answer": [0.2, 0.3, 0.5, 0.6, 0.1, 0.4],
        "se2": [1.0, 2.0, 1.5, 1.0, 3.0, 1.0],
    }
    bounds = (-0.5, float("inf")) if transform != "logit" else (0.0, 1.0)
    est = estimate(
        frame, "blue", transform=transform, bounds=bounds, answer_variance="se2", shrink="normal"
    )
    again = load(est.save(tmp_path / "state.trueup"))
    assert_same(again, est)
    assert again.solution.scale == est.solution.scale
    assert again.answers.answer_variance == est.answers.answer_variance


def frame_of(questions: Any) -> dict[str, Any]:
    """Two workers who answer every question."""
    n = len(questions)
    return {
        "question": [*questions, *questions],
        "worker": ["ann"] * n + ["bob"] * n,
        "answer": np.arange(2.0 * n) % 5,
    }


@pytest.mark.parametrize(
    "ids",
    [
        ODD,
        [1, 2, 3, -4, 2**62],
        [2**80, 1, -(2**70)],
        [0.1, 2.5, 1e300],
        [True, False],
        [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
        [dt.datetime(2024, 2, 29, 12, 30, 1, 5), dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)],  # noqa: DTZ001, UP017
        [1, "1", 2.5, b"bytes", False],
        [decimal.Decimal("1.10"), uuid.UUID(int=5)],
    ],
    ids=["odd", "int", "long", "float", "bool", "date", "time", "mixed", "other"],
)
def test_ids_come_back_exactly(tmp_path: Path, ids: Any) -> None:
    est = estimate(frame_of(ids), method="mean", shrink="none")
    again = load(est.save(tmp_path / "state.trueup"))
    found = again.answers.question_ids.tolist()
    assert found == est.answers.question_ids.tolist()
    assert list(map(type, found)) == list(map(type, est.answers.question_ids.tolist()))


@hypothesis.given(st.lists(st.text(st.characters()), unique=True, min_size=1))
def test_any_text_comes_back(texts: list[str]) -> None:
    ids = Ids(np.fromiter(texts, dtype=object, count=len(texts)))
    assert unpack("question", pack("question", ids)).tolist() == texts


def test_many_texts_come_back_whatever_they_are() -> None:
    texts = [f"{number} {ODD[number % len(ODD)]}" for number in range(MANY)]
    for names in (
        texts,
        [each for each in texts if each.isprintable()] + [f"more {j}" for j in range(MANY)],
    ):
        ids = Ids(np.fromiter(names, dtype=object, count=len(names)))
        back = unpack("question", pack("question", ids))
        assert back.tolist() == names
        again = pack("question", back)
        for member, array in pack("question", ids).items():
            np.testing.assert_array_equal(again[member], array)
    twice = pack("question", Ids(np.array(["same"] * MANY, dtype=object)))
    with pytest.raises(archive.Damage, match="not distinct"):
        unpack("question", twice)


def test_ids_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    est = estimate(frame_of([("a", 1), ("b", 2)]), method="mean", shrink="none")
    with pytest.raises(TrueupError, match='save: question ids of type "tuple" cannot be kept'):
        est.save(tmp_path / "state.trueup")
    assert list(tmp_path.iterdir()) == []


def test_frames_come_back_in_the_kind_of_the_caller(tmp_path: Path) -> None:
    for name in ("pandas", "polars"):
        library = pytest.importorskip(name)
        frame = library.DataFrame(frame_of(list("abcd")))
        est = estimate(frame, method="mean")
        again = load(est.save(tmp_path / "state.trueup"))
        assert isinstance(again.questions, library.DataFrame)
        assert again.questions["question"].to_list() == list("abcd")
        times = library.Series(np.array(["2024-01-01", "2024-01-02"], dtype="M8[ns]"))
        est = estimate(
            library.DataFrame({"question": times, "worker": [1, 2], "answer": [1.0, 2.0]}),
            method="mean",
        )
        est.save(tmp_path / "state.trueup")
        assert load(tmp_path / "state.trueup").questions["question"].to_list() == times.to_list()


def test_a_library_that_is_gone_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    path = estimate(pandas.DataFrame(frame_of("ab")), method="mean").save(tmp_path / "s")
    monkeypatch.setattr("trueup.result.load_answers.find_spec", lambda _: None)
    assert load(path).answers.origin.kind == "array"


@dataclass(frozen=True)
class Own(Algorithm):
    power: float = 1.0
    name = "own"


class Rule(EBE):
    name = "paper"


def test_a_method_of_ones_own_is_passed_again(tmp_path: Path) -> None:
    path = tmp_path / "state.trueup"
    est = estimate(small(), method=Own(2.0))
    est.save(path)
    with pytest.raises(
        TrueupError, match=r'made with the method "Own\(power=2\.0\)", .* a state holds none'
    ):
        load(path)
    with pytest.raises(TrueupError, match=r'"Own\(power=2\.0\)", found "Own\(power=1\.0\)"'):
        load(path, method=Own())
    again = load(path, method=Own(2.0))
    assert again.estimate.tolist() == est.estimate.tolist()
    more = {"question": [0], "worker": [99], "answer": [1.0]}
    with pytest.raises(TrueupError, match="Pass it again"):
        update(path, more)
    assert update(path, more, method=Own(2.0)).answers.n_workers == est.answers.n_workers + 1
    assert load(path, method=Own(2.0)).answers.n_workers == est.answers.n_workers + 1
    estimate(small(), method="crh").save(path)
    with pytest.raises(TrueupError, match="method: the state knows its method"):
        load(path, method="mean")


def test_a_function_is_passed_again(tmp_path: Path) -> None:
    path = tmp_path / "state.trueup"
    est = estimate(small(), method=np.median)
    est.save(path)
    with pytest.raises(TrueupError, match='the method "median"'):
        load(path)
    assert load(path, method=np.median).estimate.tolist() == est.estimate.tolist()


def test_objects_of_ones_own_are_not_saved(tmp_path: Path) -> None:
    answers = small()
    path = tmp_path / "state.trueup"
    with pytest.raises(TrueupError, match=r"save: shrink=.*of your own"):
        estimate(answers, method="mean", shrink=Rule()).save(path)
    with pytest.raises(TrueupError, match="save: variance is a function of your own"):
        estimate(answers, method="mean", variance=lambda *_: 1.0).save(path)
    assert not path.exists()


def test_panels_are_not_saved_but_one_of_them_is(tmp_path: Path) -> None:
    panels = small().sample(3, workers=5, questions=20)
    est = estimate(panels, method="mean")
    with pytest.raises(TrueupError, match="these are 3 panels"):
        est.save(tmp_path / "state.trueup")
    one = estimate(panels.panel(1), method="mean")
    np.testing.assert_array_equal(load(one.save(tmp_path / "s")).estimate, one.estimate)


# -- files that are not what they should be --------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("state") / "state.trueup"
    frame = {**frame_of(list("abcde")), "group": list("vwvwv") * 2}
    est = estimate(frame, "crh", groups="group", gold={"a": 1.0}, covariates=np.arange(5.0))
    return est.save(path).read_bytes()


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "bad.trueup"
    path.write_bytes(content)
    with pytest.raises(TrueupError) as error:
        load(path)
    text = str(error.value)
    assert "\n" not in text
    assert "bad.trueup" in text
    assert path.read_bytes() == content
    return text


def rebuilt(content: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """Change description and arrays of a state, with checksums as they must be."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        meta = json.loads(old.read("meta.json"))
        files = {name: io.BytesIO(old.read(f"{name}.npy")) for name in meta["members"]}
    arrays: dict[str, Any] = {name: np.load(file) for name, file in files.items()}
    change(meta, arrays)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        meta["members"] = {}
        for name, array in arrays.items():
            part = io.BytesIO()
            np.save(part, array, allow_pickle=True)
            new.writestr(f"{name}.npy", part.getvalue())
            meta["members"][name] = hashlib.sha256(part.getvalue()).hexdigest()
        new.writestr("meta.json", json.dumps(meta))
    return file.getvalue()


def test_the_same_estimate_makes_the_same_file(tmp_path: Path) -> None:
    est = estimate(small())
    one, two = (est.save(tmp_path / name).read_bytes() for name in ("one", "two"))
    assert one == two
    three = load(tmp_path / "one").save(tmp_path / "three").read_bytes()
    assert one == three


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, good: bytes) -> None:
    for size in [*range(0, len(good), 997), len(good) - 1]:
        assert "damaged or no state of trueup" in refusal(tmp_path, good[:size])


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(place=st.integers(0, 10**6), byte=st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(
    tmp_path: Path, good: bytes, place: int, byte: int
) -> None:
    content = bytearray(good)
    content[place % len(good)] ^= byte
    path = tmp_path / "changed.trueup"
    path.write_bytes(bytes(content))
    try:
        found = load(path)
    except TrueupError:
        return
    path.write_bytes(good)
    assert_same(found, load(path))


def _set(*keys: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Set something deep in the description; the last key is the value."""

    def change(meta: dict[str, Any], _: dict[str, Any]) -> None:
        part = meta
        for key in keys[:-2]:
            part = part[key]
        part[keys[-2]] = keys[-1]

    return change


def _array(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = value(arrays[name]) if callable(value) else value

    return change


def _at(place: int, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array[place] = value
        return array

    return change


MIXTURE = {
    "model": "mixture", "components": 2, "log_tau2": "0.5", "gain": "1.0", "z": "2.0", "answers": 9, "changed": 0,
}  # fmt: skip
HOSTILE = {
    "other format": _set("format", "something"),
    "no version": _set("version", None),
    "no plan": lambda meta, _: meta.pop("plan"),
    "unknown method": _set("found", "algorithm", "name", "os.system"),
    "method is a list": _set("found", "algorithm", "name", ["crh"]),
    "strange parameter": _set("found", "algorithm", "parameters", {"__class__": 1}),
    "parameter of another type": _set("found", "algorithm", "parameters", "loss", 5),
    "parameter not allowed": _set("found", "algorithm", "parameters", "loss", "cubed"),
    "unknown method asked for": _set("plan", "method", "os.system"),
    "method asked for is a list": _set("plan", "method", ["crh"]),
    "unknown rule": _set("plan", "shrink", "eval"),
    "rule of strange parameters": _set(
        "plan", "shrink", {"name": "paper", "parameters": {"__class__": 1}}
    ),
    "unknown keyword": _set("plan", "exec", 1),
    "unknown column": _set("read", "exec", "x"),
    "unknown variance": _set("plan", "variance", "open"),
    "level": _set("plan", "level", "2"),
    "level is no number": _set("plan", "level", "x"),
    "iterations": _set("plan", "max_iter", -1),
    "seed": _set("plan", "seed", 10**40),
    "tolerance": _set("plan", "tol", "nan"),
    "transform": _set("plan", "transform", "exec"),
    "bounds": _set("plan", "bounds", {"numbers": ["5", "1"]}),
    "source": _set("source", "\x1b[31mred"),
    "kind": _set("answers", "kind", "os"),
    "counts": _set("answers", "rows", -5),
    "text with escapes": _set("diagnosis", "why", "\x1b[31mred"),
    "warnings are numbers": _set("diagnosis", "warnings", [1]),
    "state names": _set("found", "state", ["weight", "weight"]),
    "no weight": _set("found", "state", ["size"]),
    "too many iterations": _set("found", "iterations", [1, 2]),
    "unknown prior": _set("found", "prior_choice", "model", "eval"),
    "too many components": _set("found", "prior_choice", {**MIXTURE, "components": 99}),
    "components of no mixture": _set("found", "prior_choice", "components", 3),
    "variance of the prior": _set("found", "prior_choice", {**MIXTURE, "log_tau2": "nan"}),
    "prior without answers": _set("found", "prior_choice", "answers", -1),
    "negative worker": _array("workers", lambda a: _at(0, -1)(a.astype(np.int64))),
    "worker out of range": _array("workers", _at(0, 77)),
    "workers not in order": _array("workers", lambda a: a[::-1].copy()),
    "workers are floats": _array("workers", lambda a: a.astype(float)),
    "no answers": _array("counts", _at(0, 0)),
    "negative count": _array("counts", _at(0, -1)),
    "huge count": _array("counts", _at(0, 2**62)),
    "too many counts": _array("counts", lambda a: np.append(a, 2)),
    "not a number": _array("answers", _at(0, np.nan)),
    "infinite": _array("answers", _at(0, np.inf)),
    "too large": _array("answers", _at(0, 1e300)),
    "too short": _array("answers", lambda a: a[:-1]),
    "small numbers": _array("answers", lambda a: a.astype(np.float32)),
    "two dimensions": _array("answers", lambda a: a[None]),
    "objects": _array("answers", lambda a: a.astype(object)),
    "fields": _array("answers", np.zeros(10, dtype=[("a", "f8")])),
    "text": _array("answers", np.array(["x"] * 10)),
    "negative weight": _array("state.0", _at(0, -1.0)),
    "state too short": _array("state.0", lambda a: a[:1]),
    "estimate missing": lambda _, arrays: arrays.pop("column.estimate"),
    "estimate unknown": _array("column.estimate", _at(0, np.nan)),
    "negative variance": _array("question.variance", _at(0, -1.0)),
    "group out of range": _array("group_of", _at(0, 9)),
    "covariate unknown": _array("covariate.0", _at(0, np.nan)),
    "ends of ids": _array("question.ends", _at(0, 3)),
    "negative end": _array("question.ends", _at(0, -1)),
    "ids twice": _array("question.text", lambda a: np.full_like(a, a[0])),
    "broken text": _array("question.text", _at(0, 255)),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_cannot_be_is_refused(tmp_path: Path, good: bytes, change: Any) -> None:
    assert "damaged or no state of trueup" in refusal(tmp_path, rebuilt(good, change))


def test_the_checks_themselves_let_a_rebuilt_file_through(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "state.trueup"
    path.write_bytes(rebuilt(good, lambda *_: None))
    assert load(path).answers.n_questions == 5


def test_files_of_an_older_version_are_refused(tmp_path: Path, good: bytes) -> None:
    older = refusal(tmp_path, rebuilt(good, _set("version", OLDEST - 1)))
    assert "written by an older trueup" in older
    assert "Estimate again from all answers." in older


@pytest.mark.parametrize("model", ["normal", "mixture", "scale mixture", "groups", "regression"])
def test_a_prior_that_was_chosen_is_fitted_as_it_was(tmp_path: Path, model: str) -> None:
    rng = np.random.default_rng(5)
    kind, size = np.arange(300) % 3, np.linspace(-3, 3, 300)
    truth = {
        "normal": rng.normal(size=300),
        "mixture": 8.0 * kind + 0.2 * rng.normal(size=300),
        "scale mixture": np.where(kind == 0, 8.0, 0.2) * rng.normal(size=300),
        "groups": np.where(kind == 0, 3.0, 0.1) * rng.normal(size=300) + kind,
        "regression": 2.0 * size + 0.2 * rng.normal(size=300),
    }[model]
    options: dict[str, Any] = {}
    if model == "groups":
        options["groups"] = [str(each) for each in kind]
    if model == "regression":
        options["covariates"] = size
    est = estimate(truth + rng.normal(size=(6, 300)), "mean", **options)
    assert est.second_step.models == [model]
    again = load(est.save(tmp_path / "state.trueup"))
    assert str(again.second_step.prior_choice) == str(est.second_step.prior_choice)
    assert again.second_step.models == [model]
    for name in ("mean", "variance", "shrinkage"):
        found, expected = (getattr(each.second_step.posterior, name) for each in (again, est))
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_newer_version_says_what_to_do(tmp_path: Path, good: bytes) -> None:
    text = refusal(tmp_path, rebuilt(good, _set("version", VERSION + 1)))
    assert "written by a newer trueup" in text
    assert "Update trueup" in text


def test_nothing_that_a_file_says_is_run(tmp_path: Path, good: bytes) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    bomb = np.array([Bomb()] * 10, dtype=object)
    refusal(tmp_path, rebuilt(good, _array("answers", bomb)))
    assert not (tmp_path / "ran").exists()


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("meta.json", b" " * (1 << 26))
    assert "compressed" in refusal(tmp_path, file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as many:
        for number in range(archive.MOST_MEMBERS + 1):
            many.writestr(f"{number}.npy", b"")
    assert "too many members" in refusal(tmp_path, file.getvalue())


def test_a_header_cannot_ask_for_memory(tmp_path: Path, good: bytes) -> None:
    part = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        part, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    with zipfile.ZipFile(io.BytesIO(good)) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    contents["answers.npy"] = part.getvalue()
    meta = json.loads(contents["meta.json"])
    meta["members"]["answers"] = hashlib.sha256(part.getvalue()).hexdigest()
    contents["meta.json"] = json.dumps(meta).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        for name, content in contents.items():
            new.writestr(name, content)
    assert "cut short" in refusal(tmp_path, file.getvalue())


def test_deep_nesting_and_strange_members_are_refused(tmp_path: Path) -> None:
    for name, content in (("meta.json", b"[" * 100_000), ("../../evil", b"x"), ("meta.json", b"1")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as bad:
            bad.writestr(name, content)
        refusal(tmp_path, file.getvalue())
    assert [each.name for each in tmp_path.iterdir()] == ["bad.trueup"]


def test_other_files_and_none_are_refused(tmp_path: Path) -> None:
    refusal(tmp_path, b"question,worker,answer\n")
    with pytest.raises(TrueupError, match="not found"):
        load(tmp_path / "nothing")
    with pytest.raises(TrueupError, match="is no plain file"):
        load(tmp_path)
    with pytest.raises(TrueupError, match="is a folder"):
        estimate(small()).save(tmp_path)


# -- nothing is lost -------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    est = estimate(small(), method="mean")
    path = est.save(tmp_path / "state.trueup")
    before = path.read_bytes()
    for limit in (0, 100, 5000, len(before) - 1):
        with full_disk(limit), pytest.raises(OSError, match="too large") as found:
            est.save(path)
        assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(path))
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_a_state_replaces_a_state_and_nothing_else(tmp_path: Path) -> None:
    est = trueup.estimate(np.eye(3))
    state, empty = tmp_path / "a.trueup", tmp_path / "b.trueup"
    empty.touch()
    for path in (state, empty):
        est.save(path)
        est.save(path)
        assert trueup.load(path).estimate.tolist() == est.estimate.tolist()
    np.savez(tmp_path / "numbers.npz", counts=np.arange(3))
    packed = (tmp_path / "numbers.npz").read_bytes()
    other = tmp_path / "answers.csv"
    for content in (
        b"question,worker,answer\n1,2,3\n",
        b"PK\x03\x04 something else that is packed",
        packed,
    ):
        other.write_bytes(content)
        with pytest.raises(TrueupError, match=r"answers.csv.* is no state of trueup"):
            est.save(other)
        with pytest.raises(TrueupError, match=r"answers.csv.* is no state of trueup"):
            trueup.update(state, {"question": [7], "worker": [0], "answer": [1.0]}, save=other)
        assert other.read_bytes() == content
        est.save(other, force=True)
        assert trueup.load(other).estimate.tolist() == est.estimate.tolist()


def _put(name: str, value: float, at: int = 0) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def _count(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda meta, _: meta["answers"].update({name: 10**9 if name != "rows" else 1})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_put("bias.value", np.inf), "holds no numbers"),
        (_put("bias.std_error", -1.0), "its biases"),
        (_put("gold", -3.0), "its known truths"),
        (_put("gold", 1e300), "its known truths"),
        (_put("precision", 1e200), "its variances"),
        (_put("precision", 9.0), "its variances"),
    ],
)
@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_what_a_full_state_cannot_say_is_refused(
    change: Callable[[dict[str, Any], dict[str, Any]], None], says: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    frame: dict[str, Any] = frame_of(list(range(12)))
    frame["answer"] = np.exp(rng.normal(size=24))
    frame["se2"] = rng.uniform(0.5, 2.0, 24)
    options: dict[str, Any] = {"transform": "log", "gold": {0: 1.0}, "answer_variance": "se2"}
    est = estimate(frame, "crh", bias=True, **options)
    content = est.save(tmp_path / "good.trueup").read_bytes()
    path = tmp_path / "bad.trueup"
    path.write_bytes(rebuilt(content, lambda *_: None))
    load(path)
    path.write_bytes(rebuilt(content, change))
    with pytest.raises(TrueupError, match=f"damaged or no state of trueup .*{says}"):
        load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_put("question.variance", -1.0), "its variances"),
        (_put("worker.variance", -1.0), "its variances"),
        (_put("worker.noise", -1.0), "its variances"),
        (_put("worker.weight", 7.0), "its weights"),
        (_put("worker.weight", -0.1), "its weights"),
        (_put("worker.weight", np.nan), "holds no numbers"),
        (_put("column.estimate", np.nan), "holds no numbers"),
        (_put("column.std_error", -1.0), "its standard errors"),
        (_put("column.base_std_error", -1.0), "its standard errors"),
        (_put("column.lower", 1e6), "its intervals"),
        (_put("column.truth_upper", -1e6), "its intervals"),
        (_put("column.upper", np.nan), "its intervals"),
        (_put("workers", 10**6), "its answers"),
        (_put("workers", 2), "its answers"),
        (_put("counts", 0), "its answers"),
        (_put("answers", np.nan), "holds no numbers"),
        (_count("rows"), "its counts"),
        (_count("missing"), "its counts"),
        (_count("duplicates"), "its counts"),
    ],
)
def test_a_state_that_cannot_be_true_is_refused_though_its_checksums_fit(
    change: Callable[[dict[str, Any], dict[str, Any]], None], says: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    content = estimate(rng.normal(size=(5, 12))).save(tmp_path / "good.trueup").read_bytes()
    path = tmp_path / "bad.trueup"
    path.write_bytes(rebuilt(content, lambda *_: None))
    load(path)
    path.write_bytes(rebuilt(content, change))
    with pytest.raises(TrueupError, match=f"damaged or no state of trueup .*{says}"):
        load(path)


def test_what_was_set_aside_and_what_was_known_is_still_said(tmp_path: Path) -> None:
    table = {
        "question": ["q", "q", "r", "r", "r"],
        "worker": ["a", "b", "a", "b", "silent"],
        "answer": [1.0, 2.0, 4.0, 5.0, None],
    }
    est = estimate(table, "mean", gold={"q": 1.5}, groups={"q": "x", "r": "y"})
    again = load(est.save(tmp_path / "state.trueup"))
    assert str(again) == str(est)
    assert '1 worker without any answer is left out: "silent"' in str(again)
    assert "groups=groups, gold=gold" in str(again.request.as_call())
    more = {"question": ["s"], "worker": ["a"], "answer": [3.0]}
    np.testing.assert_array_equal(update(again, more).estimate, update(est, more).estimate)
