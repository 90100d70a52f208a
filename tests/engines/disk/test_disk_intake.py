"""The larger-than-memory ingest: the same answers as in memory, and a folder that is used again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from answers_on_disk import (
    assert_same,
    digest,
    ingest,
    no_files_left_open,  # noqa: F401  for all tests
    table,
    write,
)
from trueup import Answers
from trueup.engines.disk import buckets, files, reading, text_files
from trueup.engines.disk import intake as ingest_module
from trueup.errors import AnswersError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make batches, buckets and buckets of buckets out of a few hundred rows."""
    for module in (files, text_files):
        monkeypatch.setattr(module, "BATCH", 64)
        monkeypatch.setattr(module, "EACH", 16)
    for module in (buckets, reading):
        monkeypatch.setattr(module, "ROWS", 50)
    monkeypatch.setattr(buckets.small_enough, "__defaults__", (80, 0))


# -- the same answers as in memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "ending"),
    [
        ("q{}", ".parquet"),
        ("ö-{}", ".tsv"),
        ("a rather long prefix that all share {}", ".csv.gz"),
        ("{}", ".parquet"),
        ("{}", ".csv"),  # whole numbers
        ("07{}", ".csv"),  # none
    ],
)
@pytest.mark.usefixtures("tiny")
def test_same_as_memory(tmp_path: Path, ids: str, ending: str) -> None:
    path = write(table(700, ids=ids), tmp_path / f"a{ending}")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert not list(stored.folder.spool.iterdir())


@pytest.mark.parametrize(("rule", "ending"), [("mean", ".parquet"), ("first", ".csv")])
@pytest.mark.usefixtures("tiny")
def test_duplicates(tmp_path: Path, rule: Any, ending: str) -> None:
    path = write(table(700, repeats=150), tmp_path / f"a{ending}")
    with ingest(path, tmp_path / "work", duplicates=rule) as stored:
        assert_same(stored, Answers.from_file(path, duplicates=rule))
        assert stored.n_duplicates == 150


@pytest.mark.usefixtures("tiny")
def test_duplicates_are_an_error(tmp_path: Path) -> None:
    path = write(table(700, repeats=9), tmp_path / "a.csv")
    with pytest.raises(AnswersError, match=r"duplicates: 9 answers repeat .*worker \"w") as found:
        ingest(path, tmp_path / "work")
    assert "\n" not in str(found.value)
    assert not list((tmp_path / "work").rglob("*.f64"))
    for wrong in ("median", np.array(["median", "mean"])):
        with pytest.raises(AnswersError, match="median"):
            ingest(path, tmp_path / "work", duplicates=wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"answer_variance": "variance"},
        {"answer_variance": "variance", "duplicates": "mean"},
        {"worker_variance": "of_worker"},
        {"worker_variance": {"w1": 2.0, "w17": 0.5}},
    ],
)
@pytest.mark.usefixtures("tiny")
def test_variances(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write(table(700, repeats=50 if "duplicates" in options else 0), tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work", **options) as stored:
        assert_same(stored, Answers.from_file(path, **options))


@pytest.mark.usefixtures("tiny")
def test_several_files_and_types(tmp_path: Path) -> None:
    data = table(700, ids="{}")
    numbers = data.column("question").cast(pa.int64())
    whole = data.set_column(1, "question", numbers)
    first = whole.slice(0, 300).set_column(1, "question", numbers.slice(0, 300).cast(pa.int16()))
    write(first, tmp_path / "a.parquet")
    write(whole.slice(300).select(["answer", "question", "worker"]), tmp_path / "b.parquet")
    pattern = tmp_path / "*.parquet"
    with ingest(pattern, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(pattern))
        assert stored.block_ids(0).type == pa.int64()
    paths = [
        write(data.slice(300), tmp_path / "z.csv"),
        write(data.slice(0, 300), tmp_path / "y.csv"),
    ]
    with ingest(paths, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(paths))
        assert stored.block_ids(0).type == pa.int64()
    with pytest.raises(AnswersError, match=r"is text, while .* is Parquet"):
        ingest([tmp_path / "a.parquet", tmp_path / "y.csv"], tmp_path / "work")


def test_dictionaries_and_large_text(tmp_path: Path) -> None:
    data = table(300)
    data = data.set_column(1, "question", data.column("question").dictionary_encode())
    data = data.set_column(0, "worker", data.column("worker").cast(pa.large_string()))
    path = write(data, tmp_path / "a.parquet")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert stored.worker_ids.values.type == pa.large_string()


@pytest.mark.usefixtures("tiny")
def test_ids_that_stop_being_numbers(tmp_path: Path) -> None:
    """Whole numbers for most of the file, and then a text: all of them are text."""
    data = table(700, ids="{}")
    late = pa.table({"question": ["007", "x"], "worker": ["1", "2"], "answer": [1.0, 2.0]})
    both = pa.concat_tables([data.select(["question", "worker", "answer"]), late])
    path = write(both, tmp_path / "a.csv")
    with ingest(path, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(path))
        assert stored.block_ids(0).type == pa.string()


def test_zstandard(tmp_path: Path) -> None:
    plain = write(table(300), tmp_path / "a.csv")
    packed = tmp_path / "a.csv.zst"
    with pa.output_stream(packed, compression="zstd") as file:
        file.write(plain.read_bytes())
    with ingest(packed, tmp_path / "work") as stored:
        assert_same(stored, Answers.from_file(plain))
        assert not list(stored.folder.spool.iterdir())
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(AnswersError, match=r'File "a.csv.zst": cannot be read: the archive'):
        ingest(packed, tmp_path / "work")


def test_other_ways_to_write_text(tmp_path: Path) -> None:
    text = "wer;was;wert\nä;q 1;1,5\nö;q 1;2\nä;q2;\n"
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="latin-1")
    names: dict[str, Any] = {"worker": "wer", "question": "was", "answer": "wert"}
    options: dict[str, Any] = {**names, "decimal": ",", "encoding": "latin-1"}
    with ingest(path, tmp_path / "work", **options) as stored:
        assert_same(stored, Answers.from_file(path, **options))
        assert stored.n_missing == 1
    with pytest.raises(
        AnswersError, match=r'File "a.txt": line 2 is not UTF-8 .*encoding="latin-1"'
    ):
        ingest(path, tmp_path / "work", **names, decimal=",")


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=60),
    st.integers(1, 9),
)
def test_borders_follow_the_order_of_text(texts: list[str], pieces: int) -> None:
    ids = pa.array(texts)
    order = np.argsort(np.array([text.encode() for text in texts], dtype=object), kind="stable")
    for sample in (ids, ids.slice(len(ids) // 2)):
        borders = buckets.Borders(sample, pieces)
        bucket = borders.bucket(ids)[order]
        assert (np.diff(bucket.astype(int)) >= 0).all()
        assert bucket.max() < len(borders) <= max(pieces, 1)


# -- groups and covariates -------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.usefixtures("tiny")
def test_groups_and_covariates(tmp_path: Path, ending: str) -> None:
    from trueup.io.question_data import QuestionDataRequest

    data = table(500)
    # Some rows tell the group and have no answer; some the other way round.
    answer = [
        None if i % 9 == 0 else value for i, value in enumerate(data.column("answer").to_pylist())
    ]
    group = [
        None if i % 3 == 0 else value for i, value in enumerate(data.column("group").to_pylist())
    ]
    data = data.set_column(2, "answer", pa.array(answer)).set_column(5, "group", pa.array(group))
    path = write(data, tmp_path / f"a{ending}")
    answers = Answers.from_file(path)
    with ingest(path, tmp_path / "work", groups="group", covariates=["size"]) as stored:
        assert_same(stored, answers)
        labels, numbers = stored.question_data.groups, stored.question_data.covariates
        assert labels is not None
        assert numbers is not None
        order = answers.question_ids.sort_order()
        in_memory = QuestionDataRequest("group", ["size"]).read(answers, path)
        expected, other = in_memory.groups, in_memory.covariates
        assert expected is not None
        names = [
            None if code < 0 else expected.ids.tolist()[code] for code in expected.codes[order]
        ]
        assert [None if code < 0 else labels.ids.tolist()[code] for code in labels.codes] == names
        assert (np.unique(labels.codes[labels.codes >= 0], return_index=True)[1][0]) == 0
        assert other is not None
        np.testing.assert_array_equal(numbers.values, other.values[order])
        assert numbers.names == ("size",)


def test_groups_that_contradict_themselves(tmp_path: Path) -> None:
    text = "question,worker,answer,group,size\nq1,a,1,x,1\nq1,b,2,y,1\nq2,a,3,x,{}\nq2,b,3,x,{}\n"
    path = tmp_path / "a.csv"
    path.write_text(text.format(3, 4))
    with pytest.raises(
        AnswersError, match=r'groups: question "q1" has two labels, "y" and "x"|"x" and "y"'
    ):
        ingest(path, tmp_path / "work", groups="group")
    with pytest.raises(AnswersError, match=r'covariates: question "q2" has two values of "size", '):
        ingest(path, tmp_path / "work", covariates="size")
    path.write_text(text.format("", ""))
    with pytest.raises(
        AnswersError, match=r'covariates: 1 question without a value of "size", first "q2"'
    ):
        ingest(path, tmp_path / "work", covariates="size")
    path.write_text(text.format("big", 1))
    with pytest.raises(AnswersError, match=r'covariates: question "q2" has the "size" "big"'):
        ingest(path, tmp_path / "work", covariates="size")


# -- the folder ------------------------------------------------------------------------------------


def test_a_finished_ingest_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = write(table(300), tmp_path / "a.csv"), tmp_path / "work"
    ingest(path, work).close()
    before = digest(work)

    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "_write", never)
        ingest(path, work).close()
        with pytest.raises(AssertionError):
            ingest(path, work, duplicates="mean").close()
    # That one failed, and left nothing.
    assert not (work / "answers" / "meta.json").exists()
    ingest(path, work).close()
    assert digest(work) == before
    write(table(301), path)
    with ingest(path, work) as stored:
        assert_same(stored, Answers.from_file(path))
    assert digest(work) != before


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    """The sources may even lie where the answers go."""
    for name in ("answers", "spool", "vectors"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
    path = write(table(300), tmp_path / "answers" / "a.parquet")
    for duplicates in ("error", "mean"):
        ingest(path, tmp_path, duplicates=duplicates).close()
    assert path.exists()
    assert len(list(tmp_path.rglob("notes.txt"))) == 3


def test_a_temporary_folder_goes(tmp_path: Path) -> None:
    stored = ingest(write(table(100), tmp_path / "a.csv"))
    where = stored.folder.path
    assert stored.block(0).n_questions
    assert where.exists()
    stored.close()
    assert not where.exists()


def test_threads_change_nothing(tmp_path: Path) -> None:
    path = write(table(5000, questions=400, repeats=300), tmp_path / "a.csv")
    seen = []
    for threads in (1, 2, 5):
        shares: list[tuple[str, float]] = []
        work = tmp_path / f"work{threads}"
        ingest(
            path,
            work,
            threads=threads,
            duplicates="mean",
            progress=lambda *each, to=shares: to.append(each),
        ).close()
        seen.append(digest(work))
        assert {what for what, _ in shares} == {"reading", "sorting"}
        assert shares[-1] == ("sorting", 1.0)
    assert seen[0] == seen[1] == seen[2]
