"""trueup update: new answers folded into what was saved."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.options import UpdateOptions


def update(
    state: Path,
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    method: str | None = None,
    duplicates: Literal["error", "mean", "mean-all", "first", "replace"] = "error",
    state_out: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: Path | None = None,
    report: Path | None = None,
    title: str | None = None,
    unit: str | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    options: UpdateOptions | None = None,
) -> None:
    """Fold new answers into the state that trueup estimate --save wrote.

    Example: trueup update state.trueup new.csv -o truths.csv

    Parameters
    ----------
    state
        File that trueup estimate --save wrote. It is replaced by the new state, or stays as it is if anything fails.
    file
        New answers, in any form that trueup estimate takes; method and all else are those of the state.
    method
        FILE.py:CLASS again, of a state that was made with an algorithm of your own: a state holds no code.
    duplicates
        What to do when a worker answers a question again: replace puts the new answer in the place of the one before,
        first keeps that one, mean makes one of several new answers.
    state_out
        Where the new state goes instead, a .trueup file; it keeps the ids of the workers, with --anonymous too.
    out
        Where the estimates go: .csv, .parquet or .json. In CSV, ids that look like a formula get a leading apostrophe.
    workers
        Where the verdict on each worker goes: .csv, .parquet or .json.
    report
        Where a report for people goes, one .html file that works offline.
    title
        Title of the report.
    unit
        Unit of the answers, shown in the report: cm, EUR, points.
    force
        Let report and state replace a file that trueup did not write.
    format
        What is printed: text for people, json for machines.
    """
    from trueup._update import OpenedState, updated
    from trueup.cli.own_method import load_method
    from trueup.cli.run import check_report_texts, command_line, inputs, shown_warnings
    from trueup.cli.summary import document, summary
    from trueup.cli.tables import result_table, write_files
    from trueup.io.formats import PAGES, STATES
    from trueup.io.outputs import check_outputs, tables_at
    from trueup.request import Request

    given: dict[str, Any] = {} if options is None else options.given
    taken = inputs(file, Request.of("update", file, **given).question_data)
    target = state if state_out is None else state_out
    outputs = {
        "STATE" if state_out is None else "--state-out": (target, STATES),
        **tables_at({"--out": out, "--workers": workers}),
        "--report": (report, PAGES),
    }
    read_only = [] if state_out is None else [state]
    check_outputs(outputs, [*taken, *read_only], force=force, continued=state)
    check_report_texts(report, title, unit)
    opened = OpenedState.of(state, None if method is None else load_method(method))
    with shown_warnings():
        saved, merged, est = updated(opened.saved, file, duplicates, given, progress=True)
    contents: dict[Path, Any] = {
        path: result_table(est, part, path)
        for path, part in ((out, "questions"), (workers, "workers"))
        if path is not None
    }
    if report is not None:
        contents[report] = lambda path: est.report(
            path, command=command_line(), title=title, unit=unit
        )
    contents[target] = saved.save
    added = {
        "answers": merged.added,
        "repeated": merged.repeated,
        "questions": merged.questions,
        "workers": merged.workers,
    }
    # All that takes time comes before the files: an interrupt then leaves none.
    if format == "json":
        text = document(est, added=added)
    else:
        account = _account(added, duplicates, est.diagnosis.iterations)
        text = "\n".join([*account, summary(est)])
    if state_out is None:
        opened.check_unchanged()
    write_files(contents)
    print(text)
    if format == "json":
        return
    for path in contents:
        print(f"Written: {path}")


def _account(added: dict[str, int], duplicates: str, iterations: int) -> list[str]:
    """Say what was new, and how much work it was."""
    from trueup.errors import counted

    parts = [counted(added[what], what.removesuffix("s")) for what in ("questions", "workers")]
    lines = [f"Added: {counted(added['answers'], 'answer')}, {' and '.join(parts)}"]
    if added["repeated"]:
        what = "replaced by new ones" if duplicates == "replace" else "kept, the new ones dropped"
        lines.append(f"{counted(added['repeated'], 'earlier answer')} {what}")
    if iterations:
        lines.append(f"The first step took {counted(iterations, 'iteration')}")
    return lines
