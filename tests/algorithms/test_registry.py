"""Algorithms by name, by class, and from other packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import trueup
from trueup import TrueupError
from trueup.algorithms import (
    CRH,
    DTD,
    Algorithm,
    SubjectBias,
    find,
    names,
    register,
    registry,
)

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


# -- parameters in the name ------------------------------------------------------------------------


def test_a_name_may_carry_parameters() -> None:
    assert find("subject_bias:nu0=0") == SubjectBias(nu0=0)
    assert find("crh: scale = var , per_count=False") == CRH(scale="var", per_count=False)
    assert find("lfc_n:preset=paper") == DTD(preset="paper")
    answers = [[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [9.0, 1.0, 3.0]]
    found = trueup.estimate(answers, method="subject_bias:nu0=0,epsilon=0.5", shrink="none")
    expected = trueup.estimate(answers, method=SubjectBias(0.0, 0.5), shrink="none")
    assert found.estimate.tolist() == expected.estimate.tolist()
    assert "method='subject_bias:nu0=0,epsilon=0.5'" in str(found.request.as_call())


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("subject_bias:nu=0", r'"nu=0" is not a parameter.*defaults: nu0=2.0, epsilon=0.0\.'),
        ("subject_bias:nu0", r'"nu0" is not a parameter with a value.*nu0=2.0'),
        ("subject_bias:", r"defaults: nu0=2.0, epsilon=0.0"),
        ("subject_bias:nu0=1,nu0=2", r'"nu0=2" is given twice'),
        ("subject_bias:nu0=few", r'nu0 of subject_bias is "few", must be a number'),
        ("crh:per_count=maybe", r'per_count of crh is "maybe", must be true or false'),
        ("mean:nu0=1", r"mean has no parameters"),
        ("subject_bais:nu0=1", r'is not known. Did you mean "subject_bias"'),
    ],
)
def test_parameters_that_do_not_fit_are_refused_with_a_list(method: str, text: str) -> None:
    with pytest.raises(TrueupError, match=rf"^method: .*{text}"):
        find(method)


def test_a_name_never_loads_code(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    path = tmp_path / "evil.py"
    path.write_text(f"open({str(trace)!r}, 'w')")
    with pytest.raises(TrueupError, match="only the command line loads code"):
        trueup.estimate([[1.0]], method=f"{path}:Evil")
    assert not trace.exists()
