"""trueup diagnose: what stands out about workers and questions, and whether a second step helps."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.integers import Whole
from trueup.cli.options import ReadingOptions


def diagnose(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    method: str = "auto",
    target_se: float | None = None,
    resamples: Whole = 400,
    seed: Whole = 0,
    workers: Annotated[Path | None, Parameter(name=["--workers", "-o"])] = None,
    pairs: Path | None = None,
    answers: Path | None = None,
    questions: Path | None = None,
    report: Path | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    options: ReadingOptions | None = None,
) -> None:
    """Tell in words, with the numbers, what stands out about workers and questions.

    Workers who are noisy, biased, constant or err together; suspicious answers; questions that need another
    rater; how well workers agree (ICC, Krippendorff's alpha); and whether a second step helps here: the paper's
    condition, alpha* and expected gain.

    Example: trueup diagnose answers.csv --target-se 0.5 --workers workers.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    method
        First step.
    target_se
        Standard error that every question should have: how many more answers would that take?
    resamples
        Resamples of the workers for the paper's condition; 0 leaves it out.
    seed
        Seed for the resamples.
    workers
        Where the table of the workers goes: .csv, .parquet or .json.
    pairs
        Where the pairs of workers who err together go.
    answers
        Where suspicious answers go, typing errors for example.
    questions
        Where the questions go, with how many more answers each needs; those that need most come first.
    report
        Where a page of the findings goes, one .html file that works offline.
    force
        Let the report replace a file that trueup did not write.
    format
        What is printed: text for people, json for machines.
    """
    from trueup._diagnose import diagnosed
    from trueup.cli.findings import findings_document
    from trueup.cli.own_method import load_method
    from trueup.cli.run import command_line, inputs, read
    from trueup.cli.tables import suspicious_table, write_files
    from trueup.cli.wording import as_options
    from trueup.errors import TrueupError
    from trueup.findings.answers_needed import check_target
    from trueup.io.formats import PAGES
    from trueup.io.outputs import check_outputs, tables_at
    from trueup.report.findings_page import write_findings
    from trueup.request import Request

    check_target(target_se)
    if resamples < 0 or resamples == 1:
        raise TrueupError(
            f"--resamples: found {resamples}, must be 2 or more, or 0 to leave them out."
        )
    outputs = {
        "--workers": workers,
        "--pairs": pairs,
        "--answers": answers,
        "--questions": questions,
    }
    check_outputs({**tables_at(outputs), "--report": (report, PAGES)}, inputs(file), force=force)
    given: dict[str, Any] = {} if options is None else options.given
    algorithm = load_method(method)
    request = Request.of("diagnose", file, method=algorithm, seed=seed, **given)
    plan = request.plan
    est, findings = diagnosed(
        read(file, request),
        target_se,
        resamples,
        {"method": algorithm, "seed": seed, "transform": plan.transform, "bounds": plan.bounds},
        progress=True,
    )
    needed = findings.answers_needed
    tables = {
        workers: findings.workers.workers,
        pairs: None if findings.correlated is None else findings.correlated.pairs,
        answers: suspicious_table(findings),
        questions: None if needed is None else needed.by_need,
    }
    contents: dict[Path, Any] = {
        path: table.to_pylist() if path.suffix.lower() == ".json" else table
        for path, table in tables.items()
        if path is not None and table is not None
    }
    if report is not None:
        contents[report] = lambda path: write_findings(est, findings, path, command=command_line())
    # All that takes time comes before the files: an interrupt then leaves none.
    as_json = format == "json"
    text = findings_document(est, findings) if as_json else as_options(str(findings))
    write_files(contents)
    print(text)
    if not as_json:
        for path in contents:
            print(f"Written: {path}")
