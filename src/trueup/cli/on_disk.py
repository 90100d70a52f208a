"""trueup estimate --engine disk: files larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.cli.file_summary import tell
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.cli.engine_options import Where
    from trueup.cli.read_options import Reading


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

    if out is None or out.suffix.lower() != ".parquet":
        raise TrueupError(
            "--out: with --engine disk the estimates go to a .parquet file. Name one."
        )
    if reading.wide not in (None, "long") or reading.sql is not None:
        raise TrueupError(
            "--engine disk: reads files with one answer per row, not --wide or --sql."
        )
    est = disk.estimate(
        file,
        out,
        work_dir=where.work_dir,
        keep=where.keep,
        memory_limit=where.memory_limit,
        strict=where.strict,
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
    tell(est, est.verdicts, est.least_certain, est.workers, out, workers, as_json=as_json)
