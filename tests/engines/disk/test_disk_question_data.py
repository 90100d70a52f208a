"""Groups, covariates and gold of answers on disk: columns, or tables by question, as for answers in memory."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueup
from commands import need_cli, printed, refusal, run, write
from trueup.errors import AnswersError, TrueupError
from trueup.shrinkage import ShrinkRule

need_cli()

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from trueup import disk  # noqa: E402
from trueup.engines.disk.folder import JOURNAL  # noqa: E402
from trueup.engines.disk.intake import ingest  # noqa: E402
from trueup.engines.disk.question_data import read_question_data  # noqa: E402
from trueup.io.question_data import QuestionDataRequest  # noqa: E402

QUESTIONS, WORKERS = 90, 9
COLUMNS = ("estimate", "lower", "upper", "std_error", "base", "base_std_error", "shrinkage")


def text(j: int) -> str:
    """Return an id whose order is that of the numbers."""
    return f"q{j:03d}"


def group(j: int) -> str:
    """Return the group of a question."""
    return f"g{j % 3}"


def sizes(j: int) -> dict[str, float]:
    """Return what is known of a question in numbers."""
    return {"size": float(j * 7 % 13), "age": (j * 5 % 11) / 4}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write answers whose truths go with groups and numbers."""
    folder = tmp_path_factory.mktemp("answers")
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(WORKERS, QUESTIONS))
    rows: list[dict[str, Any]] = [
        {
            "question": text(j),
            "worker": f"w{i}",
            "answer": 20 * (j % 3) + 3 * sizes(j)["size"] + (4 + 2 * i) * float(noise[i, j]),
            "size": sizes(j)["size"],
        }
        for j in range(QUESTIONS)
        for i in range(WORKERS)
        if (i * 3 + j) % 5
    ]
    write(str(folder / "answers.csv"), rows)
    numbers = [{**row, "question": int(row["question"][1:])} for row in rows]
    write(str(folder / "numbers.csv"), numbers)
    pq.write_table(pa.Table.from_pylist(numbers), folder / "numbers.parquet")
    return folder


@pytest.fixture(autouse=True)
def _here(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with nothing but the answers."""
    monkeypatch.chdir(tmp_path)
    for path in files.iterdir():
        shutil.copy(path, tmp_path)


def tables(name: Any = text) -> None:
    """Write what is known of the questions into files; some of it is of questions nobody answered."""
    every = range(QUESTIONS + 3)
    write("groups.csv", [{"question": name(j), "group": group(j)} for j in every if j % 7])
    write("sizes.csv", [{"question": name(j), **sizes(j)} for j in every])
    write("gold.csv", [{"question": name(j), "truth": 20 * (j % 3) + 5} for j in every if j > 70])


def on_disk(source: str, method: str = "mean", **known: Any) -> Any:
    """Estimate on disk, and return the estimates in the order of the questions."""
    disk.estimate(source, "out.parquet", method, **known)
    return pq.read_table("out.parquet").sort_by("question").column("estimate").to_numpy()


def agree(source: str, method: str = "mean", second_step: str = "", **known: Any) -> Any:
    """Estimate on disk and in memory, and see that both say the same."""
    est = disk.estimate(source, "out.parquet", method, **known)
    expected = trueup.estimate(source, method, **known)
    assert est.diagnosis == expected.diagnosis
    assert second_step in est.diagnosis.second_step
    found = pq.read_table("out.parquet").sort_by("question")
    theirs = pa.table({name: expected.questions[name] for name in ("question", *COLUMNS)})
    theirs = theirs.sort_by("question")
    assert found.column("question").to_pylist() == theirs.column("question").to_pylist()
    for name in COLUMNS:
        np.testing.assert_allclose(
            found.column(name).to_numpy(), theirs.column(name).to_numpy(), rtol=1e-9, atol=1e-11
        )
    return found.column("estimate").to_numpy()


@pytest.mark.parametrize(
    ("source", "name", "known", "second_step"),
    [
        ("answers.csv", text, {"groups": "groups.csv"}, "toward the mean of their group"),
        (
            "numbers.csv",
            int,
            {"covariates": "sizes.csv", "target": "consensus"},
            "toward the value that the covariates",
        ),
        (
            "numbers.parquet",
            int,
            {"groups": "groups.csv", "covariates": "sizes.csv", "gold": "gold.csv"},
            "",
        ),
        ("numbers.csv", int, {"groups": "groups.csv", "gold": "gold.csv"}, ""),
    ],
)
def test_files_beside_the_answers_mean_what_they_mean_in_memory(
    source: str, name: Any, known: dict[str, Any], second_step: str
) -> None:
    tables(name)
    told = agree(source, second_step=second_step, **known)
    assert np.abs(told - agree(source)).max() > 0.01


def test_all_forms_mean_the_same() -> None:
    tables()
    wanted = agree("answers.csv", groups="groups.csv", covariates="sizes.csv")
    for name in ("groups", "sizes"):
        pq.write_table(_read(f"{name}.csv"), f"{name}.parquet")
    labels = {text(j): group(j) if j % 7 else None for j in range(QUESTIONS)}
    forms: list[tuple[Any, Any]] = [
        ("groups.parquet", "sizes.parquet"),
        (Path("groups.csv"), Path("sizes.csv")),
        ("grou*.csv", "size*.csv"),
        (labels, _read("sizes.csv")),
        (_read("groups.csv"), {"question": [*map(text, range(QUESTIONS))], **_columns()}),
    ]
    for groups, covariates in forms:
        found = on_disk("answers.csv", groups=groups, covariates=covariates)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def _read(path: str) -> Any:
    from pyarrow import csv

    return csv.read_csv(path)


def _columns() -> dict[str, list[float]]:
    return {name: [sizes(j)[name] for j in range(QUESTIONS)] for name in ("size", "age")}


def test_columns_and_files_of_covariates_may_be_mixed() -> None:
    every = range(QUESTIONS)
    write("ages.csv", [{"question": text(j), "age": sizes(j)["age"]} for j in every])
    tables()
    expected = agree("answers.csv", covariates="sizes.csv")
    both: Any
    for both in (["size", "ages.csv"], ["size", Path("ages.csv"), "size"], ["ages.csv", "size"]):
        np.testing.assert_allclose(on_disk("answers.csv", covariates=both), expected, rtol=1e-9)


def test_questions_are_found_in_all_blocks() -> None:
    tables(int)
    request = QuestionDataRequest("groups.csv", ["sizes.csv", "size"], "gold.csv")
    assert request.columns() == (None, ("size",), None)
    with ingest("numbers.csv", "work", columns=request.columns()) as stored:
        for block in (1, 40, 1 << 19):
            cut = stored.cut(block)
            assert (cut.n_blocks == 1) == (block > 1000)
            found = read_question_data(request, cut)
            assert found.groups is not None
            assert found.covariates is not None
            assert found.gold is not None
            labels = [*found.groups.ids.tolist(), None]
            expected = [group(j) if j % 7 else None for j in range(QUESTIONS)]
            assert [labels[code] for code in found.groups.codes.tolist()] == expected
            assert found.covariates.names == ("size", "size", "age")
            numbers = [[sizes(j)["size"], *sizes(j).values()] for j in range(QUESTIONS)]
            assert found.covariates.values.tolist() == numbers
            assert np.isnan(found.gold[:71]).all()
            assert found.gold[71:].tolist() == [20 * (j % 3) + 5 for j in range(71, QUESTIONS)]


NOBODY = "found no question that is in the answers"
NUMBER = "which is not a usable number"
WRONG: list[tuple[str, str, str, str]] = [
    ("answers.csv", "groups", "question,group\nx,a\n", f'{NOBODY}. It has "x", the answers have'),
    ("answers.csv", "groups", "question,group\n Q001,a\n", "They differ in spaces or capitals"),
    ("answers.csv", "groups", "question,group\nq001,a\nq001,b\n", 'two labels, "a" and "b"'),
    ("answers.csv", "groups", "question,a,b\nq001,a,b\n", 'found the columns "a", "b" besides'),
    ("answers.csv", "groups", "question\nq001\n", "found no column besides"),
    ("answers.csv", "groups", "name,group\nq001,a\n", 'Column "question": not found'),
    ("answers.csv", "groups", "", "is empty or has no header"),
    ("numbers.csv", "groups", "question,group\n01,a\n", f'{NOBODY}. It has "01", the answers have'),
    ("answers.csv", "covariates", "question,z\nq001,1\n", '89 questions without a value of "z"'),
    ("answers.csv", "covariates", "question,z\nq001,tall\n", f'has the "z" "tall", {NUMBER}'),
    ("answers.csv", "covariates", "question,z\nq001,inf\n", f'has the "z" "inf", {NUMBER}'),
    ("answers.csv", "covariates", "question,z\nq001,1e200\n", f'has the "z" 1e+200, {NUMBER}'),
    ("answers.csv", "covariates", "question,z\nq001,1\nq001,2\n", "has two values of"),
    ("answers.csv", "covariates", "question,z\nx,1\n", NOBODY),
    ("answers.csv", "gold", "question,truth\nq001,many\n", NUMBER),
    ("answers.csv", "gold", "question,truth\nq001,\n", "found no truth, all are empty"),
    ("answers.csv", "gold", "question,truth\nx,1\n", NOBODY),
    ("answers.csv", "gold", "question,truth\nq001,1\nq001,2\n", "has two values of"),
]


@pytest.mark.parametrize(("source", "argument", "content", "said"), WRONG)
def test_what_is_wrong_is_said_as_in_memory(
    source: str, argument: str, content: str, said: str
) -> None:
    Path("beside.csv").write_text(content)
    options = ("estimate", source, "--out", "o.parquet", f"--{argument}", "beside.csv")
    told = refusal(*options, "--engine", "disk")
    assert f"--{argument}: " in told
    assert said in told
    assert told == refusal(*options, "--engine", "memory")


@pytest.mark.parametrize(
    ("argument", "given", "said"),
    [
        ("groups", "grops.csv", 'File "grops.csv": not found. Did you mean "groups.csv"?'),
        ("groups", "knd", 'Column "knd": not found'),
        ("groups", "question", "holds the questions themselves"),
        ("groups", "worker", "has two labels"),
        ("covariates", "sizes", "Did you mean --covariates size?"),
        ("covariates", "no/sizes.parquet", "not found, there is no folder"),
        ("gold", "gld.csv", 'Did you mean "gold.csv"?'),
    ],
)
def test_names_of_nothing_are_told_as_in_memory(argument: str, given: str, said: str) -> None:
    tables()
    options = ("estimate", "answers.csv", "--out", "o.parquet", f"--{argument}", given)
    told = refusal(*options, "--engine", "disk")
    assert said in told
    assert told == refusal(*options, "--engine", "memory")


def test_the_text_1_and_the_number_1_are_different_ids_unless_a_text_file_says_so() -> None:
    labels = {"question": [str(j) for j in range(QUESTIONS)], "group": [*map(group, range(90))]}
    pq.write_table(pa.table(labels), "text.parquet")
    for estimate in (trueup.estimate, _to_disk):
        with pytest.raises(AnswersError, match='The number 1 and the text "1" are different ids'):
            estimate("numbers.csv", method="mean", groups="text.parquet")
    write("text.csv", [{"question": j, "group": group(j)} for j in range(QUESTIONS)])
    agree("numbers.csv", groups="text.csv")


def _to_disk(source: str, **options: Any) -> Any:
    return disk.estimate(source, "out.parquet", **options)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("groups", [group(j) for j in range(QUESTIONS)]),
        ("covariates", np.zeros(QUESTIONS)),
        ("covariates", [1.0] * QUESTIONS),
        ("covariates", np.zeros((QUESTIONS, 2))),
        ("gold", np.zeros(QUESTIONS)),
    ],
)
def test_what_does_not_say_which_questions_it_is_of_is_refused_before_reading(
    argument: str, given: Any
) -> None:
    with pytest.raises(TrueupError, match=f"^{argument}: found values without question ids"):
        _to_disk("answers.csv", work_dir="work", **{argument: given})
    assert not Path("work").exists()


def test_a_file_that_is_not_there_is_missed_before_reading() -> None:
    with pytest.raises(AnswersError, match=r'^groups: File "no\.csv": not found'):
        _to_disk("answers.csv", work_dir="work", groups="no.csv")
    assert not Path("work").exists()


def test_a_file_that_has_changed_is_read_again_and_the_answers_are_not() -> None:
    tables()
    known: dict[str, Any] = {"groups": "groups.csv", "covariates": "sizes.csv"}
    options: dict[str, Any] = {"method": "crh", "work_dir": "work", "keep": True}

    def estimates() -> Any:
        return on_disk("answers.csv", **options, **known)

    before = estimates()
    stamp = Path("work/answers/meta.json").stat().st_mtime_ns
    np.testing.assert_array_equal(estimates(), before)
    every = range(QUESTIONS)
    write("groups.csv", [{"question": text(j), "group": f"g{j % 2}"} for j in every])
    write("sizes.csv", [{"question": text(j), "age": sizes(j)["age"]} for j in every])
    after = estimates()
    assert np.abs(after - before).max() > 0.01
    np.testing.assert_allclose(after, agree("answers.csv", "crh", **known), rtol=1e-12)
    assert Path("work/answers/meta.json").stat().st_mtime_ns == stamp
    known.clear()
    np.testing.assert_allclose(estimates(), agree("answers.csv", "crh"), rtol=1e-12)


class EndsEarly(ShrinkRule):
    """A second step that cannot be taken."""

    name = "ends early"

    def fit(self, *_: Any, **__: Any) -> Any:
        """Stop."""
        raise TrueupError("no second step today")


def test_a_run_that_ended_early_goes_on_with_what_is_known_now() -> None:
    tables()
    options: dict[str, Any] = {"method": "crh", "work_dir": "work", "groups": "groups.csv"}
    with pytest.raises(TrueupError, match="no second step today"):
        disk.estimate("answers.csv", "out.parquet", shrink=EndsEarly(), **options)
    assert list(Path("work").glob(JOURNAL))
    write("groups.csv", [{"question": text(j), "group": f"g{j % 2}"} for j in range(QUESTIONS)])
    found = on_disk("answers.csv", **options)
    np.testing.assert_allclose(found, agree("answers.csv", "crh", groups="groups.csv"), rtol=1e-9)


def test_the_command_takes_columns_and_files_as_in_memory() -> None:
    tables(int)
    write("ages.csv", [{"question": j, "age": sizes(j)["age"]} for j in range(QUESTIONS)])
    beside = ("--groups", "groups.csv", "--covariates", "size", "--covariates", "ages.csv")
    options = ("estimate", "numbers.parquet", *beside, "--gold", "gold.csv", "--method", "mean")
    for engine in ("disk", "memory"):
        done = run(*options, "--engine", engine, "--out", f"{engine}.parquet")
        assert (done.code, done.err) == (0, "")
        assert "19 known truths" in done.out
    found, theirs = (pq.read_table(f"{name}.parquet") for name in ("disk", "memory"))
    theirs = theirs.sort_by("question")
    assert found.column("question").to_pylist() == theirs.column("question").to_pylist()
    for name in COLUMNS:
        mine, other = (each.column(name).to_numpy() for each in (found, theirs))
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)


def with_gold(name: str, truth: dict[int, object], missing: int | None = None) -> None:
    """Write the answers again with a column of truths; those of a question are in its first row."""
    with Path("answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    told = set()
    for row in rows:
        j = int(row["question"][1:])
        row["known"] = str(truth.get(j, "")) if j not in told else ""
        if j not in told and j == missing:
            row["answer"] = ""  # such a row still tells the truth of its question
        told.add(j)
    if name.endswith(".csv"):
        write(name, rows)
        return
    numbers = {"answer": float, "known": float}
    pq.write_table(
        pa.table(
            {
                each: [numbers.get(each, str)(row[each]) if row[each] else None for row in rows]
                for each in rows[0]
            }
        ),
        name,
    )


@pytest.mark.parametrize(
    ("source", "known"),
    [("told.csv", {}), ("told.parquet", {"groups": "groups.csv", "covariates": "size"})],
)
def test_truths_may_be_a_column_of_the_answers(source: str, known: dict[str, Any]) -> None:
    tables()
    with_gold(source, {j: 20 * (j % 3) + 5 for j in range(71, QUESTIONS)}, missing=80)
    told = agree(source, gold="known", **known)
    np.testing.assert_allclose(told, on_disk(source, gold="gold.csv", **known), rtol=1e-12)
    options = ("--method", "mean", "--engine", "disk", "--gold", "known", "--out", "out.parquet")
    assert "19 known truths" in printed("estimate", source, *options)


def test_a_column_of_truths_is_read_anew_where_it_was_not_asked_for_before() -> None:
    with_gold("told.csv", dict.fromkeys(range(40), 100.0))
    options: dict[str, Any] = {"method": "mean", "work_dir": "work", "keep": True}
    for gold in (None, "known", None):
        est = disk.estimate("told.csv", "out.parquet", gold=gold, **options)
        assert bool(est.diagnosis.gold) == (gold is not None)


@pytest.mark.parametrize(
    ("truth", "gold", "how", "message"),
    [
        ({3: "many"}, "known", {}, r'gold: question "q003" has the "known" "many", which is not'),
        ({3: "inf"}, "known", {}, r'gold: question "q003" has the "known" "inf", which is not'),
        ({}, "known", {}, "^gold: found no truth, all are empty"),
        ({3: 5}, "knwn", {}, r'^gold: .*Column "knwn": not found'),
        ({3: 5}, "question", {}, "^gold: .*holds the questions themselves"),
        ({3: 5}, "answer", {}, r'^gold: question "q000" has two values of "answer"'),
        ({3: 500}, "known", {"bounds": (-100, 200)}, "^gold: .*but the bounds are -100 and 200"),
    ],
)
def test_what_is_wrong_with_a_column_of_truths_is_told(
    truth: dict[int, object], gold: str, how: dict[str, Any], message: str
) -> None:
    with_gold("told.csv", truth)
    with pytest.raises(TrueupError, match=message) as found:
        _to_disk("told.csv", gold=gold, method="mean", **how)
    assert "\n" not in str(found.value)


def test_files_beside_the_answers_are_written_as_they_are_or_plainly() -> None:
    tables()
    for name in ("answers", "sizes"):
        lines = Path(f"{name}.csv").read_text().replace(",", ";").replace(".", ",")
        Path(f"{name}-de.csv").write_text(lines)
    how: dict[str, Any] = {"sep": ";", "decimal": ","}
    wanted = agree("answers.csv", covariates="sizes.csv")
    for name in ("sizes-de.csv", "sizes.csv"):
        found = agree("answers-de.csv", covariates=name, **how)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_truths_have_the_unit_of_the_answers(tmp_path: Path) -> None:
    rows = [f"q{j},w{i},{10 * j + i} kg" for j in range(8) for i in range(3)]
    (tmp_path / "a.csv").write_text("\n".join(["question,worker,answer", *rows, ""]))
    grams = tmp_path / "truths.csv"
    grams.write_text("question,truth\nq1,11000 g\n")
    given: dict[str, Any] = {"strip_units": True, "work_dir": tmp_path / "work", "keep": True}
    for _ in ("new", "used again"):
        with pytest.raises(AnswersError, match='"truth": is in "g", the answers in "kg"'):
            disk.estimate(tmp_path / "a.csv", tmp_path / "o.parquet", gold=grams, **given)
    est = disk.estimate(tmp_path / "a.csv", tmp_path / "o.parquet", **given)
    with pytest.raises(AnswersError, match='"truth": is in "g", the answers in "kg"'):
        est.report(tmp_path / "r.html", truth=grams)
