"""What estimates whose answers are not in memory have in common: truths from a file, and what is printed."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.summary import columns, short
from trueup.cli.wording import as_options
from trueup.engines.truths import UntypedTruths
from trueup.errors import TrueupError, counted, quoted

if TYPE_CHECKING:
    from trueup.cli.reading import Reading
    from trueup.engines.outcome import Outcome
    from trueup.io.attribute_columns import Columns

#: Rows that could not be used and are shown.
SHOWN = 5


def read_beside(path: str, argument: str, reading: Reading) -> Columns:
    """Read a file that lies beside the answers: the questions, and what it says of them."""
    from trueup.io.attribute_columns import fitting, from_file, ways_to_read

    way = ways_to_read(Path(path), reading.beside["how"])[0]
    return from_file(path, fitting(argument, reading.question), way)


def read_gold(path: str, reading: Reading) -> dict[Any, float]:
    """Read known truths from a file with the columns question and truth."""
    from trueup.io.native import to_list

    found = read_beside(path, "gold", reading)
    given: list[Any] = to_list(next(iter(found.others.values())))
    try:
        truths = [math.nan if each in (None, "") else float(each) for each in given]
    except (TypeError, ValueError):
        raise TrueupError(f'--gold: a truth in "{path}" is not a number.') from None
    known: dict[Any, float] = UntypedTruths() if found.text else {}
    for name, truth in zip(to_list(found.question), truths, strict=True):
        if not math.isnan(truth) and known.setdefault(name, truth) != truth:
            raise TrueupError(
                f"--gold: question {quoted(name)} has two truths, {known[name]:g} and {truth:g}. Give one per question."
            )
    if not known:
        raise TrueupError("--gold: found no truth, all are empty. Fill in some, or leave it out.")
    return known


def tell(
    est: Outcome,
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

    if workers is not None:
        as_rows = workers.suffix.lower() == ".json"
        write_files({workers: {"workers": rows.to_pylist()} if as_rows else rows})
    if as_json:
        print(document(est, rows, out))
        return
    print(summary(est, least_certain, rows))
    for path in (out, workers):
        if path is not None:
            print(f"Written: {path}")


def summary(est: Outcome, least: dict[str, list[Any]], workers: Any) -> str:
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
    flags = Counter(flag for flag in workers.column("flag").to_pylist() if flag)
    lines += ["", "Workers"]
    lines += [f"  {counted(count, 'worker')}: {flag}" for flag, count in flags.most_common()]
    if not flags:
        lines.append(f"  Nothing stands out about any of {counted(est.n_workers, 'worker')}.")
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
