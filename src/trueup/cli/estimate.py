"""trueup estimate: answers in a file, truths in another, and a report to show."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.engine_options import EngineOptions
from trueup.cli.options import EstimateOptions


def estimate(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: Path | None = None,
    answers: Path | None = None,
    report: Path | None = None,
    title: str | None = None,
    unit: str | None = None,
    save: Path | None = None,
    rejects: Path | None = None,
    truth: str | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    options: EstimateOptions | None = None,
    where: EngineOptions | None = None,
) -> None:
    """Estimate the true value of every question in a file of answers.

    Example: trueup estimate answers.csv -o truths.csv --workers workers.csv --report report.html

    Parameters
    ----------
    file
        CSV or other text, JSON lines, Parquet, .xlsx; a file or folder that an evaluation left, see --from;
        "answers/*.csv"; - for standard input; a database with --sql.
    out
        Where the estimates go: .csv, .parquet or .json. In CSV, ids that look like a formula get a leading apostrophe.
    workers
        Where the verdict on each worker goes: .csv, .parquet or .json.
    answers
        Where suspicious answers go, typing errors for example: .csv, .parquet or .json.
    report
        Where a report for people goes, one .html file that works offline.
    title
        Title of the report.
    unit
        Unit of the answers, shown in the report: cm, EUR, points.
    save
        Where the state goes, a .trueup file, into which trueup update folds new answers.
    rejects
        Where the rows go that were set aside, by --skip-bad or by the reader of an evaluation: .csv, .parquet or .json.
    truth
        File with the columns question and truth, to compare with; it is not used for the estimates.
    force
        Let report and state replace a file that trueup did not write.
    format
        What is printed: text for people, json for machines.
    """
    from trueup._compare import truth_request
    from trueup.cli.run import (
        check_rejects,
        check_report_texts,
        command_line,
        inputs,
        run_estimate,
    )
    from trueup.cli.summary import document, known_truth, summary
    from trueup.cli.tables import rejects_table, result_table, suspicious_file, write_files
    from trueup.errors import TrueupError
    from trueup.io.formats import PAGES, STATES
    from trueup.io.outputs import check_outputs, tables_at
    from trueup.request import Request
    from trueup.result.save import anonymous_state

    where = where or EngineOptions()
    given: dict[str, Any] = {} if options is None else options.given
    request = Request.of("estimate", file, **given)
    truths = truth_request(truth, request)
    taken = inputs(file, request.question_data, truths)
    tables = {"--out": out, "--workers": workers, "--answers": answers, "--rejects": rejects}
    outputs = {**tables_at(tables), "--report": (report, PAGES), "--save": (save, STATES)}
    check_outputs(outputs, taken, force=force)
    check_report_texts(report, title, unit)
    # The disk does these, too, but the answers must fit into memory then.
    blockers: dict[str, Any] = {"--truth": truth, "--save": save, "--rejects": rejects}
    if where.engine == "spark":
        blockers["--report"] = report
        blockers["--method FILE.py:CLASS"] = not isinstance(request.plan.method, str)
        blockers["--anonymous"] = request.read.anonymous
    if save is not None and request.read.anonymous:
        raise anonymous_state()
    engine = where.choose(file, blockers, request, out)
    if rejects is not None:
        check_rejects(engine)
    ran = run_estimate(engine, file, request, where, out)
    est = ran.est
    with ran.finished():
        known = known_truth(est, truths, file)
        contents: dict[Path, Any] = {}
        if out is not None:
            contents[out] = ran.write or result_table(est, "questions", out)
        if workers is not None:
            contents[workers] = result_table(est, "workers", workers)
        if answers is not None:
            contents[answers] = suspicious_file(est.findings, answers)
        if rejects is not None:
            if not request.read.skip_bad and not len(est.rejects):
                raise TrueupError(
                    "--rejects: rows of this file are set aside only with --skip-bad. Pass that, too."
                )
            contents[rejects] = rejects_table(est, rejects)
        if report is not None:
            contents[report] = lambda path: est.report(
                path, command=command_line(), truth=known, title=title, unit=unit
            )
        if save is not None:
            contents[save] = est.save
        # All that takes time comes before the files take their names: an interrupt then leaves none.
        written = None if engine == "memory" else out
        as_json = format == "json"

        def what_is_printed() -> str:
            if as_json:
                return document(est, known, written)
            return summary(est, known, ran.stored or written)

        text = write_files(contents, what_is_printed)
    print(text)
    if not as_json:
        for path in contents:
            print(f"Written: {path}")
