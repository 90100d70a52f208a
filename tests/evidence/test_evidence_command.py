"""`make evidence`: which parts run with how many panels, what it says of every figure, and the pages it writes."""

from __future__ import annotations

import re
from math import nan
from typing import TYPE_CHECKING, Any

import pytest

from evidence import __main__ as command
from evidence import everything
from evidence.docs_page import points_of, print_page
from evidence.everything import PAGES, STUDIES, measure_all, say_all
from evidence.points import Point, near, near_none, share_error
from evidence.study import EvidenceStudy, Measured, Settings
from repository import ROOT
from trueup import TrueupError
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidence.everything import Found

REACHED = Point(1, "risk", "0.9 ± 0.1", "at most 1", reached=True)
NEAR = Point(2, "coverage", "92%", "93% to 98%", reached=False, near=True)
MISSED = Point(2, "share", "50%", "at most 4%", reached=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command would measure; it finds one figure that may be off by chance."""
    seen: dict[str, Any] = {}

    def fake(parts: dict[str, list[str]], settings: dict[str, Settings], out: Path) -> Found:
        seen.update(parts=parts, settings=settings, out=out)
        return {
            step: {names[0]: Measured(Section(title="One"), points=[NEAR])}
            for step, names in parts.items()
        }

    monkeypatch.setattr(command, "measure_all", fake)
    monkeypatch.setattr(command, "write_all", lambda *_, docs: seen.update(docs=docs))
    monkeypatch.setattr(command, "_need_all", lambda _: None)
    return seen


def test_all_parts_of_all_studies_run_short(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 0
    assert asked["parts"] == {step: study.chosen(None) for step, study in STUDIES.items()}
    for step, study in STUDIES.items():
        assert asked["settings"][step].samples == study.short_samples < study.samples
    assert asked["docs"] is False
    printed = capsys.readouterr().out
    for step, study in STUDIES.items():
        assert f"This run: {step}: at most {study.short_samples} panels per cell" in printed
    assert "log slope per x" in printed
    assert (
        "4 figures: 0 in range, 4 within 3 standard errors of it (few panels), 0 outside."
        in printed
    )


def test_a_full_run_has_the_size_of_the_documentation_and_no_allowance(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--full", "--step", "ranking"]) == 1
    assert list(asked["parts"]) == ["ranking"]
    assert asked["settings"]["ranking"].samples == STUDIES["ranking"].samples
    assert asked["docs"] is True
    assert "1 figures: 0 in range, 1 outside." in capsys.readouterr().out


def test_a_part_is_found_in_its_study(asked: dict[str, Any]) -> None:
    command.main(["--part", "ablation", "--part", "labels", "--samples", "7", "--seed", "3"])
    assert asked["parts"] == {"second": ["ablation"], "ranking": ["labels"]}
    assert {(each.samples, each.seed) for each in asked["settings"].values()} == {(7, 3)}
    names = [name for study in STUDIES.values() for name in study.chosen(None)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--step", "second", "--part", "labels"], "labels is not known"),
        (["--samples", "1"], "must be at least 2"),
        (["--full", "--samples", "9"], "not allowed with"),
    ],
)
def test_wrong_requests_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(words)
    assert said in capsys.readouterr().err


def test_a_full_run_needs_all_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path))
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SystemExit, match="need all real data sets"):
        command.main(["--full"])


def test_parts_run_side_by_side_and_write_what_they_found(tmp_path: Path) -> None:
    settings = {"ranking": Settings(2, progress=False, processes=1)}
    found = measure_all({"ranking": ["labels", "several"]}, settings, tmp_path)
    everything.write_all(found, settings, tmp_path, docs=False)
    summary = (tmp_path / "ranking" / "summary.md").read_text(encoding="utf-8")
    assert summary.index("Six equal systems") < summary.index("Labels and judges")
    assert (tmp_path / "ranking" / "ranking_labels.csv").exists()
    assert {point.number for one in found["ranking"].values() for point in one.points} == {3, 5}
    assert all(one.seconds[1] > 0 for one in found["ranking"].values())


def test_figures_outside_decide_and_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    section = Section(title="One")
    settings = {"second": Settings(4)}
    some = {"second": {"ablation": Measured(section, points=[NEAR, REACHED])}}
    assert say_all(some, settings, strict=False)
    assert not say_all(some, settings, strict=True)
    all_kinds = {
        "second": {
            "ablation": Measured(section, points=[MISSED, NEAR, REACHED]),
            "real_data": Measured(section, missing=True),
        }
    }
    capsys.readouterr()
    assert not say_all(all_kinds, settings, strict=False)
    printed = capsys.readouterr().out
    marks = re.findall(r"^(in range|by chance\?|OUTSIDE)", printed, re.MULTILINE)
    assert marks == ["in range", "by chance?", "OUTSIDE"]
    assert "risk: 0.9 ± 0.1 (target: at most 1)" in printed
    assert "the data are not available: second: real_data" in printed


def test_chance_is_three_standard_errors() -> None:
    assert near(1.29, 0.1, high=1.0)
    assert not near(1.31, 0.1, high=1.0)
    assert near(0.71, 0.1, 1.0)
    assert not near(0.69, 0.1, 1.0, 2.0)
    assert not near(1.0, nan, high=2.0)
    assert share_error(0.5, 100) == pytest.approx(0.05)
    # Of 1,000 cells at their limit 23 are two standard errors above it.
    assert near_none(37, 1000, 1000, 2.0)
    assert not near_none(39, 1000, 1000, 2.0)
    # Standard errors from five panels are known badly.
    assert near_none(80, 1000, 5, 2.0)
    assert not near_none(1, 0, 5, 2.0)


def listed(points: Sequence[Point]) -> Section:
    """Return a list of figures."""
    rows = [[p.number, p.what, p.found, p.wanted, p.reached] for p in points]
    table = PageTable("", ["figure", "what", "found", "target", "reached"], rows)
    return Section(title=f"{len(points)} figures", tables=[table])


def one(context: object) -> Section:
    raise NotImplementedError(context)


def two(context: object) -> Section:
    raise NotImplementedError(context)


def three(context: object) -> Section:
    raise NotImplementedError(context)


STUDY = EvidenceStudy(
    "A study", "About it.", (one, two, three), dict, first=three, listed=listed  # type: ignore[arg-type]
)  # fmt: skip


def test_a_part_printed_again_leaves_the_others_on_the_page(tmp_path: Path) -> None:
    page, settings = tmp_path / "page.md", Settings(200)
    with_two = Measured(Section(title="Two: 2", text="Old."), points=[MISSED])
    found = {
        "one": Measured(Section(title="One: 1", text="Stays."), points=[REACHED]),
        "two": with_two,
        "three": Measured(Section(title="?")),
    }
    print_page(STUDY, page, found, settings)
    before = page.read_text(encoding="utf-8")
    assert before.startswith("# A study\n\nAbout it.\n\nThis run: at most 200 panels")
    assert re.findall("^## (.*)", before, re.MULTILINE) == ["2 figures", "One: 1", "Two: 2"]
    print_page(STUDY, page, {"two": with_two}, settings)
    assert page.read_text(encoding="utf-8") == before
    better = Point(2, "share", "3%", "at most 4%", reached=True)
    print_page(
        STUDY,
        page,
        {"two": Measured(Section(title="Two: 3", text="New."), points=[better])},
        settings,
    )
    after = page.read_text(encoding="utf-8")
    assert after == before.replace("Two: 2", "Two: 3").replace("Old.", "New.").replace(
        "| share | 50% | at most 4% | no |", "| share | 3% | at most 4% | yes |"
    )
    page.write_text("# A study\n\nAbout it.\n\n## One\n", encoding="utf-8")
    with pytest.raises(TrueupError, match="1 sections, but the study has 3 parts"):
        print_page(STUDY, page, {"two": with_two}, settings)


@pytest.mark.parametrize("step", STUDIES)
def test_the_pages_of_the_documentation_have_a_section_for_each_part(step: str) -> None:
    text = (ROOT / "docs" / PAGES[step]).read_text(encoding="utf-8")
    study = STUDIES[step]
    assert text.startswith(f"# {study.title}\n")
    assert len(re.findall("^## ", text, re.MULTILINE)) == len(study.parts)
    assert f"at most {study.samples} panels per cell" in text
    if study.first is not None:
        points = points_of(text)
        assert f"## Figures to reach: {sum(p.reached for p in points)} of {len(points)}\n" in text
