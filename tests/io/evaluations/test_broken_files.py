"""Files of evaluations that were cut, damaged or changed are read, or refused in one line that names them."""

from __future__ import annotations

import copy
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evaluation_files as files
from trueup.errors import TrueupError
from trueup.io.readers.answer_column import AnswerRules
from trueup.io.readers.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("duckdb")

DOCUMENTS = {
    "inspect": files.inspect_log(),
    "promptfoo": files.promptfoo(),
    "promptfoo-old": files.promptfoo(2),
    "deepeval": files.deepeval(),
    "label-studio": files.label_studio(),
    "argilla": files.argilla(),
    "argilla-flat": files.argilla(flat=True),
}
#: What may stand where something else was meant.
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 10**400, 1e308, float("inf"), float("nan"), "", " ", "C", "0.5", "=1+1", "\ud800",
    "a@b.org", [], {}, [[]], {"id": []}, [None], [{"value": {}}], {"": None},
)  # fmt: skip


def settled(path: Path, **options: Any) -> None:
    """Read a file, or see it refused in one line that names it."""
    try:
        table = read_file(path, **options, rules=AnswerRules(skip_bad=True))
    except TrueupError as error:
        message = str(error)
        assert "\n" not in message
        assert path.name in message or path.parent.name in message, message
        assert len(message) < 2000
    else:
        assert len(table.answer) > 0
        assert all(abs(answer) < float("inf") for answer in table.answer)
        assert table.n_rows >= len(table.answer)


def nodes(document: Any) -> list[tuple[Any, Any]]:
    """Return all places of a document: what holds something, and under which key."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in inside:
        found.append((document, key))
        if isinstance(value, dict | list):
            found += nodes(value)
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("named", [False, True])
def test_documents_that_were_cut(tmp_path: Path, name: str, named: bool) -> None:
    text = json.dumps(DOCUMENTS[name]).encode()
    path = tmp_path / "cut.json"
    options: dict[str, Any] = (
        {"from_format": name.removesuffix("-old").removesuffix("-flat")} if named else {}
    )
    for length in (0, 1, 2, *range(10, len(text), len(text) // 12), len(text) - 1):
        path.write_bytes(text[:length])
        with pytest.raises(TrueupError, match=r"cut\.json"):
            read_file(path, **options)
        settled(path, **options)


@pytest.mark.parametrize("zstd", [False, True])
def test_archives_that_were_cut_or_damaged(tmp_path: Path, zstd: bool) -> None:
    whole = files.write_archive(tmp_path / "log.eval", files.inspect_log(), zstd=zstd).read_bytes()
    path = tmp_path / "bad.eval"
    for length in (0, 3, 4, *range(20, len(whole), len(whole) // 25), len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(TrueupError, match=r"bad\.eval"):
            read_file(path)
    for place in range(0, len(whole), max(1, len(whole) // 300)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        settled(path)


@pytest.mark.parametrize("zstd", [False, True])
def test_an_archive_that_needs_a_password_says_so(tmp_path: Path, zstd: bool) -> None:
    if zstd:
        pytest.importorskip("pyarrow")
    path = files.write_archive(tmp_path / "log.eval", files.inspect_log(), zstd=zstd)
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    content = bytearray(path.read_bytes())
    while (start := content.find(b"PK\1\2", start)) >= 0:  # each entry of the table of contents
        content[start + 8] |= 1
        start += 4
    path.write_bytes(content)
    with pytest.raises(TrueupError, match=r"log\.eval.*needs a password"):
        read_file(path)


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_documents_with_strange_values(tmp_path: Path, name: str, data: Any) -> None:
    document = json.loads(json.dumps(DOCUMENTS[name]))
    for _ in range(data.draw(st.integers(1, 4))):
        places = nodes(document)
        if not places:
            break
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        strange = copy.deepcopy(data.draw(st.sampled_from(STRANGE)))
        match data.draw(st.sampled_from(("replace", "remove", "rename"))):
            case "replace":
                holder[key] = strange
            case "remove":
                del holder[key]
            case _ if isinstance(holder, dict):
                holder[str(strange)[:50]] = holder.pop(key)
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    settled(path)
    settled(path, from_format=name.removesuffix("-old").removesuffix("-flat"))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_forecasts_that_were_damaged(tmp_path: Path, ending: str) -> None:
    home = files.hub(tmp_path, ending)
    path = sorted(home.glob(f"*/*{ending}"))[1]
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        for content in (whole[:place], whole[:place] + b"\xff" + whole[place + 1 :]):
            path.write_bytes(content)
            settled(path, from_format="hubverse")


def test_what_is_too_deep(tmp_path: Path) -> None:
    deep = '{"eval": {}, "samples": ' + "[" * 100_000 + "]" * 100_000 + "}"
    path = tmp_path / "deep.json"
    path.write_text(deep)
    settled(path)
    settled(path, from_format="inspect")
