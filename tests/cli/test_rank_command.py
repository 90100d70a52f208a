"""trueup rank: what is printed and written, and how the gate ends."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commands import need_cli, one_line, printed, refusal, run

if TYPE_CHECKING:
    from pathlib import Path

need_cli()
HEAD = ("sample_id", "model", "judge", "score")
GAPS = {"old": 0.0, "new": 0.05, "big": 1.0}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems on 30 items by four judges."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("rank") / "scores.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        for p in range(30):
            level = rng.normal()
            for model, gap in GAPS.items():
                for i in range(4):
                    writer.writerow(
                        (f"i{p}", model, f"j{i}", round(gap + level + 0.5 * rng.normal(), 3))
                    )
    return path


def rank(scores: Path, *options: str | Path) -> tuple[str | Path, ...]:
    return ("rank", scores, "--by", "model", "--item", "sample_id", *options)


def test_text(scores: Path) -> None:
    text = printed(*rank(scores))
    assert text.startswith("Effective number of judges: 4")
    assert "big leads; " in text
    assert "Gate" not in text


@pytest.mark.parametrize(
    ("baseline", "options", "code", "last"),
    [
        ("old", ("worse",), 0, 'Gate passed: no system is clearly worse than "old".'),
        ("big", ("worse",), 3, 'Gate failed: "old", "new" clearly worse than "big".'),
        ("old", ("not-better",), 3, 'Gate failed: "new" not clearly better than "old".'),
        ("big", ("worse", "--margin", "2"), 0, 'Gate passed: no system is clearly worse than "big" by more than 2.'),
        ("old", ("worse", "--lower-is-better"), 3, 'Gate failed: "big" clearly worse than "old".'),
    ],
)  # fmt: skip
def test_the_gate(
    scores: Path, baseline: str, options: tuple[str, ...], code: int, last: str
) -> None:
    arguments = rank(scores, "--baseline", baseline, "--fail-if", *options)
    done = run(*arguments)
    assert (done.code, done.err) == (code, "")
    assert done.out.splitlines()[-1] == last
    document = run(*arguments, "--format", "json")
    assert document.code == code
    assert json.loads(document.out)["gate"]["said"] == last
    quiet = run("--quiet", *arguments)
    assert (quiet.code, quiet.out) == (code, "")


@pytest.mark.parametrize("fail_if", ["worse", "not-better"])
def test_a_gate_that_cannot_be_decided_is_not_open(tmp_path: Path, fail_if: str) -> None:
    path = tmp_path / "scores.csv"
    lines = [f"i{p},{'a' if p < 5 else 'b'},j{i},{p + i}" for p in range(10) for i in range(2)]
    path.write_text("\n".join([",".join(HEAD), *lines]))
    done = run(*rank(path, "--baseline", "a", "--fail-if", fail_if))
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith('Gate undecided: "b" cannot be compared with "a"')
    assert "Gate undecided" in one_line(done.err)


def test_files(scores: Path, tmp_path: Path) -> None:
    out, pairs, judges = (tmp_path / name for name in ("s.csv", "d.parquet", "j.json"))
    text = printed(*rank(scores, "-o", out, "--differences", pairs, "--judges-out", judges))
    assert text.splitlines()[-3:] == [f"Written: {path}" for path in (out, pairs, judges)]
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["system"] for row in rows] == ["big", "new", "old"]
    assert pairs.exists()
    assert len(json.loads(judges.read_text())) == 12
    assert "--out" in refusal(*rank(scores, "-o", scores))


def test_json_has_everything(scores: Path) -> None:
    document = json.loads(printed(*rank(scores, "--format", "json", "--cost-item", "1")))
    assert [row["system"] for row in document["systems"]] == ["big", "new", "old"]
    assert len(document["differences"]) == 3
    assert document["components"]["runs"] == 0
    assert document["plan"][1]["cost"] == pytest.approx(30)
    assert document["gate"] is None


def test_labels_in_a_file(scores: Path, tmp_path: Path) -> None:
    gold = tmp_path / "human.csv"
    lines = [f"i{p},{model},{p % 7 + gap}" for p in range(8) for model, gap in GAPS.items()]
    gold.write_text("\n".join(["sample_id,model,truth", *lines]))
    text = printed(*rank(scores, "--gold", gold))
    assert "What the labels are worth" in text
    assert "--out" in refusal(*rank(scores, "--gold", gold, "-o", gold))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "modle", "--item", "sample_id"), "Did you mean --by model?"),
        (("--by", "model"), "Did you mean --item sample_id?"),
        (("--by", "model", "--item", "sample_id", "--fail-if", "worse"), "Add --baseline"),
        (("--by", "model", "--item", "sample_id", "--margin", "1"), "Add --fail-if"),
        (("--by", "model", "--item", "sample_id", "--baseline", "x"), "--baseline: found"),
        (
            ("--by", "model", "--item", "sample_id", "--baseline", "old", "--fail-if", "worse", "--margin", "-1"),
            "--margin",
        ),
        (("--by", "model", "--item", "sample_id", "--cost-item", "-1"), "cost"),
        (("--by", "model", "--item", "sample_id", "--cluster", "x"), "--cluster"),
        (("--by", "model", "--item", "model"), "own column"),
    ],
)  # fmt: skip
def test_what_cannot_be_run(scores: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in refusal("rank", scores, *arguments)


def test_usage(scores: Path) -> None:
    assert "--by" in refusal("rank", scores, code=2)
    refusal(*rank(scores, "--fail-if", "sometimes"), code=2)


def test_other_engines_are_refused_in_one_line(scores: Path) -> None:
    for engine in ("disk", "spark"):
        said = refusal(*rank(scores, "--engine", engine), code=2)
        assert said.startswith("trueup: --engine: rank works in memory only; ")
    assert "--engine: diagnose works in memory only" in refusal(
        "diagnose", scores, "--engine=disk", code=2
    )


def test_the_cheapest_way_at_given_prices(scores: Path) -> None:
    text = printed(*rank(scores, "--cost-item", "2", "--cost-answer", "0.1"))
    lines = text.splitlines()
    place = next(k for k, line in enumerate(lines) if line.startswith("A difference of two"))
    assert lines[place + 1].startswith("Cheapest at these prices: ")
    plan = json.loads(
        printed(*rank(scores, "--cost-item", "2", "--cost-answer", "0.1", "--format", "json"))
    )["plan"]
    costs = {each["change"]: each["cost"] for each in plan}
    # 30 items more, with a score of each of 4 judges for each of 3 systems; one score for each system and item.
    assert costs["twice the items"] == pytest.approx(30 * 2 + 30 * 12 * 0.1)
    assert costs["one more judge"] == pytest.approx(30 * 3 * 0.1)
    assert "Cheapest" not in printed(*rank(scores))
    free = printed(*rank(scores, "--cost-item", "2"))  # scores cost nothing then
    assert "Cheapest at these prices: one more judge, ± " in free
