"""Errors carry facts, and messages know which keywords they mention."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import trueup
from commands import need_cli, printed, refusal
from trueup import Answers, AnswersError, TrueupError, TrueupWarning, disk
from trueup.cli import wording
from trueup.cli.wording import OPTIONS, as_options, is_option
from trueup.core.keywords import flag_of
from trueup.errors import BadRows, Mention, Message, MissingExtra, option
from trueup.request import KEYWORDS

SOURCE = Path(trueup.__file__).parent
TWICE = {"question": ["a", "a"], "worker": ["u", "u"], "answer": [1.0, 2.0]}
GOOD = {"question": ["a", "b"], "worker": ["u", "u"], "answer": [1.0, 2.0]}


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the source, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def raised(data: Any, **keywords: Any) -> TrueupError:
    """Return the error of an estimate."""
    with pytest.raises(TrueupError) as caught:
        trueup.estimate(data, **keywords)
    return caught.value


@pytest.mark.parametrize(
    ("data", "keywords", "argument", "remedy"),
    [
        (GOOD, {"level": 1.5}, "level", ""),
        (GOOD, {"max_iter": -1}, "max_iter", ""),
        (GOOD, {"kind": "x"}, "kind", ""),
        (GOOD, {"sep": ","}, "sep", "Leave it out for data in memory."),
        (GOOD, {"gold": {"z": 1.0}}, "gold", ""),
        (GOOD, {"groups": "none.csv"}, "groups", ""),
        (GOOD, {"answer": "answr"}, "", 'Did you mean answer="answer"?'),
        (
            TWICE,
            {},
            "duplicates",
            'Pass duplicates="mean" to average them, or duplicates="first" to keep the first.',
        ),
    ],
)
def test_errors_name_the_argument_and_what_to_do(
    data: Any, keywords: dict[str, Any], argument: str, remedy: str
) -> None:
    error = raised(data, **keywords)
    assert (error.argument, error.remedy) == (argument, remedy or error.remedy)
    assert str(error).startswith(f"{argument}: " if argument else "Column ")
    assert str(error).endswith(remedy)


def test_errors_name_the_rows() -> None:
    error = raised({**TWICE, "answer": ["1", "many"]})
    assert isinstance(error, BadRows)
    assert error.rows == (1,)
    assert error.remedy.startswith("Remove or mend these rows, pass skip_bad=True")
    error = raised({**GOOD, "v": [0.0, -1.0]}, answer_variance="v")
    assert (error.argument, error.rows) == ("answer_variance", (0, 1))


def test_a_file_adds_its_name_and_the_line_and_keeps_the_facts(tmp_path: Path) -> None:
    need_cli()
    path = tmp_path / "a.csv"
    path.write_text('question;worker;answer\na;u;1\nb;u;"2,5"\n')
    error = raised(path)
    assert (error.argument, error.rows) == ("", (1,))
    assert str(error).startswith('File "a.csv": Column "answer": 1 of 2 values is not a number')
    assert 'To read them pass decimal=","' in error.remedy
    assert error.remedy.endswith("Row 1 is line 3.") or "row 1 is line 3" in error.remedy
    assert "To read them pass --decimal ','." in as_options(error.message)


def test_the_command_line_names_options() -> None:
    error = TrueupError(
        'found "ab".',
        argument="worker_variance",
        remedy="Pass "
        + option("decimal", ",")
        + ", "
        + option("wide", True)
        + " or "
        + option("sep"),
    )
    assert str(error) == 'worker_variance: found "ab". Pass decimal=",", wide=True or sep=...'
    said = "--worker-variance: found \"ab\". Pass --decimal ',', --wide questions or --sep"
    assert as_options(error.message) == said
    assert as_options(error.labelled('File "x"').about("groups").message) == (
        f'--groups: File "x": {said}'
    )


@pytest.mark.parametrize(
    ("mention", "python", "command"),
    [
        (option("bias", True), "bias=True", "--bias on"),
        (option("bias", False), "bias=False", "--bias off"),
        (option("transform", "none"), 'transform="none"', "--transform none"),
        (option("wide", False), "wide=False", "--wide long"),
        (option("wide", "workers"), 'wide="workers"', "--wide workers"),
        (option("answer", "..."), 'answer="..."', "--answer"),
        (option("answer", 'my "own"'), r'answer="my \"own\""', "--answer 'my \"own\"'"),
        (option("answer", "two\nlines"), r'answer="two\nlines"', r"--answer 'two\nlines'"),
        (option("memory_limit", "2GB"), 'memory_limit="2GB"', "--memory-limit 2GB"),
        (option("max_iter"), "max_iter=...", "--max-iter"),
        (option("panel", "p"), 'panel="p"', 'panel="p"'),
        (Message(Mention("bounds")), "bounds", "--bounds"),
        (
            "sep=... as somebody wrote it",
            "sep=... as somebody wrote it",
            "sep=... as somebody wrote it",
        ),
    ],
)
def test_mentions_are_worded_for_python_and_for_the_command_line(
    mention: str, python: str, command: str
) -> None:
    assert mention == python
    assert as_options(mention) == command


def test_messages_stay_messages() -> None:
    text = "a " + option("bias", True) + " b"
    parts = ("a ", Mention("bias", True), " b")
    assert text.parts == parts
    assert isinstance(text, str)
    assert Message(", ").join([text, "c"]).parts == (*parts, ", ", "c")
    assert Message(", ").join([]) == ""
    for same in (copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):  # noqa: S301
        assert (same, same.parts) == (text, parts)


@pytest.mark.parametrize("kind", [TrueupError, AnswersError, BadRows, MissingExtra])
def test_facts_survive_copies_and_processes(kind: type[TrueupError]) -> None:
    error = kind("found.", argument="gold", rows=[1, 2], remedy="Give " + option("bounds") + ".")
    error = error.labelled("File")
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert type(same) is kind
        assert same.message.parts == error.message.parts
        assert (same.argument, same.rows, same.remedy) == ("gold", (1, 2), "Give bounds=....")
    assert str(error.advised("Fix it.")) == "File: gold: found. Fix it."


def test_an_error_of_one_text_is_that_text() -> None:
    assert str(TrueupError("Something else.")) == "Something else."
    assert str(TrueupError()) == ""


def test_commands_name_their_own_options(tmp_path: Path) -> None:
    need_cli()
    out = tmp_path / "a.csv"
    assert refusal("simulate", "-o", out, "--workers", "0").startswith("trueup: --workers: found 0")
    long = tmp_path / "long.csv"
    long.write_text("question,worker,answer\na,u,1\na,u,2\n")
    assert refusal("estimate", long).endswith(
        "Pass --duplicates mean to average them, or --duplicates first to keep the first.\n"
    )
    assert refusal("estimate", long, "--sql", "SELECT 1").startswith(
        'trueup: File "long.csv": --sql: '
    )


# -- the source ---------------------------------------------------------------------------------------


def test_mentions_name_keywords_or_options() -> None:
    names = {
        node.args[0].value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "option"
        and isinstance(node.args[0], ast.Constant)
    }
    assert "duplicates" in names
    assert {name for name in names if name not in KEYWORDS and name not in OPTIONS} == set()


def test_messages_mention_keywords_by_option_alone() -> None:
    """Text such as `decimal=","`, written out, would be that on the command line, too."""
    mention = re.compile(
        rf'(?<![\w.(])({"|".join([*KEYWORDS, *OPTIONS])})=("|\.\.\.|True\b|False\b)'
    )
    written = []
    for path, tree in trees().items():
        if path.parent.name in ("report", "sections"):  # pages are for users of Python
            continue
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        prose = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        written += [
            f"{path.name}:{node.lineno}: {node.value}"
            for node in texts
            if isinstance(node.value, str) and node not in prose and mention.search(node.value)
        ]
    assert written == []


def test_mentions_are_not_lost_in_f_strings() -> None:
    lost = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name)
        and part.func.id == "option"
    ]
    assert lost == []


def test_wording_needs_no_regular_expression() -> None:
    assert not hasattr(wording, "re")


def test_options_are_options_of_commands() -> None:
    need_cli()
    text = "".join(
        printed(command, "--help")
        for command in ("estimate", "compare", "rank", "simulate", "diagnose")
    )
    names = [name for name in (*KEYWORDS, *OPTIONS) if is_option(name)]
    assert "panel" not in names
    assert [name for name in names if flag_of(name) not in text] == []


# -- warnings -----------------------------------------------------------------------------------------


def test_warnings_point_at_the_line_of_the_caller(tmp_path: Path) -> None:
    need_cli()
    wide = tmp_path / "wide.csv"
    wide.write_text("w1,w2,w3,w4\n1,2,3,4\n2,3,4,5\n")
    long = tmp_path / "long.csv"
    rows = [f"q{q},w{w},{q + w * w}" for q in range(9) for w in range(6)]
    long.write_text("\n".join(["question,worker,answer", *rows, "q1,w9,many"]))
    known = {f"w{w}": 1.0 for w in range(6)}
    with pytest.warns(TrueupWarning) as caught:
        Answers.from_file(wide)
    assert {each.filename for each in caught} == {__file__}
    with pytest.warns(TrueupWarning, match="rows could not be used") as caught:
        disk.compare(long, ["mean"])
    assert {each.filename for each in caught} == {__file__}
    long.write_text("\n".join(["question,worker,answer", *rows]))
    with pytest.warns(TrueupWarning, match="worker_variance is not used") as caught:
        trueup.estimate(long, "crh", worker_variance=known)
    assert {each.filename for each in caught} == {__file__}
