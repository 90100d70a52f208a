"""trueup estimate --engine disk: files larger than memory."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli.elsewhere import Account, document, summary
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from trueup.cli.reading import Reading
    from trueup.cli.where import Where


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
    account = Account(**{each.name: getattr(est, each.name) for each in fields(Account)})
    print(document(account) if as_json else summary(account))
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
