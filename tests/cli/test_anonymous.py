"""--anonymous: no id of a worker in any byte that a command writes or prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import trueup
from commands import N_QUESTIONS, WORKERS, Done, files, need_cli, refusal, rows, run, table, write
from trueup import disk

need_cli()

pytestmark = pytest.mark.usefixtures("folder_of_answers")

#: Ids that occur nowhere by chance; two of them copy each other, one always says the same, one types a zero too much.
REAL = {name: f"Xq{number}-{name}-Zk" for number, name in enumerate((*WORKERS, "twin", "same"))}


def answers() -> list[dict[str, object]]:
    """Answers with something to say about several workers."""
    noisy = [{**row, "worker": REAL[row["worker"]]} for row in rows()]
    twin = [{**row, "worker": REAL["twin"]} for row in noisy if row["worker"] == REAL["fay"]]
    same = [
        {**noisy[0], "question": f"q{j + 1}", "worker": REAL["same"], "answer": 20.0}
        for j in range(N_QUESTIONS)
    ]
    kinds = {row["question"]: (row["kind"], row["size"]) for row in noisy}
    for row in same:
        row["kind"], row["size"] = kinds[row["question"]]
    noisy[7]["answer"] = 400.0
    return [*noisy, *twin, *same]


def check(done: Done, before: set[str]) -> None:
    """Check that nothing that a command left behind or printed has an id in it."""
    text = (done.out + done.err).encode()
    for path in Path().rglob("*"):
        if path.is_file() and path.name not in before:
            text += path.read_bytes()
    for identifier in REAL.values():
        assert identifier.encode() not in text, identifier
        assert identifier[:7].encode() not in text, identifier  # nor shortened


@pytest.fixture
def before() -> set[str]:
    write("hidden.csv", answers())
    return files()


OUTPUTS = {
    "estimate": [
        "-o out.parquet --workers w.csv --report r.html --truth truth.csv",
        "-o out.parquet --workers w.json --format json",
    ],
    "diagnose": [
        "--workers w.csv --pairs p.csv --answers o.csv --questions n.csv --report d.html",
        "--workers w.json --format json",
    ],
    "compare": ["--method mean --method native -o c.csv", "--method mean --format json"],
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_no_output_has_an_id(command: str, engine: str, before: set[str]) -> None:
    where = [] if command == "diagnose" else ["--engine", engine, "--seed", "1"]
    for outputs in OUTPUTS[command]:
        done = run(command, "hidden.csv", "--anonymous", *outputs.split(), *where)
        assert done.code == 0, done
        check(done, before)
    if command != "compare":
        assert "worker 1" in done.out + "".join(p.read_text() for p in Path().glob("w.*"))


def test_the_folder_that_is_kept_has_no_id_and_the_same_pseudonyms(before: set[str]) -> None:
    folder = ("--engine", "disk", "--work-dir", "work", "--keep", "-o", "out.parquet")
    tables = []
    for name in ("a.csv", "b.csv"):
        done = run("estimate", "hidden.csv", "--anonymous", *folder, "--workers", name)
        assert done.code == 0, done
        check(done, before)
        tables.append(table(name))
    assert tables[0] == tables[1]
    run("estimate", "hidden.csv", *folder, "--workers", "named.csv")
    assert {row["worker"] for row in table("named.csv")} == set(REAL.values())


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_errors_about_answers_name_no_worker(engine: str, before: set[str]) -> None:
    twice = [*answers(), answers()[3]]
    write("twice.csv", twice)
    line = refusal("estimate", "twice.csv", "--anonymous", "--engine", engine, "-o", "o.parquet")
    assert "worker " in line
    check(Done(1, "", line), {*before, "twice.csv"})
    with_variance = [{**row, "v": -1.0} for row in answers()]
    write("variance.csv", with_variance)
    line = refusal(
        "estimate",
        "variance.csv",
        "--worker-variance",
        "v",
        "--anonymous",
        "--engine",
        engine,
        "-o",
        "o.parquet",
    )
    check(Done(1, "", line), {*before, "twice.csv", "variance.csv"})


@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_lines_that_cannot_be_used_are_not_quoted(before: set[str], strict: list[str]) -> None:
    lines = Path("hidden.csv").read_text().splitlines()
    lines[5] += ",one field,too many"
    lines[9] = lines[9].replace(lines[9].split(",")[2], "much")
    Path("bad.csv").write_text("\n".join(lines))
    where = ("--engine", "disk", "-o", "o.parquet", *strict)
    done = run("estimate", "bad.csv", "--anonymous", *where)
    assert done.code == len(strict)
    assert "line " in done.out + done.err
    check(done, {*before, "bad.csv"})


def test_wide_files_have_workers_as_columns(before: set[str]) -> None:
    wide: dict[object, dict[str, object]] = {}
    for row in answers():
        wide.setdefault(row["question"], dict.fromkeys(("question", *REAL.values()), ""))
        wide[row["question"]] |= {"question": row["question"], str(row["worker"]): row["answer"]}
    write("wide.csv", list(wide.values()))
    done = run("estimate", "wide.csv", "--wide", "questions", "--anonymous", "--workers", "w.csv")
    assert done.code == 0, done
    check(done, {*before, "wide.csv"})


def test_pseudonyms_follow_no_order_and_change_no_estimate() -> None:
    write("hidden.csv", answers())
    named = trueup.estimate("hidden.csv", method="native")
    places = []
    for engine in ("memory", "disk") * 4:
        if engine == "memory":
            est = trueup.estimate("hidden.csv", method="native", anonymous=True)
        else:
            est = disk.estimate("hidden.csv", "o.parquet", "native", anonymous=True)
        with est:
            by_name = dict(
                zip(est.problem.question_ids.tolist(), est.estimate.tolist(), strict=True)
            )
            weights = est.aggregate.weight.tolist()
            assert est.problem.worker_ids.tolist() == [f"worker {i + 1}" for i in range(len(REAL))]
        expected = dict(
            zip(named.problem.question_ids.tolist(), named.estimate.tolist(), strict=True)
        )
        assert by_name == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(sorted(weights), sorted(named.aggregate.weight), rtol=1e-7)
        places.append(tuple(np.argsort(weights).tolist()))
    assert len(set(places)) > 4  # of 40,320 orders


def test_variances_by_worker_are_found_by_id_and_not_shown() -> None:
    write("hidden.csv", answers())
    known = {identifier: 1.0 + number for number, identifier in enumerate(REAL.values())}
    named = trueup.estimate("hidden.csv", "blue", worker_variance=known)
    hidden = trueup.estimate("hidden.csv", "blue", worker_variance=known, anonymous=True)
    np.testing.assert_allclose(hidden.estimate, named.estimate)
    hidden.report("r.html")
    check(Done(0, str(hidden) + str(hidden.request.as_call()), ""), {"hidden.csv"})
    assert "worker_variance=worker_variance" in hidden.request.as_call().text


def test_a_state_is_not_anonymous(before: set[str]) -> None:
    line = refusal("estimate", "hidden.csv", "--anonymous", "--save", "s.trueup")
    assert "Leave out --anonymous" in line
    assert files() == before
    with pytest.raises(trueup.TrueupError, match="save: the workers are anonymous"):
        trueup.estimate("hidden.csv", anonymous=True).save("s.trueup")
    assert files() == before


def test_an_update_shows_pseudonyms_and_keeps_the_ids_in_its_state(before: set[str]) -> None:
    everything = answers()
    write("old.csv", everything[:60])
    write("new.csv", everything[60:])
    assert run("estimate", "old.csv", "--save", "s.trueup", "--method", "crh").code == 0
    before = {*before, "old.csv", "new.csv", "s.trueup", "s2.trueup"}
    done = run(
        "update", "s.trueup", "new.csv", "--anonymous", "-o", "out.csv", "--workers", "w.csv", "--report", "r.html",
        "--state-out", "s2.trueup",
    )  # fmt: skip
    assert done.code == 0, done
    check(done, before)
    assert {row["worker"] for row in table("w.csv")} == {
        f"worker {i + 1}" for i in range(len(REAL))
    }
    state = trueup.load("s2.trueup")
    assert set(state.problem.worker_ids.tolist()) == set(REAL.values())
    shown = [float(row["estimate"]) for row in table("out.csv")]
    np.testing.assert_allclose(shown, state.estimate, rtol=1e-9)
    again = refusal("update", "s2.trueup", "new.csv", "--anonymous")
    assert "were given before, first question" in again
    check(Done(1, "", again), before)


def test_a_cluster_has_no_pseudonyms() -> None:
    line = refusal("estimate", "answers.csv", "--anonymous", "--engine", "spark", "-o", "o.parquet")
    assert "--anonymous: does not work on a cluster" in line


def test_the_json_document_has_pseudonyms() -> None:
    write("hidden.csv", answers())
    done = run("estimate", "hidden.csv", "--anonymous", "--format", "json")
    workers = [row["worker"] for row in json.loads(done.out)["workers"]]
    assert workers == [f"worker {i + 1}" for i in range(len(REAL))]
