"""trueup compare: the first steps ranked by how well they predict workers they have not seen."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.engine_options import Where
from trueup.cli.integers import Whole
from trueup.cli.read_options import LONG, Reading, inputs


def compare(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    methods: Annotated[
        list[str] | None, Parameter(name=["--method"], negative=(), consume_multiple=False)
    ] = None,
    shrink: str = "adaptive",
    truth: str | None = None,
    seed: Whole = 0,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    reading: Reading | None = None,
    where: Where | None = None,
) -> None:
    """Rank the first steps, with and without the second, by how well they predict workers they have not seen.

    Example: trueup compare answers.csv --truth truth.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    methods
        A first step to compare; may be given several times. By default those that auto chooses among.
    shrink
        The second step.
    truth
        File with the columns question and truth: errors against it are shown, too.
    seed
        Of the random folds of the workers, and of the sample of very many questions.
    out
        Where the table goes: .csv, .parquet or .json.
    format
        What is printed: text for people, json for machines.
    """
    import json

    from trueup.cli.tables import write_files
    from trueup.io.formats import TABLES
    from trueup.io.outputs import check_outputs

    reading, where = reading or Reading(), where or Where()
    request = reading.question_data(gold=truth)
    check_outputs({"--out": out}, TABLES, inputs=inputs(file, request))
    wide = reading.wide not in (None, LONG)
    place = where.place(file, {"--wide": wide, "--sql": reading.sql})
    run = {"memory": _in_memory, "disk": _on_disk, "spark": _on_spark}[place]
    table = run(file, methods, truth, reading, where, shrink=shrink, seed=seed, progress=True)
    table = _without_nan(table)
    if out is not None:
        write_files({out: table.to_pylist() if out.suffix.lower() == ".json" else table})
    if format == "json":
        print(json.dumps(table.to_pylist(), allow_nan=False, indent=1))
        return
    print("\n".join(_board(table.to_pylist())))
    if out is not None:
        print(f"Written: {out}")


def _in_memory(
    file: str,
    methods: list[str] | None,
    truth: str | None,
    reading: Reading,
    where: Where,  # noqa: ARG001  as for the others
    **options: Any,
) -> Any:
    from dataclasses import replace

    from trueup._compare import compare

    answers = reading.answers(file)
    answers = replace(answers, origin=replace(answers.origin, kind="pyarrow"))
    known = reading.truth(truth, answers, file)
    return compare(answers, methods, known, **options)


def _on_disk(
    file: str,
    methods: list[str] | None,
    truth: str | None,
    reading: Reading,
    where: Where,
    **options: Any,
) -> Any:
    import sys
    import warnings

    from trueup import disk
    from trueup.errors import TrueupWarning

    with warnings.catch_warnings(record=True) as said:
        # Rows that were left out must be seen, whatever else is kept quiet.
        warnings.simplefilter("always", TrueupWarning)
        table = disk.compare(
            file,
            methods,
            truth,
            work_dir=where.work_dir,
            keep=where.keep,
            memory_limit=where.memory_limit,
            strict=where.strict,
            **_reads(reading),
            **options,
        )
    for each in said:
        if issubclass(each.category, TrueupWarning):
            print(f"trueup: {each.message} (--strict stops)", file=sys.stderr)
    return table


def _on_spark(
    file: str,
    methods: list[str] | None,
    truth: str | None,
    reading: Reading,
    where: Where,
    **options: Any,
) -> Any:
    from trueup.core.libraries import need

    need("pyspark", "spark")
    from trueup import spark
    from trueup.cli.on_spark import answers_frame, session_at

    frame = answers_frame(session_at(where.master), file, reading, reading.question_data())
    return spark.compare(frame, methods, truth, **_reads(reading), **options)


def _reads(reading: Reading) -> dict[str, Any]:
    """Return what is read from where, and what is made of it."""
    names = (
        "question", "worker", "answer", "duplicates", "transform", "bounds", "worker_variance", "answer_variance",
        "sep", "decimal", "encoding",
    )  # fmt: skip
    return {name: getattr(reading, name) for name in names}


def _without_nan(table: Any) -> Any:
    """Say of what is not known that it is missing: the standard error of a single truth."""
    rows = [
        {name: None if value != value else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return type(table).from_pylist(rows, schema=table.schema)


def _board(rows: list[dict[str, Any]]) -> list[str]:
    from trueup.cli.summary import columns

    with_truth = "risk" in rows[0]
    heads = ["first step", "second step", "held-out error", "behind the best"]
    heads += ["error against truth"] if with_truth else []
    lines = [(*heads, "seconds")]
    for row in rows:
        behind = "-" if row["behind"] == 0 else f"{row['behind']:.4g} ± {row['behind_se']:.2g}"
        cells = [row["method"], row["shrink"], f"{row['held_out']:.6g}", behind]
        if with_truth:
            error = "" if row["risk_se"] is None else f" ± {row['risk_se']:.2g}"
            cells.append(f"{row['risk']:.4g}{error}")
        lines.append((*cells, f"{row['seconds']:.2f}"))
    best = rows[0]
    level = [row for row in rows[1:] if row["behind"] <= 2 * row["behind_se"]]
    verdict = f"{best['method']} with {best['shrink']} predicts held-out workers best"
    if level:
        verdict += f"; {len(level)} of the others {'is' if len(level) == 1 else 'are'} within two standard errors of it"
    note = (
        "Errors are mean squares (± standard error) and contain the noise of the held-out answers: differences count, "
        "not ratios."
    )
    return [verdict + ".", note, "", *columns(lines)]
