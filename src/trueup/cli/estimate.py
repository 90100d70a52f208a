"""trueup estimate: answers in a file, truths in another, and a report to show."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.engine_options import Where
from trueup.cli.integers import Whole
from trueup.cli.read_options import Reading, inputs


def estimate(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    method: str = "auto",
    shrink: str = "adaptive",
    variance: str | None = None,
    groups: str | None = None,
    covariates: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=False)] = None,
    gold: str | None = None,
    bias: Annotated[bool, Parameter(negative=())] = False,
    caution: float = 0.8,
    level: float = 0.95,
    seed: Whole = 0,
    truth: str | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: Path | None = None,
    report: Path | None = None,
    save: Path | None = None,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    reading: Reading | None = None,
    where: Where | None = None,
) -> None:
    """Estimate the true value of every question in a file of answers.

    Example: trueup estimate answers.csv -o truths.csv --workers workers.csv --report report.html

    Parameters
    ----------
    file
        CSV or other delimited text, JSON lines, Parquet or .xlsx; a pattern such as "answers/*.csv"; - for standard
        input; a DuckDB or SQLite file with --sql.
    method
        First step: how the answers to a question become one number. auto lets held-out workers decide.
    shrink
        Second step: how these move toward each other.
    variance
        How sure the first step is of each question: a rule, or a number.
    groups
        Column with the group of each question, or a file with the columns question and group.
    covariates
        Column with a number known of each question, or a file of them; may be given several times.
    gold
        Known truths of some questions, at least eight: a column, or a file with the columns question and truth.
    bias
        Estimate the bias of each worker and take it off first.
    caution
        Share of the step that the second step takes, above 0 and up to 1.
    level
        Level of the intervals.
    seed
        Of the random splits of the workers.
    truth
        File with the columns question and truth, to compare with; it is not used for the estimates.
    out
        Where the estimates go: .csv, .parquet or .json. In CSV, ids that look like a formula get a leading apostrophe.
    workers
        Where the verdict on each worker goes: .csv, .parquet or .json.
    report
        Where a report for people goes, one .html file that works offline.
    save
        Where the state goes, a .trueup file, into which trueup update folds new answers.
    format
        What is printed: text for people, json for machines.
    """
    from functools import partial

    from trueup._estimate import make_plan, read_question_data, solved
    from trueup.algorithms.driver import MAX_ITER, TOLERANCE
    from trueup.cli.summary import document, summary, verdicts_on
    from trueup.cli.tables import write_files
    from trueup.core.progress import Progress
    from trueup.io.formats import PAGES, STATES, TABLES
    from trueup.io.outputs import check_outputs
    from trueup.pipeline.auto_method import CANDIDATES

    reading, where = reading or Reading(), where or Where()
    request = reading.question_data(groups, covariates, gold)
    taken = inputs(file, request, reading.question_data(gold=truth))
    check_outputs({"--out": out, "--workers": workers}, TABLES, inputs=taken)
    check_outputs({"--report": report}, PAGES, inputs=taken)
    check_outputs({"--save": save}, STATES, inputs=taken)
    blockers = {"--report": report, "--truth": truth, "--save": save}
    place = where.place(file, blockers, streams=_streams(out, reading))
    if place != "memory":
        from trueup.cli.on_disk import estimate_on_disk
        from trueup.cli.on_spark import estimate_on_spark

        options: dict[str, Any] = {
            "method": method,
            "shrink": shrink,
            "variance": _number_or_name(variance),
            "groups": groups,
            "covariates": tuple(covariates or ()),
            "gold": gold,
            "bias": bias,
            "caution": caution,
            "level": level,
            "seed": seed,
        }
        run = estimate_on_disk if place == "disk" else estimate_on_spark
        run(file, out, workers, reading, where, as_json=format == "json", **options)
        return
    number = _number_or_name(variance)
    plan = make_plan(method, shrink, number, bias, caution, level, MAX_ITER, TOLERANCE, seed, None)
    answers = reading.answers(file)
    with Progress("estimate", 3 + len(CANDIDATES), shown=True) as bar:
        true = reading.truth(truth, answers, file)
        question_data = read_question_data(request, answers, file)
        if true is not None and question_data.gold is not None:
            # What was told is no test of what was found out.
            true = _without(true, question_data.gold)
        bar.step("answers read")
        est = solved(answers, plan, question_data, bar)
    verdicts = verdicts_on(est)
    contents: dict[Path, Any] = {
        path: table(est, part, path, verdicts)
        for path, part in ((out, "questions"), (workers, "workers"))
        if path is not None
    }
    if report is not None:
        contents[report] = partial(est.report, command=command_line(), truth=true)
    if save is not None:
        contents[save] = est.save
    # All that takes time comes before the files: an interrupt then leaves none.
    text = document(est, verdicts, true) if format == "json" else summary(est, verdicts, true)
    write_files(contents)
    print(text)
    if format == "json":
        return
    for path in contents:
        print(f"Written: {path}")


def _streams(out: Path | None, reading: Reading) -> bool:
    """Tell whether an estimate on disk would do what is asked."""
    long = reading.wide in (None, "long") and reading.sql is None
    return long and out is not None and out.suffix.lower() == ".parquet"


def _without(true: Any, known: Any) -> Any:
    """Return the truths of questions whose truth was not given as gold; None if there are none."""
    import numpy as np

    rest = np.where(np.isnan(known), true, np.nan)
    return None if np.isnan(rest).all() else rest


def _number_or_name(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def command_line() -> str:
    """Return the command line as it was typed."""
    import shlex

    return shlex.join(["trueup", *sys.argv[1:]])


def table(est: Any, part: str, path: Path, verdicts: Any) -> Any:
    """Return a table for a file; for JSON, rows together with how they came about."""
    from trueup.cli.summary import with_verdicts

    origin = replace(est.answers.origin, kind="pyarrow")
    rows = getattr(replace(est, answers=replace(est.answers, origin=origin)), part)
    if part == "workers":
        rows = with_verdicts(rows, verdicts)
    if path.suffix.lower() != ".json":
        return rows
    about = est.diagnosis
    return {
        "method": about.method,
        "shrink": about.shrink,
        "level": est.level,
        "warnings": about.warnings,
        "assumptions": about.assumptions,
        part: rows.to_pylist(),
    }
