"""Algorithms by name, by class, and from other packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import trueup
from trueup import TrueupError
from trueup.algorithms import CRH, DTD, Algorithm, find, names, register, registry

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED = {
    "mean", "median", "weighted_median", "blue", "dtd", "lfc_n", "catd", "gtm", "crh", "pm", "ptd",
    "iptd", "kdem", "subject_bias", "student_t",
}  # fmt: skip


def test_every_published_algorithm_has_a_name() -> None:
    assert set(names()) >= PUBLISHED
    for name in PUBLISHED - {"lfc_n"}:
        assert find(name).name == name


def test_lfc_n_is_dtd() -> None:
    assert find("lfc_n") == DTD()


def test_an_algorithm_a_class_and_a_name_are_all_understood() -> None:
    assert find(CRH) == find("crh") == find(CRH())


def test_a_wrong_name_gets_a_hint_and_the_list() -> None:
    with pytest.raises(TrueupError, match=r'"crh"\?.*Known: native, mean, median'):
        find("chr")
    with pytest.raises(TrueupError, match="found int"):
        find(3)  # type: ignore[arg-type]


def test_a_registered_algorithm_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))

    @register
    @dataclass(frozen=True)
    class Mine(Algorithm):
        name = "mine"

    est = trueup.estimate([[1.0, 2.0], [3.0, 5.0]], method="mine")
    assert est.estimate.tolist() == [2.0, 3.5]
    assert est.diagnosis.method == "mine"


def test_a_taken_name_and_a_nameless_class_are_refused() -> None:
    @dataclass(frozen=True)
    class Nameless(Algorithm):
        pass

    with pytest.raises(TrueupError, match="name"):
        register(Nameless)
    with pytest.raises(TrueupError, match="taken"):
        register(Nameless, name="crh")


def test_an_installed_package_adds_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[trueup.algorithms]\nelsewhere_mean = elsewhere:Elsewhere\nnot_one = elsewhere:number\n"
    )
    (tmp_path / "elsewhere.py").write_text(
        "from dataclasses import dataclass\n"
        "from trueup.algorithms import Algorithm\n"
        "@dataclass(frozen=True)\n"
        "class Elsewhere(Algorithm):\n"
        "    name = 'elsewhere_mean'\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "elsewhere_mean" in names()
    assert find("elsewhere_mean").name == "elsewhere_mean"
    with pytest.raises(TrueupError, match="not an Algorithm"):
        find("not_one")
