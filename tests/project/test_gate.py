"""action.yml and tools/gate.sh, run as a runner of continuous integration would: exit codes, outputs, hostile names."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from commands import environment, need_cli
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

need_cli()
yaml: Any = pytest.importorskip("yaml", reason="needs pyyaml")
SCRIPT = ROOT / "tools" / "gate.sh"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
PAGE = ROOT / "docs" / "how-to" / "continuous-integration.md"
GAPS = {"old": 0.0, "new": 0.05, "big": 1.0}


def variable(name: str) -> str:
    """Return the variable that hands an input over."""
    return "GATE_" + name.upper().replace("-", "_")


class Ended(NamedTuple):
    """How the gate ended: exit code, what was printed, outputs and summary for the runner."""

    code: int
    out: str
    outputs: dict[str, str]
    summary: str


def read_outputs(text: str) -> dict[str, str]:
    """Read a file of outputs as the runner does: `name=value`, or `name<<WORD` up to a line that is WORD."""
    values, lines = {}, iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and "<<" not in name:
            values[name] = value
            continue
        name, word = line.split("<<")
        kept = []
        for inner in lines:
            if inner == word:
                break
            kept.append(inner)
        values[name] = "\n".join(kept)
    return values


def gate(folder: Path, inputs: Mapping[str, str], **more: str) -> Ended:
    """Run the script in a folder as a step of a workflow."""
    home = folder / ".runner"
    home.mkdir(exist_ok=True)
    command = home / "trueup"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trueup "$@"\n', "utf-8")
    command.chmod(0o755)
    files = {name: home / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("", "utf-8")
    given = {variable(name): value for name, value in inputs.items()}
    paths = {name: str(file) for name, file in files.items()}
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", str(SCRIPT)],
        cwd=folder,
        env=environment(GATE_COMMAND=str(command), **{**paths, **given, **more}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    texts = [file.read_text("utf-8") for file in files.values()]
    return Ended(done.returncode, done.stdout, read_outputs(texts[0]), texts[1])


def write_scores(
    path: Path,
    head: tuple[str, ...] = ("sample_id", "model", "judge", "score"),
    names: Mapping[str, str] | None = None,
) -> None:
    """Write scores of three systems on 20 items by four judges."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for item in range(20):
            level = rng.normal()
            for model, gap in GAPS.items():
                shown = (names or {}).get(model, model)
                for judge in range(4):
                    score = round(gap + level + 0.5 * rng.normal(), 3)
                    writer.writerow((f"i{item}", shown, f"j{judge}", score))


INPUTS = {"scores": "scores.csv", "by": "model", "item": "sample_id", "baseline": "old"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_scores(tmp_path / "scores.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("more", "code", "decision", "said"),
    [
        ({}, 0, "passed", 'Gate passed: no system is clearly worse than "old".'),
        ({"baseline": "big"}, 3, "failed", 'Gate failed: "old", "new" clearly worse than "big".'),
        ({"baseline": "big", "margin": "2"}, 0, "passed",
         'Gate passed: no system is clearly worse than "big" by more than 2.'),
        ({"fail-if": "not-better"}, 3, "failed", 'Gate failed: "new" not clearly better than "old".'),
        ({"lower-is-better": "true"}, 3, "failed", 'Gate failed: "big" clearly worse than "old".'),
        ({"lower-is-better": "false", "options": "--where=model=old\n\n--where=model=new\n"}, 0, "passed",
         'Gate passed: no system is clearly worse than "old".'),
    ],
)  # fmt: skip
def test_a_decision_is_the_last_line_the_exit_code_and_an_output(
    folder: Path, more: dict[str, str], code: int, decision: str, said: str
) -> None:
    ended = gate(folder, INPUTS | more)
    assert ended.code == code, ended.out
    assert ended.out.splitlines()[-1] == said
    assert ended.outputs == {"decision": decision, "exit-code": str(code), "said": said}
    assert ended.summary.startswith(f"### trueup: {decision}\n\n    Effective number of judges")
    assert f"    {said}\n" in ended.summary


def test_what_cannot_be_decided_is_a_failure_of_its_own(tmp_path: Path) -> None:
    rows = ["sample_id,model,judge,score"]
    rows += [
        f"{m}{p},{m},j{i},{(7 * p + 3 * i) % 5}"
        for m in ("old", "new")
        for p in range(4)
        for i in range(3)
    ]
    (tmp_path / "scores.csv").write_text("\n".join(rows), "utf-8")
    ended = gate(tmp_path, INPUTS)
    assert ended.code == 1
    assert ended.outputs["decision"] == "undecided"
    assert 'Gate undecided: "new" cannot be compared with "old"' in ended.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("more", "code", "part"),
    [
        ({"scores": "nothing.csv"}, 1, "nothing.csv"),
        ({"baseline": "none such"}, 1, "none such"),
        ({"baseline": ""}, 1, "Add --baseline"),
        ({"by": ""}, 2, "by"),
        ({"fail-if": "sad"}, 2, "fail-if"),
        ({"lower-is-better": "perhaps"}, 2, "lower-is-better"),
        ({"options": "--no-such-option"}, 2, "no-such-option"),
    ],
)
def test_errors_are_no_decisions(folder: Path, more: dict[str, str], code: int, part: str) -> None:
    ended = gate(folder, INPUTS | more)
    assert ended.code == code, ended.out
    assert ended.outputs["decision"] == "error"
    assert ended.outputs["exit-code"] == str(code)
    assert ended.outputs["said"] == ended.out.splitlines()[-1]
    assert ended.outputs["said"].startswith("trueup: ")
    assert part in ended.outputs["said"]


HOSTILE = [
    "$(touch owned)", "`touch owned`", "'; touch owned; '", '"; touch owned; "', "a b*?[c]", "--help",
    "&& touch owned", "$HOME", "%0A::error::x", "ü\u202e", "${{ github.token }}",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_columns_and_systems_are_data(tmp_path: Path, name: str) -> None:
    write_scores(tmp_path / "scores.csv", ("sample_id", name, "judge", "score"), {"old": name})
    ended = gate(tmp_path, INPUTS | {"by": name, "baseline": name})
    assert ended.code == 0, ended.out
    assert ended.outputs["decision"] == "passed"
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "name", ["-x.csv", "$(touch owned).csv", "a b';touch owned;'.csv", "--by=judge.csv", "new\nline.csv"]
)  # fmt: skip
def test_names_of_files_are_data(tmp_path: Path, name: str) -> None:
    write_scores(tmp_path / name)
    ended = gate(tmp_path, INPUTS | {"scores": name, "report": f"{name}.html"})
    assert ended.code == 0, ended.out
    assert (tmp_path / f"{name}.html").read_text("utf-8").startswith("<!")
    assert not (tmp_path / "owned").exists()


def test_scores_cannot_speak_to_the_runner(tmp_path: Path) -> None:
    """A name that spans lines, looks like a command of the runner, an output, or the end of a summary's block."""
    names = {
        "old": "::error::owned",
        "new": "x\ndecision=passed\n```\n<b>",
        "big": "##[error]z\r\n# z",
    }
    write_scores(tmp_path / "scores.csv", names=names)
    ended = gate(tmp_path, INPUTS | {"baseline": names["big"]}, GITHUB_ACTIONS="true")
    assert ended.code == 3, ended.out
    assert ended.outputs["decision"] == "failed"
    assert set(ended.outputs) == {"decision", "exit-code", "said"}
    first, *inside, last = ended.out.splitlines()
    word = first.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", word)
    assert last == f"::{word}::"
    assert not any(word in line for line in inside)
    assert any(line.startswith("::error::owned") for line in inside)
    title, blank, *block = ended.summary.splitlines()
    assert (title, blank) == ("### trueup: failed", "")
    assert all(line.startswith("    ") or not line for line in block)
    again = gate(tmp_path, INPUTS | {"baseline": names["big"]}, GITHUB_ACTIONS="true")
    assert again.out.splitlines()[0] != first


def test_it_runs_where_there_is_no_runner(folder: Path) -> None:
    ended = gate(folder, INPUTS, GITHUB_OUTPUT="", GITHUB_STEP_SUMMARY="")
    assert (ended.code, ended.outputs, ended.summary) == (0, {}, "")
    assert ended.out.splitlines()[-1].startswith("Gate passed: ")


# -- the action ------------------------------------------------------------------------------------


def test_every_input_is_handed_to_the_script_and_used_there() -> None:
    *_, step = ACTION["runs"]["steps"]
    wanted = {variable(name): f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    assert step["env"] == wanted
    used = set(re.findall(r"GATE_[A-Z_]+", SCRIPT.read_text("utf-8")))
    assert used - {"GATE_"} == set(wanted) | {"GATE_COMMAND"}
    assert "tools/gate.sh" in step["run"]


def test_no_value_is_pasted_into_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "uses" not in step


def test_outputs_are_those_of_the_script() -> None:
    *_, step = ACTION["runs"]["steps"]
    wanted = {name: f"${{{{ steps.{step['id']}.outputs.{name} }}}}" for name in ACTION["outputs"]}
    assert {name: each["value"] for name, each in ACTION["outputs"].items()} == wanted
    assert set(wanted) == {"decision", "exit-code", "said"}


def test_defaults_are_those_of_the_command(folder: Path) -> None:
    given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
    ended = gate(folder, given | INPUTS)
    assert (ended.code, ended.out) == gate(folder, INPUTS)[:2]
    assert ended.code == 0


def test_the_page_gives_the_action_what_it_takes() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    steps = [
        step
        for block in blocks
        for job in yaml.safe_load(block).get("jobs", {}).values()
        for step in job["steps"]
        if "trueup@" in step.get("uses", "")
    ]
    assert steps
    required = {name for name, each in ACTION["inputs"].items() if each.get("required")}
    for step in steps:
        assert required <= set(step["with"]) <= set(ACTION["inputs"])
