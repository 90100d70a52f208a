"""trueup rank: systems compared by a panel of judges, and a gate for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.options import RankOptions

if TYPE_CHECKING:
    from trueup.ranking.gate import Gate
    from trueup.ranking.ranking import Ranking


def rank(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    by: str,
    item: str | None = None,
    run: str | None = None,
    gold: str | None = None,
    cluster: str | None = None,
    judges: Literal["sample", "fixed"] = "sample",
    lower_is_better: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    baseline: str | None = None,
    fail_if: Literal["worse", "not-better"] | None = None,
    margin: float | None = None,
    cost_item: float | None = None,
    cost_answer: float | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    differences: Path | None = None,
    judges_out: Path | None = None,
    report: Path | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    options: RankOptions | None = None,
) -> None:
    """Compare systems by the scores that a panel of judges gave them on the same items.

    With --baseline and --fail-if the command is a gate: it ends with exit code 3 if the gate says no, and with 1 if it
    cannot be decided for want of data. What was decided is the last line.

    Example: trueup rank scores.csv --by model --item sample_id --baseline old --fail-if worse

    Parameters
    ----------
    file
        Scores, one per row; files as for trueup estimate.
    by
        Column of the systems: models, policies, variants.
    item
        Column of the items that the systems were tried on, or several with commas between them; by default that of the
        questions.
    run
        Column that numbers the runs of one judge, which are averaged.
    gold
        Known values of some systems on some items, such as human labels: a column, or a file with the columns of items
        and systems and a column truth.
    cluster
        Column of what items belong to, such as documents: items of one cluster vary together.
    judges
        What intervals are about: judges like these (sample), or these very judges (fixed).
    lower_is_better
        Low scores are good.
    baseline
        System that the others are compared with.
    fail_if
        End with exit code 3 if some system is clearly worse than the baseline, or is not clearly better.
    margin
        How much worse, or better, counts for --fail-if.
    cost_item
        Price of an item, to find the cheapest way to sharper differences.
    cost_answer
        Price of a score, likewise.
    out
        Where the table of the systems goes: .csv, .parquet or .json.
    differences
        Where the differences of all pairs of systems go.
    judges_out
        Where the judges go, with how much each of them favours each system.
    report
        Where a report for people goes, one .html file that works offline.
    force
        Let the report replace a file that trueup did not write.
    format
        What is printed: text for people, json for machines.
    """
    from trueup._rank import rank_answers
    from trueup.cli.exit_codes import GateSaysNo
    from trueup.cli.run import command_line, inputs, read
    from trueup.cli.tables import write_files
    from trueup.cli.wording import as_options
    from trueup.core.progress import Progress
    from trueup.errors import TrueupError
    from trueup.io.formats import PAGES
    from trueup.io.frames_out import make_frame
    from trueup.io.outputs import check_outputs, tables_at
    from trueup.io.question_data import QuestionDataRequest
    from trueup.ranking.gate import UNDECIDED, check_gate
    from trueup.ranking.layout import Layout
    from trueup.ranking.ranking import UNKNOWN
    from trueup.report.ranking_page import write_ranking
    from trueup.request import Request

    _check_gate_options(baseline, fail_if, margin)
    if fail_if is not None:
        check_gate(margin or 0.0, fail_if)
    given: dict[str, Any] = {} if options is None else options.given
    layout = Layout.of(None, by, item, run, given.get("question", "question"))
    request = Request.of(
        "rank", file, shrink="none", transform="none", **{**given, "question": layout.columns}
    )
    tables = {"--out": out, "--differences": differences, "--judges-out": judges_out}
    others = [QuestionDataRequest(gold=gold), QuestionDataRequest(groups=cluster)]
    taken = inputs(file, *others)
    check_outputs({**tables_at(tables), "--report": (report, PAGES)}, taken, force=force)
    with Progress("rank", 3, shown=True) as bar:
        with layout.advice():
            data = read(file, request)
        bar.step("scores read")
        ranking = rank_answers(
            data, file, layout, request,
            gold=gold, cluster=cluster, fixed=judges == "fixed", sign=-1 if lower_is_better else 1, bar=bar,
        )  # fmt: skip
    gate = None
    if baseline is not None:
        gate = ranking.gate(baseline, margin or 0.0, fail_if or "worse")
    prices = {"cost_item": cost_item, "cost_answer": cost_answer}
    ranking.improvements(**prices)  # checks them
    columns = {
        out: ranking.system_columns,
        differences: ranking.difference_columns,
        judges_out: ranking.judge_columns,
    }
    contents: dict[Path, Any] = {}
    for path, values in columns.items():
        if path is not None:
            table = make_frame("pyarrow", values, null_columns=UNKNOWN, names=ranking.names)
            contents[path] = table.to_pylist() if path.suffix.lower() == ".json" else table
    if report is not None:
        shown = gate if fail_if else None
        contents[report] = lambda path: write_ranking(
            ranking,
            path,
            command=command_line(),
            gate=shown,
            cost_item=cost_item,
            cost_answer=cost_answer,
        )
    if format == "json":
        text = _document(ranking, gate if fail_if else None, prices)
    else:
        text = "\n".join(map(as_options, _lines(ranking, gate, prices)))
    write_files(contents)
    print(text)
    if format == "text":
        for path in contents:
            print(f"Written: {path}")
        if fail_if is not None:
            print(gate)
    if fail_if is None or gate is None or gate.passed:
        return
    if gate.decision == UNDECIDED:
        raise TrueupError(f"{gate} Give more items that both have, or leave the system out.")
    raise GateSaysNo(str(gate))


def _check_gate_options(baseline: str | None, fail_if: str | None, margin: float | None) -> None:
    """Check that the options of the gate come together."""
    from trueup.errors import TrueupError

    if fail_if is not None and baseline is None:
        raise TrueupError(
            f"--fail-if: found {fail_if}, but no system to compare with. Add --baseline."
        )
    if margin is not None and fail_if is None:
        raise TrueupError(
            f"--margin: found {margin:g}, but no gate. Add --fail-if worse or not-better."
        )


def _lines(ranking: "Ranking", gate: "Gate | None", prices: dict[str, Any]) -> list[str]:
    from trueup.ranking.text import described
    from trueup.result.text import interval, short, text_table

    lines = described(ranking, **prices)
    if gate is None:
        return lines
    rows: list[tuple[str, ...]] = [
        (f"minus {short(gate.baseline)}", "difference", f"{100 * ranking.level:g}% interval")
    ]
    for each in gate.candidates:
        value, low, high = (each[name] for name in ("difference", "lower", "upper"))
        rows.append(
            (
                short(each["system"]),
                "unknown" if value is None else f"{value:.4g}",
                "unknown" if low is None else interval(float(str(low)), float(str(high))),
            )
        )
    return [*lines, "", *text_table(rows)]


def _document(ranking: "Ranking", gate: "Gate | None", prices: dict[str, Any]) -> str:
    """Return everything as JSON."""
    import json
    from dataclasses import asdict

    from trueup.io.frames_out import make_frame
    from trueup.ranking.ranking import UNKNOWN

    def rows(columns: dict[str, Any]) -> Any:
        return make_frame("pyarrow", columns, null_columns=UNKNOWN, names=ranking.names).to_pylist()

    def plain(values: dict[str, Any]) -> dict[str, Any]:
        return {name: None if value != value else value for name, value in values.items()}

    scores = ranking.standings.scores
    content = {
        "items": scores.n_items,
        "effective_judges": scores.effective_judges,
        "method": ranking.weights.method,
        "pooled": ranking.weights.pooled,
        "level": ranking.level,
        "judges_are": "fixed" if ranking.standings.fixed else "sample",
        "higher_is_better": ranking.standings.sign > 0,
        "text": str(ranking).splitlines(),
        "systems": rows(ranking.system_columns),
        "differences": rows(ranking.difference_columns),
        "judges": rows(ranking.judge_columns),
        "components": plain(ranking.components.as_dict()),
        "plan": [plain(asdict(way)) for way in ranking.improvements(**prices)],
        "gate": None if gate is None else asdict(gate),
    }
    return json.dumps(content, allow_nan=False, default=str, indent=1)
