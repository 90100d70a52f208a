"""trueup update: new answers folded into what was saved."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from trueup.cli.estimate import command_line, table
from trueup.cli.read_options import Form, Reading, inputs


def update(
    state: Path,
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    duplicates: Literal["error", "mean", "first", "replace"] = "error",
    groups: str | None = None,
    covariates: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=False)] = None,
    gold: str | None = None,
    worker_variance: str | None = None,
    answer_variance: str | None = None,
    state_out: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    workers: Path | None = None,
    report: Path | None = None,
    format: Literal["text", "json"] = "text",  # noqa: A002  the name of the option
    form: Form | None = None,
) -> None:
    """Fold new answers into the state that trueup estimate --save wrote.

    Example: trueup update state.trueup new.csv -o truths.csv

    Parameters
    ----------
    state
        File that trueup estimate --save wrote. It is replaced by the new state, or stays as it is if anything fails.
    file
        New answers, in any form that trueup estimate takes; method and all else are those of the state.
    duplicates
        What to do when a worker answers a question again: replace puts the new answer in the place of the one before,
        first keeps that one, mean makes one of several new answers.
    groups
        Groups of the new questions, if the state has some: as for trueup estimate.
    covariates
        Numbers known of the new questions, if the state has some: as for trueup estimate.
    gold
        File with the columns question and truth: more known truths.
    worker_variance
        Column with the known variance of each worker.
    answer_variance
        Column with the known variance of each answer.
    state_out
        Where the new state goes instead, a .trueup file.
    out
        Where the estimates go: .csv, .parquet or .json. In CSV, ids that look like a formula get a leading apostrophe.
    workers
        Where the verdict on each worker goes: .csv, .parquet or .json.
    report
        Where a report for people goes, one .html file that works offline.
    format
        What is printed: text for people, json for machines.
    """
    from functools import partial

    from trueup._update import Opened, go_on, merge_question_data
    from trueup.answers.merge import merge
    from trueup.cli.summary import document, summary, verdicts_on
    from trueup.cli.tables import write_files
    from trueup.core.progress import Progress
    from trueup.io.formats import PAGES, STATES, TABLES
    from trueup.io.outputs import check_outputs

    form = form or Form()
    request = Reading(**asdict(form)).question_data(groups, covariates, gold)
    taken = inputs(file, request)
    target = state if state_out is None else state_out
    check_outputs({"STATE" if state_out is None else "--state-out": target}, STATES, inputs=taken)
    check_outputs({"--out": out, "--workers": workers}, TABLES, inputs=[*taken, state])
    check_outputs({"--report": report}, PAGES, inputs=[*taken, state])
    opened = Opened.of(state)
    scale: Any = opened.saved.answers.scale
    reading = Reading(
        **asdict(form),
        duplicates="error" if duplicates == "replace" else duplicates,
        transform=scale.transform,
        bounds=scale.bounds,
        worker_variance=worker_variance,
        answer_variance=answer_variance,
    )
    with Progress("update", 3, shown=True) as bar:
        new = reading.answers(file)
        merged = merge(opened.saved.answers, new, duplicates)
        question_data = merge_question_data(opened.saved, merged, new, request, file)
        bar.step("answers read")
        est = go_on(opened.saved, merged, question_data, bar)
    verdicts = verdicts_on(est)
    contents: dict[Path, Any] = {
        path: table(est, part, path, verdicts)
        for path, part in ((out, "questions"), (workers, "workers"))
        if path is not None
    }
    if report is not None:
        contents[report] = partial(est.report, command=command_line())
    contents[target] = est.save
    added = {
        "answers": merged.added,
        "repeated": merged.repeated,
        "questions": merged.questions,
        "workers": merged.workers,
    }
    # All that takes time comes before the files: an interrupt then leaves none.
    if format == "json":
        text = document(est, verdicts, added=added)
    else:
        account = _account(added, duplicates, est.diagnosis.iterations)
        text = "\n".join([*account, summary(est, verdicts)])
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
