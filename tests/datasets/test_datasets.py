"""Data sets by name: found, fetched whole or not at all, converted, and as described."""

from __future__ import annotations

import hashlib
import importlib
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import trueup
from trueup import TrueupError, TrueupWarning, datasets
from trueup.datasets import convert
from trueup.datasets.registry import REGISTRY, Recipe
from trueup.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# The function of this name hides the module.
download_module = importlib.import_module("trueup.datasets.download")

GUESSES = b"""user_id,image_index,time,guess,guess_2,answer
7,1,42991,20,60,51
7,2,8415,60,81,118
0,1,15355,10,30,51
7,1,900,1,1,51
"""
INTERVALS = b"""user_id,image_index,time,guess,guess_2,answer
0,2,8273,60,100,118
3,2,8273,,100,118
3,1,5000,50,50,51
"""
TOY = (GUESSES, INTERVALS)
TOY_COUNTS = (3, 2, 5, 2)
TOY_ANSWERS = [
    ("1", "w1", 40.0),
    ("1", "w2", 20.0),
    ("1", "w3", 50.0),
    ("2", "w1", 70.5),
    ("2", "w2", 80.0),
]


def message_of(call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    with pytest.raises(TrueupError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def rows_of(answers: trueup.Answers) -> set[tuple[object, object, float]]:
    matrix = answers.to_matrix()
    return {
        (question, worker, matrix[i, j])
        for i, worker in enumerate(answers.worker_ids.tolist())
        for j, question in enumerate(answers.question_ids.tolist())
        if not np.isnan(matrix[i, j])
    }


def write_set(
    folder: Path, answers: str = "question,worker,answer\na,u,1\n", **beside: str
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.csv").write_text(answers, "utf-8")
    for name, content in beside.items():
        (folder / f"{name}.csv").write_text(content, "utf-8")
    return folder


# -- downloading -----------------------------------------------------------------------------------


class Reply(NamedTuple):
    """What the server does when asked for a path."""

    body: bytes = b""
    status: int = 200
    promised: int | None = None  # length announced, if not that of the body
    stalls: bool = False


class Server(ThreadingHTTPServer):
    """A repository host on this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: dict[str, Reply] = {}
        self.asked: list[str] = []
        self.ends = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append(self.path)
        reply = server.replies.get(self.path, Reply(b"not here", 404))
        self.send_response(reply.status)
        length = len(reply.body) if reply.promised is None else reply.promised
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(reply.body)
        if reply.stalls:
            server.ends.wait(10)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.ends.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have an empty cache and nothing else."""
    monkeypatch.setenv("TRUEUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TRUEUP_DATA", raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def toy(cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make `dots` a small set that the server has; return the paths of its files."""
    pytest.importorskip("pooch", reason="needs pooch")
    assert not cache.exists()
    paths = ("raw data/ice_2guess.csv", "raw data/ice_interval.csv")
    files = tuple(
        (path, hashlib.sha256(body).hexdigest()) for path, body in zip(paths, TOY, strict=True)
    )
    recipe = Recipe("c0ffee" * 6 + "abcd", files, convert.dots)
    workers, questions, answers, truths = TOY_COUNTS
    entry = replace(
        REGISTRY["dots"],
        repository="some/where",
        workers=workers,
        questions=questions,
        answers=answers,
        truths=truths,
        recipe=recipe,
    )
    monkeypatch.setitem(REGISTRY, "dots", entry)
    monkeypatch.setattr(download_module, "BASE", server.base)
    asked = [f"/some/where/{recipe.commit}/{path.replace(' ', '%20')}" for path in paths]
    server.replies.update(
        {path: Reply(body) for path, body in zip(asked, TOY, strict=True)},
    )
    return asked


def left_in(cache: Path) -> list[str]:
    return [path.name for path in cache.rglob("*")] if cache.exists() else []


def test_a_set_is_fetched_once(toy: list[str], server: Server, cache: Path) -> None:
    first = datasets.load("dots")

    assert server.asked == toy
    server.replies.clear()
    again = datasets.load("dots")
    assert server.asked == toy
    for found in (first, again):
        assert rows_of(found.answers) == {(int(q), w, a) for q, w, a in TOY_ANSWERS}
        assert found.truth == {1: 51.0, 2: 118.0}
        assert found.truth_array.tolist() == [51.0, 118.0]
        assert found.name == "dots"
        assert found.source == "https://github.com/some/where"
        assert found.citation.startswith("Ugander")
        assert found.blocks is None
        assert found.labels is None
    assert sorted(left_in(cache)) == ["answers.csv", "dots-c0ffeec0ffee-1", "truth.csv"]


@pytest.mark.usefixtures("toy")
def test_the_cache_needs_no_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = datasets.download("dots", base=server.base + "/")

    monkeypatch.setattr(download_module, "BASE", "http://127.0.0.1:1")
    assert datasets.download("dots") == folder
    assert datasets.load("dots").answers.n_answers == 5


REMEDY = (
    " Try again; or download raw data/ice_2guess.csv, raw data/ice_interval.csv at commit "
    'c0ffeec0ffee by hand into a folder and run trueup.datasets.download("dots", files=FOLDER); '
    "or, with a converted copy in FOLDER/dots, set TRUEUP_DATA=FOLDER."
)


@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"gone", 404), "the server answered 404"),
        (Reply(b"oops", 500), "the server answered 500"),
        (Reply(GUESSES, promised=2 * len(GUESSES)), "the transfer broke off"),
        (
            Reply(GUESSES, promised=2 * len(GUESSES), stalls=True),
            "the server was silent for 0.2 seconds",
        ),
    ],
    ids=["404", "500", "broken off", "stalled"],
)
def test_a_failed_download_leaves_nothing(
    toy: list[str],
    server: Server,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    reason: str,
    broken: int,
) -> None:
    monkeypatch.setattr(download_module, "TIMEOUT", 0.2)
    whole = server.replies[toy[broken]]
    server.replies[toy[broken]] = reply

    assert message_of(datasets.load, "dots") == (
        'Data set "dots": could not be downloaded from https://github.com/some/where, '
        f"{reason}.{REMEDY}"
    )
    assert left_in(cache) == []

    server.replies[toy[broken]] = whole
    monkeypatch.setattr(download_module, "TIMEOUT", 10.0)
    assert datasets.load("dots").answers.n_answers == 5


@pytest.mark.parametrize(
    "body", [GUESSES[:-5], GUESSES + b"\n", b"<html>please log in</html>", b""]
)
def test_a_file_that_is_not_the_known_one_is_not_kept(
    toy: list[str], server: Server, cache: Path, body: bytes
) -> None:
    server.replies[toy[0]] = Reply(body)
    known, found = (hashlib.sha256(content).hexdigest()[:12] for content in (GUESSES, body))

    message = message_of(datasets.load, "dots")

    assert message.startswith(
        'Data set "dots": the file raw data/ice_2guess.csv is not the expected one, its '
        f"SHA-256 begins with {found}, not {known}. Nothing of it was kept."
    )
    assert "TRUEUP_DATA" in message
    assert left_in(cache) == []


@pytest.mark.usefixtures("toy")
def test_no_connection_is_explained(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as closed:
        base = closed.base
    monkeypatch.setattr(download_module, "BASE", base)

    assert message_of(datasets.load, "dots") == (
        'Data set "dots": could not be downloaded from https://github.com/some/where, '
        f"no connection (ConnectionError).{REMEDY}"
    )
    assert left_in(cache) == []


@pytest.mark.usefixtures("toy")
def test_files_fetched_by_hand_will_do(server: Server, cache: Path, tmp_path: Path) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    (hand / "ice_2guess.csv").write_bytes(GUESSES)
    message = message_of(datasets.download, "dots", files=hand)
    assert message.startswith('files: "')
    assert message.endswith(
        'ice_interval.csv" cannot be read (No such file or directory). '
        "It is raw data/ice_interval.csv of https://github.com/some/where."
    )
    (hand / "ice_interval.csv").write_bytes(INTERVALS + b" ")
    assert "is not the expected one" in message_of(datasets.download, "dots", files=hand)
    assert left_in(cache) == []

    (hand / "ice_interval.csv").write_bytes(INTERVALS)
    datasets.download("dots", files=str(hand))

    assert datasets.load("dots").answers.n_answers == 5
    assert server.asked == []


@pytest.mark.usefixtures("toy")
def test_what_does_not_convert_as_described_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = REGISTRY["dots"]
    assert entry.recipe is not None
    monkeypatch.setitem(REGISTRY, "dots", replace(entry, answers=6))
    assert (
        "found (3, 2, 5, 2) workers, questions, answers and true values, expected (3, 2, 6, 2)"
        in (message_of(datasets.load, "dots"))
    )
    wrong = replace(entry, recipe=replace(entry.recipe, convert=convert.pies))
    monkeypatch.setitem(REGISTRY, "dots", wrong)
    assert "the files are not in the form expected" in message_of(datasets.load, "dots")
    assert left_in(cache) == []


@pytest.mark.usefixtures("toy")
def test_a_cache_that_cannot_be_written_is_explained(cache: Path) -> None:
    cache.write_text("in the way")
    message = message_of(datasets.load, "dots")
    assert "cannot be written (" in message
    assert "TRUEUP_CACHE" in message
    assert cache.read_text() == "in the way"


@pytest.mark.usefixtures("toy")
def test_a_writer_that_dies_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = convert._write

    def die(path: Path, *rest: Any) -> None:
        write(path, *rest)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(convert, "_write", die)
    assert "cannot be written (No space left on device)" in message_of(datasets.load, "dots")
    assert left_in(cache) == []


@pytest.mark.usefixtures("toy")
def test_a_quicker_process_is_as_good(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache / "dots-c0ffeec0ffee-1"
    write = convert.Tables.write

    def overtaken(tables: convert.Tables, ready: Path) -> None:
        write(tables, ready)
        write_set(folder)

    monkeypatch.setattr(convert.Tables, "write", overtaken)
    assert datasets.load("dots").answers.n_answers == 1
    assert sorted(left_in(cache)) == ["answers.csv", "dots-c0ffeec0ffee-1"]


@pytest.mark.usefixtures("toy")
def test_a_damaged_folder_in_the_cache_is_explained(cache: Path) -> None:
    folder = cache / "dots-c0ffeec0ffee-1"
    folder.mkdir(parents=True)
    (folder / "truth.csv").write_text("question,truth\n")
    assert "cannot be written (" in message_of(datasets.load, "dots")


@pytest.mark.usefixtures("cache")
def test_without_pooch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtra, match=r'pip install "trueup\[datasets\]"'):
        datasets.load("dots")


def test_the_platform_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch", reason="needs pooch")
    monkeypatch.delenv("TRUEUP_CACHE", raising=False)
    assert download_module._cache().is_absolute()
    assert "trueup" in download_module._cache().parts


@pytest.mark.usefixtures("cache")
def test_sets_without_a_recipe_are_not_downloaded() -> None:
    message = message_of(datasets.load, "calories")
    assert message.startswith('Data set "calories": cannot be downloaded by trueup')
    for part in (
        "answers.csv (columns question,worker,answer)",
        "truth.csv (question,truth)",
        "blocks.csv (question,block)",
        "labels.csv (question,label)",
        "https://github.com/cran/metaggR",
        "TRUEUP_DATA",
        "data=",
    ):
        assert part in message
    assert "cannot be downloaded" in message_of(datasets.download, "calories")


# -- where a set is looked for ---------------------------------------------------------------------


@pytest.mark.usefixtures("toy")
def test_the_argument_goes_before_the_environment_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets.download("dots")
    assert datasets.load("dots").answers.n_answers == 5

    write_set(tmp_path / "environment" / "dots", "question,worker,answer\na,u,1\nb,u,2\n")
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path / "environment"))
    found = datasets.load("dots")
    assert found.answers.n_answers == 2
    assert found.citation.startswith("Ugander")

    write_set(tmp_path / "argument" / "dots")
    assert datasets.load("dots", data=tmp_path / "argument").answers.n_answers == 1
    assert datasets.load("dots", data=str(tmp_path / "argument")).answers.n_answers == 1

    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path / "argument" / "dots"))  # has no dots in it
    assert datasets.load("dots").answers.n_answers == 5


def test_sets_of_ones_own_load_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_set(
        tmp_path / "my set",
        "question,worker,answer\n007,u,1\n007,v,2\n7,u,5\n08,u,3\n",
        truth="question,truth\n08,4\n007,1.5\n7,NA\n",
        blocks="question,block\n007,1\n7,1\n08,2\n",
        labels='question,label\n007,"James, ""B"""\n08,"two\nlines\x85é"\n',
    )
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path))
    for found in (
        datasets.load("my set"),
        datasets.load("my set", data=tmp_path),
        datasets.load_folder(folder),
    ):
        assert found.name == "my set"
        assert rows_of(found.answers) == {
            ("007", "u", 1.0),
            ("007", "v", 2.0),
            ("7", "u", 5.0),
            ("08", "u", 3.0),
        }
        assert found.truth == {"08": 4.0, "007": 1.5}
        np.testing.assert_array_equal(found.truth_array, [1.5, np.nan, 4.0])
        assert found.blocks == {"007": "1", "7": "1", "08": "2"}
        assert found.labels == {"007": 'James, "B"', "08": "two\nlines\x85é"}
        assert found.source == str(folder)
        assert found.description == found.citation == ""
        assert repr(found) == (
            "Dataset('my set', Answers(3 questions, 2 workers, 4 answers), truth of 2 questions)"
        )


def test_whole_numbers_are_ids_in_every_file(tmp_path: Path) -> None:
    found = datasets.load_folder(
        write_set(
            tmp_path / "x",
            "question;worker;answer\n2;u;1\n1;u;2\n",
            truth="\ufefftruth;question;note\r\n5;1;x\r\n",
            blocks="question\tblock\n1\tb\n\n2\tb",
        )
    )
    assert found.truth == {1: 5.0}
    assert found.blocks == {1: "b", 2: "b"}
    np.testing.assert_array_equal(found.truth_array, [np.nan, 5.0])


def test_answers_alone_are_a_set(tmp_path: Path) -> None:
    found = datasets.load_folder(write_set(tmp_path / "x", truth="question,truth\n"))
    assert found.truth is None
    assert np.isnan(found.truth_array).all()
    assert repr(found).endswith("no truth)")


def test_options_are_those_of_answers(tmp_path: Path) -> None:
    write_set(tmp_path / "x", "question,worker,answer\na,u,7\na,u,9\nb,u,0\n")
    assert "answer" in message_of(datasets.load, "x", data=tmp_path)
    found = datasets.load("x", data=tmp_path, duplicates="first").answers
    np.testing.assert_allclose(found.centre, [7.0, 0.0])


def test_true_values_of_unknown_questions_are_left_out_aloud(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "x", truth="question,truth\na,1\nz,2\n")
    with pytest.warns(TrueupWarning, match=r'"truth.csv": 1 of 2 questions .* left out: "z"'):
        assert datasets.load_folder(folder).truth == {"a": 1.0}


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("answers", "", 'File "answers.csv": is empty'),
        ("answers", "q,w\n1,2\n", 'File "answers.csv": Column "question": not found'),
        ("answers", "question,worker,answer\na,u,x\n", "is not a number"),
        ("truth", "", 'File "truth.csv": Column "question": not found. There are no columns.'),
        ("truth", "question,Truth\na,1\n", 'Column "truth": not found.'),
        ("truth", "question,truth\na,x\n", 'File "truth.csv": Column "truth": 1 of 1 value is not'),
        ("truth", "question,truth\na,inf\n", "is infinite"),
        ("truth", "question,truth\na,1,2\n", "line 2 has 3 fields, the header has 2."),
        ("truth", "question,truth\na,1\na,2\n", '"a" appears twice, with "1" and "2".'),
        ("truth", 'question,truth\n"a,1\n', 'File "truth.csv": line 2 cannot be read ('),
        (
            "truth",
            "question,truth\nA,1\n",
            'none of its 1 questions is in answers.csv, such as "A"',
        ),
        ("blocks", "question,group\na,1\n", 'File "blocks.csv": Column "block": not found.'),
        ("labels", "question,label\nb,1\n", 'File "labels.csv": none of its 1 questions'),
        ("labels", b"question,label\na,\xff\n", 'File "labels.csv": is not UTF-8 text.'),
    ],
)
def test_files_that_cannot_be_used_are_explained(
    tmp_path: Path, file: str, content: str | bytes, part: str
) -> None:
    folder = write_set(tmp_path / "x")
    (folder / f"{file}.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    message = message_of(datasets.load, "x", data=tmp_path)
    assert message.startswith('Folder "')
    assert part in message


@pytest.mark.usefixtures("cache")
def test_folders_that_cannot_be_used_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_set(tmp_path / "x")
    assert "not found. Name a folder with answers.csv" in message_of(
        datasets.load_folder, tmp_path / "none"
    )
    assert "is a file, not a folder." in message_of(datasets.load_folder, folder / "answers.csv")
    assert "has no answers.csv. It must hold" in message_of(datasets.load_folder, tmp_path)
    assert "data: " in message_of(datasets.load, "x", data=tmp_path / "none")
    assert 'has no "y/answers.csv". The folder "y" in it must' in message_of(
        datasets.load, "y", data=tmp_path
    )
    assert "It is itself a data set: read it with trueup.datasets.load_folder." in message_of(
        datasets.load, "x", data=folder
    )
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path / "none"))
    assert message_of(datasets.load, "x").startswith("TRUEUP_DATA: ")


@pytest.mark.usefixtures("cache")
def test_names_that_are_none_are_explained() -> None:
    assert 'Data set "Dotz": not found. Did you mean "dots"? The public ones are "emotions", ' in (
        message_of(datasets.load, "Dotz")
    )
    assert "not found. The public ones" in message_of(datasets.describe, "x\ny")
    assert "not found." in message_of(datasets.describe, ["dots"])
    for name in ("", ".", "..", "../dots", "a\\b", "a\0b", None):
        assert message_of(datasets.load, name).startswith("name: found ")


# -- conversion ------------------------------------------------------------------------------------


def test_dots_are_the_middle_of_two_guesses() -> None:
    tables = convert.dots(TOY)
    assert tables.answers == TOY_ANSWERS
    assert tables.truth == {"1": 51.0, "2": 118.0}
    assert tables.counts == TOY_COUNTS


def test_emotions_keep_ids_and_get_blocks() -> None:
    answer = (
        b"question,worker,answer\r\n10,A9,25\r\n10,A1,-80.5\r\n2,A1,0\r\n10,A9,3\r\n"
        b"3,A1,7\r\n3,A9,1e2\r\n4,A1,\r\n4,\xff,NA\r\n"
    )
    truth = b"\xef\xbb\xbfquestion,truth\n3,1\n2,\n10,-3\n99,5\n10,4"
    tables = convert.emotions((answer, truth))
    assert tables.answers == [
        ("10", "w1", 25.0),
        ("10", "w2", -80.5),
        ("2", "w2", 0.0),
        ("3", "w2", 7.0),
        ("3", "w1", 100.0),
    ]
    assert tables.truth == {"10": -3.0, "3": 1.0}
    assert tables.blocks == {"10": "1", "2": "2", "3": "1"}


def test_population_survives_any_bytes() -> None:
    claims = (
        b"bogot\xe3\x83\xc2\xa1_2005\tcontributor #0 (1.2.3.4)\t6776009\t2005\n"
        b"\xc5\x85\xa0a\x1c_2004\tcontributor #1: \xe3\x85\xa0\t126117856178246\t2004\r\n"
        b"bogot\xe3\x83\xc2\xa2_2005\tcontributor #1: \xe3\x85\xa0\t0\t2005\n"
        b"gary, indiana_2000\tcontributor #1: \xe3\x85\xa1\t102746\t2000\n"
        b"bogot\xe3\x83\xc2\xa1_2005\tcontributor #1: \xe3\x85\xa0\t67000\t2005\n"
        b"bogot\xe3\x83\xc2\xa1_2005\tcontributor #0 (1.2.3.4)\t5\t2005\n"
    )
    facts = (
        b"gary, indiana, 2000, 102746\nflint, michigan, 2000, 1\n\ngary, indiana, 2000, 7\n"
        b"\xc5\x85\xa0a\x1c, 2004, 0"
    )
    tables = convert.population((claims, facts))
    assert tables.answers == [
        ("1", "w1", 6776009.0),
        ("1", "w2", 67000.0),
        ("2", "w2", 126117856178246.0),
        ("3", "w2", 0.0),
        ("4", "w3", 102746.0),
    ]
    assert tables.truth == {"2": 0.0, "4": 102746.0}
    assert tables.labels == {
        "1": "bogot????_2005",
        "2": "???a\x1c_2004",
        "3": "bogot????_2005",
        "4": "gary, indiana_2000",
    }


def test_pies_take_the_first_trial_in_time() -> None:
    head = b"rotation,chart-type,workerID,totalSequence,ans-trial,correct-ans,time\n"
    trials = (
        b"1.5,pie,DP10,2,30,41,4.8\n"
        b"1.5,pie,AT87,10,45,41,4.8\n"
        b"1.5,square,AT87,9,40,41,\n"
        b"1.5,square,AT87,8,,3,\n"
        b"1.5,pie,DP10,1,9,3,1\n"
    )
    tables = convert.pies((head + trials,))
    assert tables.answers == [("1", "w1", 40.0), ("1", "w2", 30.0), ("2", "w2", 9.0)]
    assert tables.truth == {"1": 41.0, "2": 3.0}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    tables = convert.Tables(
        answers=[("1", "w1", 1261178561782463.0), ("1", "w2", 0.1), ("2", "w1", 6.598e18)],
        truth={"2": -1e-7},
        blocks={"1": "a", "2": "b"},
        labels={"1": 'x, "y"\x1c', "2": "=1+1"},
    )
    tables.write(tmp_path)
    found = datasets.load_folder(tmp_path)
    assert rows_of(found.answers) == {
        (1, "w1", 1261178561782463.0),
        (1, "w2", 0.1),
        (2, "w1", 6.598e18),
    }
    assert found.truth == {2: -1e-7}
    assert found.blocks == {1: "a", 2: "b"}
    assert found.labels == {1: 'x, "y"\x1c', 2: "=1+1"}


# -- what is in the registry -----------------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.names())
def test_real_sets_are_as_described(name: str, data_folder: Path) -> None:
    entry = datasets.describe(name)
    found = datasets.load(name, data=data_folder)

    answers = found.answers
    truth = found.truth or {}
    assert (answers.n_workers, answers.n_questions, answers.n_answers) == entry.counts[:3]
    assert len(truth) == entry.truths
    assert np.isfinite(found.truth_array).sum() == entry.truths
    for question, value in zip(answers.question_ids.tolist(), found.truth_array, strict=True):
        np.testing.assert_equal(truth.get(question, np.nan), value)
    assert found.description == entry.description
    if found.labels is not None:
        assert len(found.labels) == entry.questions


def test_blocks_of_emotions_are_questions_with_the_same_workers(data_folder: Path) -> None:
    found = datasets.load("emotions", data=data_folder)
    assert found.blocks is not None
    answered = ~np.isnan(found.answers.to_matrix())
    block = np.array([found.blocks[question] for question in found.answers.question_ids.tolist()])
    assert len(np.unique(block)) == 5
    for each in np.unique(block):
        here = answered[:, block == each]
        assert (here == here[:, :1]).all()
        assert here[:, 0].sum() == 10


def test_an_entry_can_be_read() -> None:
    text = str(datasets.describe("population"))
    assert "2,415 workers, 1,172 questions, 4,183 answers, truth of 277 questions" in text
    assert "https://github.com/daz45/population---truth-discovery (downloaded at first use)" in text


def test_recipes_are_exact() -> None:
    downloadable = {name for name, entry in REGISTRY.items() if entry.recipe}
    assert downloadable == {"emotions", "population", "dots", "pies"}
    for name, entry in REGISTRY.items():
        assert entry.name == name
        if entry.recipe:
            assert len(bytes.fromhex(entry.recipe.commit)) == 20
            for _, sha256 in entry.recipe.files:
                assert len(bytes.fromhex(sha256)) == 32


# -- small data from print -------------------------------------------------------------------------


def test_table_1_is_workers_by_questions() -> None:
    table = datasets.table1()
    assert table.answers.to_matrix().tolist() == [
        [20, 2, 3, 4],
        [10, 11, 18, 14],
        [8, 11, 23, 19],
        [6, 13, 7, 3],
    ]
    assert table.truth == {0: 10.0, 1: 9.0, 2: 12.0, 3: 16.0}
    assert trueup.estimate(table.answers, method="mean", shrink="none").estimate.tolist() == [
        11,
        9.25,
        12.75,
        10,
    ]


def test_batting_averages_shrink_as_published() -> None:
    """Efron and Morris (Scientific American, 1977): mean .265, shrinking factor .212."""
    data = datasets.batting()
    assert len(data.players) == len(data.x) == len(data.variance) == len(data.truth) == 18
    mean = data.x.mean()
    factor = 1 - 15 * data.variance[0] / ((data.x - mean) ** 2).sum()
    assert mean == pytest.approx(0.265, abs=5e-4)
    assert factor == pytest.approx(0.212, abs=5e-3)
    shrunk = mean + factor * (data.x - mean)
    gain = ((data.x - data.truth) ** 2).sum() / ((shrunk - data.truth) ** 2).sum()
    assert gain == pytest.approx(3.5, abs=0.1)
    assert "1975" in data.citation
