"""trueup compare: the first steps ranked by how well they predict workers they have not seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.engine_options import EngineOptions
from trueup.cli.options import CompareOptions

if TYPE_CHECKING:
    from trueup.algorithms.registry import Method
    from trueup.request import Request


def compare(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    methods: Annotated[
        list[str] | None, Parameter(name=["--method"], negative=(), consume_multiple=False)
    ] = None,
    truth: str | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    options: CompareOptions | None = None,
    where: EngineOptions | None = None,
) -> None:
    """Rank the first steps, with and without the second, by how well they predict workers they have not seen.

    Example: trueup compare answers.csv --truth truth.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    methods
        A first step to compare; may be given several times. By default those that auto chooses among.
    truth
        File with the columns question and truth: errors against it are shown, too.
    out
        Where the table goes: .csv, .parquet or .json.
    format
        What is printed: text for people, json for machines.
    """
    import json

    from trueup._compare import truth_request
    from trueup.cli.own_method import is_own, load_method
    from trueup.cli.run import check_reading, inputs
    from trueup.cli.tables import write_files
    from trueup.core.keywords import flag_of
    from trueup.io.outputs import check_outputs, tables_at
    from trueup.request import Request

    where = where or EngineOptions()
    given: dict[str, Any] = {} if options is None else options.given
    request = Request.of("compare", file, **given)
    truths = truth_request(truth, request)
    check_outputs(tables_at({"--out": out}), inputs(file, truths))
    in_memory = {flag_of(name): True for name in request.read.only_in_memory}
    own = {
        "--method FILE.py:CLASS": any(map(is_own, methods or ())),
        "--anonymous": request.read.anonymous,
    }
    engine = where.place(file, {**in_memory, **own} if where.engine == "spark" else in_memory)
    check_reading(engine, request)
    loaded = None if methods is None else [load_method(method) for method in methods]
    run = {"memory": _in_memory, "disk": _on_disk, "spark": _on_spark}[engine]
    table = run(file, loaded, truth, request, where)
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
    methods: "list[Method] | None",
    truth: str | None,
    request: "Request",
    where: EngineOptions,  # noqa: ARG001  as for the others
) -> Any:
    from trueup._compare import compare, truth_request
    from trueup.cli.run import read, shown_warnings

    plan = request.plan
    answers = read(file, request)
    with shown_warnings():
        known = truth_request(truth, request).read(answers, file).gold
    limits: dict[str, Any] = {"max_iter": plan.max_iter, "tol": plan.tol, "seed": plan.seed}
    return compare(answers, methods, known, shrink=plan.shrink, progress=True, **limits)


def _on_disk(
    file: str,
    methods: "list[Method] | None",
    truth: str | None,
    request: "Request",
    where: EngineOptions,
) -> Any:
    from trueup import disk
    from trueup.cli.run import shown_warnings

    given = {name: value for name, value in request.given.items() if name != "wide"}
    with shown_warnings(" (--strict stops)"):
        return disk.compare(file, methods, truth, progress=True, **where.folder, **given)


def _on_spark(
    file: str,
    methods: "list[Method] | None",
    truth: str | None,
    request: "Request",
    where: EngineOptions,
) -> Any:
    from trueup.core.libraries import need

    need("pyspark", "spark")
    from trueup import spark
    from trueup.cli.on_spark import answers_frame, session_at
    from trueup.engines.spark.files import open_files
    from trueup.io.question_data import QuestionDataRequest

    given = {name: value for name, value in request.given.items() if name != "wide"}
    open_files(file)  # what cannot be read is said before a cluster is asked for
    session = session_at(where.master)
    frame = answers_frame(session, file, request.read, QuestionDataRequest())
    return spark.compare(frame, methods, truth, progress=True, **given)


def _without_nan(table: Any) -> Any:
    """Say of what is not known that it is missing: the standard error of a single truth."""
    rows = [
        {name: None if value != value else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return type(table).from_pylist(rows, schema=table.schema)


def _board(rows: list[dict[str, Any]]) -> list[str]:
    from trueup.result.text import text_table

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
    return [verdict + ".", note, "", *text_table(lines, "  ")]
