"""States that somebody changed and signed anew: refused, or they work and give finite numbers in order."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import warnings
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import TrueupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Arrays = dict[str, np.ndarray[Any, Any]]
EDITS = 60
#: Numbers that somebody might put into an array of numbers, or of indices.
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-300, 1e300, -1e300, 1e150, 7.0, 0.5)
WHOLE = (-1, 0, 1, 2, 99, 2**31, 2**62, -(2**62))
TEXTS = ("nan", "inf", "-1.0", "1e308", "", "x", "0")


def opened(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return description and arrays of a state."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        meta = json.loads(file.read("meta.json"))
        return meta, {
            name: np.load(io.BytesIO(file.read(f"{name}.npy"))) for name in meta["members"]
        }


def signed(meta: dict[str, Any], arrays: Arrays) -> bytes:
    """Return a state whose checksums are right."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        meta["members"] = {}
        for name, array in arrays.items():
            part = io.BytesIO()
            np.save(part, array)
            file.writestr(f"{name}.npy", part.getvalue())
            meta["members"][name] = hashlib.sha256(part.getvalue()).hexdigest()
        file.writestr("meta.json", json.dumps(meta))
    return packed.getvalue()


def edited(array: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Change an array in one of many ways."""
    array, kind = array.copy(), int(rng.integers(9))
    place = int(rng.integers(max(len(array), 1)))
    if kind == 0:
        return array[:place]
    if kind == 1:
        return np.concatenate([array, array[: place + 1]])
    if kind == 2:
        return array[::-1].copy()
    if kind == 3:
        types = ("f8", "f4", "i8", "u8", "i1", "?", "U4", ">f8", "M8[s]", "m8[s]")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return array.astype(types[int(rng.integers(len(types)))])
    if kind == 4:
        return np.roll(array, 1 + place)
    if not len(array):
        return array
    if kind == 5:
        array[place] = array[int(rng.integers(len(array)))]
        return array
    if kind == 6 and array.dtype.kind == "f":
        return array * float(rng.choice([-1.0, 1e-9, 1e9, 1e200]))
    values = NUMBERS if array.dtype.kind == "f" else WHOLE
    with np.errstate(all="ignore"):
        value = np.array(values[int(rng.integers(len(values)))]).astype(array.dtype)
    array[place if kind < 8 else slice(None)] = value
    return array


def described(meta: Any, rng: np.random.Generator) -> None:
    """Change one value of the description, wherever it is."""
    while True:
        keys = list(meta) if isinstance(meta, dict) else list(range(len(meta)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(meta[key], dict | list) and meta[key] and rng.random() < 0.9:
            meta = meta[key]
            continue
        choices: tuple[Any, ...] = (None, True, [], {}, *WHOLE, *TEXTS, *NUMBERS)
        meta[key] = choices[int(rng.integers(len(choices)))]
        return


def check_sound(est: trueup.Estimate) -> None:
    """Check that all that is known is finite, or unknown where it may be, and in order."""
    columns = {name: np.asarray(est.questions[name]) for name in est.questions}
    for name in ("estimate", "base", "n_answers"):
        assert np.isfinite(columns[name]).all(), name
    for low, high in (("lower", "upper"), ("truth_lower", "truth_upper")):
        known = ~np.isnan(columns[low])
        assert np.isfinite(columns[low][known]).all()
        assert np.isfinite(columns[high][known]).all()
        assert (columns[low][known] <= columns[high][known]).all()
        assert (np.isnan(columns[high]) == ~known).all()
    for name in ("std_error", "base_std_error"):
        known = ~np.isnan(columns[name])
        assert (columns[name][known] >= 0).all()
        assert np.isfinite(columns[name][known]).all()
    weight = np.asarray(est.workers["weight"])
    assert (weight >= 0).all()
    assert np.isclose(weight.sum(), 1.0)
    assert str(est)


def is_refused(get: Callable[[], trueup.Estimate]) -> bool:
    """Tell whether this is refused by an error of ours in one line; if not, check what it gives."""
    try:
        est = get()
        check_sound(est)
    except TrueupError as error:
        return "\n" not in str(error) or pytest.fail(str(error))
    return False


OPTIONS: dict[str, dict[str, Any]] = {
    "native": {},
    "crh": {"method": "crh", "bias": True, "shrink": "normal"},
    "known": {"method": "mean", "gold": {"q0": 1.0, "q3": 2.0}, "groups": ["a", "b", "c"] * 5},
    "variances": {"method": "blue", "answer_variance": "var", "covariates": "size"},
    "transform": {"method": "dtd", "transform": "log", "bounds": (0.0, 1e9)},
}


def state(options: dict[str, Any], folder: Path) -> bytes:
    """Return the state of an estimate."""
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(size=(6, 15)) + np.linspace(0, 3, 15))
    frame = {
        "question": [f"q{j}" for j in range(15) for _ in range(6)],
        "worker": [f"w{i}" for _ in range(15) for i in range(6)],
        "answer": x.T.ravel(),
        "var": rng.uniform(0.5, 2.0, 90),
        "size": np.repeat(np.arange(15.0), 6),
    }
    est = trueup.estimate(frame, seed=1, **options)
    return est.save(folder / "good.trueup").read_bytes()


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
def test_whatever_was_changed_is_refused_or_works(kind: str, tmp_path: Path) -> None:
    meta, arrays = opened(state(OPTIONS[kind], tmp_path))
    path, refused = tmp_path / "changed.trueup", 0
    more = {"question": ["q1", "new"], "worker": ["someone", "w1"], "answer": [2.0, 3.0]}
    if kind == "variances":
        more |= {"var": [1.0, 1.0], "size": [1.0, 2.0]}
    for seed in range(EDITS):
        rng = np.random.default_rng([seed, len(kind)])
        about, members = copy.deepcopy(meta), dict(arrays)
        if rng.random() < 0.8:
            name = sorted(members)[int(rng.integers(len(members)))]
            members[name] = edited(members[name], rng)
        else:
            described(about, rng)
        path.write_bytes(signed(about, members))
        refused += is_refused(partial(trueup.load, path))
        is_refused(partial(trueup.update, path, more))
    assert 0 < refused < EDITS
