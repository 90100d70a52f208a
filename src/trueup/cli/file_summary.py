"""What is printed of estimates whose answers are not in memory."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trueup.cli.summary import columns, short, to_look_at, with_verdicts
from trueup.cli.wording import as_options
from trueup.errors import counted

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.findings.workers import WorkerTable
    from trueup.result.outcome import Outcome

#: Rows that could not be used and are shown.
SHOWN = 5


def tell(
    est: Outcome,
    verdicts: WorkerTable,
    least_certain: dict[str, list[Any]],
    rows: Any,
    out: Path,
    workers: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the table of the workers where it is asked for, and print what came out.

    Parameters
    ----------
    est
        What is told of the estimate.
    verdicts
        What is to be thought of each worker.
    least_certain
        Columns of the questions to show.
    rows
        The workers, a pyarrow table.
    out
        Where the estimates are.
    workers
        Where the workers go.
    as_json
        For machines rather than for people.
    """
    from trueup.cli.tables import write_files

    rows = with_verdicts(rows, verdicts)
    if workers is not None:
        as_rows = workers.suffix.lower() == ".json"
        write_files({workers: {"workers": rows.to_pylist()} if as_rows else rows})
    if as_json:
        print(document(est, rows, out))
        return
    print(summary(est, verdicts, least_certain))
    for path in (out, workers):
        if path is not None:
            print(f"Written: {path}")


def summary(est: Outcome, verdicts: WorkerTable, least: dict[str, list[Any]]) -> str:
    """Say what was read, what was chosen and why, what to expect, and what to look at."""
    about = est.diagnosis
    people, asked = counted(est.n_workers, "worker"), counted(est.n_questions, "question")
    lines = [f"{counted(est.n_answers, 'answer')} of {people} to {asked}"]
    if est.n_missing:
        lines.append(f"{est.n_missing:,} of {counted(est.n_rows, 'row')} dropped: no answer")
    if est.n_duplicates:
        lines.append(f"{counted(est.n_duplicates, 'repeated answer')} merged")
    if est.n_malformed:
        lines.append(
            f"{est.n_malformed:,} of {counted(est.n_rows, 'row')} could not be used and were left out (--strict stops):"
        )
        lines += [f"  {example}" for example in est.malformed[:SHOWN]]
    lines += ["", f"First step: {about.method}" + (f" ({about.why})" if about.why else "")]
    lines += [about.voices[:1].upper() + about.voices[1:]] if about.voices else []
    lines += [about.second_step[:1].upper() + about.second_step[1:]] if about.second_step else []
    lines += [about.gold] if about.gold else []
    lines += [f"Warning: {as_options(text)}" for text in about.warnings]
    lines += [f"Note: {as_options(text)}" for text in about.assumptions]
    lines += ["", f"The {len(least['question'])} least certain questions"]
    rows = [("question", "estimate", f"{100 * est.level:g}% interval", "answers")]
    for name, value, low, high, count in zip(
        *(least[each] for each in ("question", "estimate", "lower", "upper", "n_answers")),
        strict=True,
    ):
        interval = "unknown" if low is None or low != low else f"{low:.4g} to {high:.4g}"
        rows.append((short(name), f"{value:.6g}", interval, f"{count:,}"))
    lines += columns(rows)
    lines += ["", *to_look_at(verdicts, heard_as_one=bool(about.voices))]
    return "\n".join(lines)


def document(est: Outcome, workers: Any, path: Path) -> str:
    """Return it as JSON; the estimates are in their file."""
    content = {
        "read": {
            "rows": est.n_rows,
            "dropped": est.n_missing,
            "merged": est.n_duplicates,
            "malformed": est.n_malformed,
            "malformed_examples": list(est.malformed),
            "answers": est.n_answers,
            "workers": est.n_workers,
            "questions": est.n_questions,
        },
        "diagnosis": asdict(est.diagnosis),
        "level": est.level,
        "questions_file": str(path),
        "workers": workers.to_pylist(),
    }
    return json.dumps(content, allow_nan=False, default=str, indent=1)
