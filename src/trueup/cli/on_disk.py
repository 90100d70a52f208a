"""trueup estimate --engine disk: files larger than memory."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.summary import columns, short
from trueup.cli.wording import as_options
from trueup.errors import TrueupError, counted

if TYPE_CHECKING:
    from trueup.cli.reading import Reading
    from trueup.cli.where import Where
    from trueup.disk import DiskEstimate

#: Rows that could not be used and are shown.
SHOWN = 5


def estimate_on_disk(
    file: str,
    out: Path | None,
    workers: Path | None,
    reading: Reading,
    where: Where,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate from files of any size, and print what came out."""
    from trueup import disk
    from trueup.cli.tables import write_files

    if out is None or out.suffix.lower() != ".parquet":
        raise TrueupError(
            "--out: with --engine disk the estimates go to a .parquet file. Name one."
        )
    if reading.wide not in (None, "long") or reading.sql is not None:
        raise TrueupError(
            "--engine disk: reads files with one answer per row, not --wide or --sql."
        )
    gold = options.pop("gold")
    est = disk.estimate(
        file,
        out,
        work_dir=where.work_dir,
        keep=where.keep,
        memory_limit=where.memory_limit,
        strict=where.strict,
        gold=None if gold is None else read_gold(gold, reading),
        progress=True,
        question=reading.question,
        worker=reading.worker,
        answer=reading.answer,
        duplicates=reading.duplicates,
        transform=reading.transform,
        bounds=reading.bounds,
        worker_variance=reading.worker_variance,
        answer_variance=reading.answer_variance,
        sep=reading.sep,
        decimal=reading.decimal,
        encoding=reading.encoding,
        **options,
    )
    if workers is not None:
        rows: Any = est.workers
        if workers.suffix.lower() == ".json":
            rows = {"workers": est.workers.to_pylist()}
        write_files({workers: rows})
    print(document(est) if as_json else summary(est))
    if not as_json:
        for path in (out, workers):
            if path is not None:
                print(f"Written: {path}")


def read_gold(path: str, reading: Reading) -> dict[Any, float]:
    """Read known truths from a file with the columns question and truth."""
    from trueup.io.attribute_columns import fitting, from_file, ways_to_read
    from trueup.io.native import to_list

    way = ways_to_read(Path(path), reading.beside["how"])[0]
    found = from_file(path, fitting("gold", reading.question), way)
    truths = to_list(next(iter(found.others.values())))
    try:
        pairs = zip(to_list(found.question), truths, strict=True)
        return {name: float(each) for name, each in pairs if each not in (None, "")}  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TrueupError(f'--gold: a truth in "{path}" is not a number.') from None


def summary(est: DiskEstimate) -> str:
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
    lines += [about.second_step[:1].upper() + about.second_step[1:]] if about.second_step else []
    lines += [about.gold] if about.gold else []
    lines += [f"Warning: {as_options(text)}" for text in about.warnings]
    lines += [f"Note: {as_options(text)}" for text in about.assumptions]
    lines += ["", f"The {len(est.least_certain['question'])} least certain questions"]
    rows = [("question", "estimate", f"{100 * est.level:g}% interval", "answers")]
    least = est.least_certain
    for name, value, low, high, count in zip(
        *(least[each] for each in ("question", "estimate", "lower", "upper", "n_answers")),
        strict=True,
    ):
        interval = "unknown" if low != low else f"{low:.4g} to {high:.4g}"
        rows.append((short(name), f"{value:.6g}", interval, f"{count:,}"))
    lines += columns(rows)
    flags = Counter(flag for flag in est.worker_columns["flag"] if flag)
    lines += ["", "Workers"]
    lines += [f"  {counted(count, 'worker')}: {flag}" for flag, count in flags.most_common()]
    if not flags:
        lines.append(f"  Nothing stands out about any of {counted(est.n_workers, 'worker')}.")
    return "\n".join(lines)


def document(est: DiskEstimate) -> str:
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
        "questions_file": str(est.path),
        "workers": est.workers.to_pylist(),
    }
    return json.dumps(content, allow_nan=False, default=str, indent=1)
