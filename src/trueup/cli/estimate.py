"""trueup estimate: answers in a file, truths in another."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

ENDINGS = (".csv", ".parquet", ".json")


def estimate(
    file: Path,
    /,
    *,
    method: str = "auto",
    shrink: str = "adaptive",
    variance: str | None = None,
    question: str = "question",
    worker: str = "worker",
    answer: str = "answer",
    duplicates: Literal["error", "mean", "first"] = "error",
    transform: Literal["log", "log1p", "logit"] | None = None,
    bounds: Annotated[tuple[float, float] | None, Parameter(negative=())] = None,
    worker_variance: str | None = None,
    answer_variance: str | None = None,
    level: float = 0.95,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: Path | None = None,
) -> None:
    """Estimate the true value of every question in a file of answers.

    Example: trueup estimate answers.csv -o truths.csv --workers workers.csv

    Parameters
    ----------
    file
        CSV or Parquet, one answer per row.
    method
        First step: how the answers to a question become one number. auto lets held-out workers decide.
    shrink
        Second step: how these move toward each other.
    variance
        How sure the first step is of each question: a rule, or a number.
    question
        Column of the questions.
    worker
        Column of the workers.
    answer
        Column of the answers.
    duplicates
        What to do when a worker answered a question more than once.
    transform
        Scale on which answers are combined.
    bounds
        LOW and HIGH: estimates and intervals stay inside.
    worker_variance
        Column with the known variance of each worker.
    answer_variance
        Column with the known variance of each answer.
    level
        Level of the intervals.
    out
        Where the estimates go: .csv, .parquet or .json. In CSV, ids that look like a formula get a leading apostrophe.
    workers
        Where the verdict on each worker goes: .csv, .parquet or .json.
    """
    from trueup.cli.tables import check_outputs, write_files
    from trueup.estimate import estimate

    check_outputs({"--out": out, "--workers": workers}, ENDINGS, inputs=[file])
    est = estimate(
        file,
        method,
        shrink,
        _number_or_name(variance),
        transform=transform,
        bounds=bounds,
        worker_variance=worker_variance,
        answer_variance=answer_variance,
        duplicates=duplicates,
        level=level,
        question=question,
        worker=worker,
        answer=answer,
    )
    contents = {
        path: _content(est, part, path)
        for path, part in ((out, "questions"), (workers, "workers"))
        if path is not None
    }
    write_files(contents)
    print(est)
    for path in contents:
        print(f"Written: {path}")


def _number_or_name(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _content(est: Any, part: str, path: Path) -> Any:
    """Return a table for a file; for JSON, rows together with how they came about."""
    origin = replace(est.answers.origin, kind="pyarrow")
    table = getattr(replace(est, answers=replace(est.answers, origin=origin)), part)
    if path.suffix.lower() != ".json":
        return table
    about = est.diagnosis
    return {
        "method": about.method,
        "shrink": about.shrink,
        "level": est.level,
        "warnings": about.warnings,
        "assumptions": about.assumptions,
        part: table.to_pylist(),
    }
