"""trueup diagnose: what stands out about workers and questions, and whether a second step helps."""

from pathlib import Path
from typing import Annotated, Any

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
    """
    from trueup._diagnose import diagnose_all
    from trueup.cli.own_method import load_method
    from trueup.cli.run import inputs, read
    from trueup.cli.tables import suspicious_table, write_files
    from trueup.cli.wording import as_options
    from trueup.errors import TrueupError
    from trueup.io.formats import TABLES
    from trueup.io.outputs import check_outputs
    from trueup.request import Request

    if target_se is not None and not 0 < target_se < float("inf"):
        raise TrueupError(f"--target-se: found {target_se:g}, must be a number above 0.")
    if resamples < 0 or resamples == 1:
        raise TrueupError(
            f"--resamples: found {resamples}, must be 2 or more, or 0 to leave them out."
        )
    outputs = {"--workers": workers, "--pairs": pairs, "--answers": answers}
    check_outputs(outputs, TABLES, inputs=inputs(file))
    given: dict[str, Any] = {} if options is None else options.given
    algorithm = load_method(method)
    request = Request.of("diagnose", file, method=algorithm, seed=seed, **given)
    findings = diagnose_all(
        read(file, request),
        algorithm,
        target_se=target_se,
        panels=resamples,
        seed=seed,
        transform=request.plan.transform,
        bounds=request.plan.bounds,
        progress=True,
    )
    tables = {workers: findings.workers.workers}
    tables[pairs] = None if findings.correlated is None else findings.correlated.pairs
    tables[answers] = suspicious_table(findings)
    contents = {
        path: table for path, table in tables.items() if path is not None and table is not None
    }
    write_files(
        {
            path: table.to_pylist() if path.suffix.lower() == ".json" else table
            for path, table in contents.items()
        }
    )
    print(as_options(str(findings)))
    for path in contents:
        print(f"Written: {path}")
