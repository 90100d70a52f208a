"""The estimates of a disk engine streamed to a Parquet file, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need, release_unused
from trueup.errors import TrueupError, quoted
from trueup.io.frames_out import make_frame, repeating
from trueup.io.output_set import output_set
from trueup.io.table import Ids
from trueup.pipeline.solution import COLUMNS, UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path


def write_questions(engine: Any, path: Path) -> None:
    """Write the columns of the questions of a disk engine to a Parquet file, all or nothing."""
    pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
    stored = engine.problem
    release_unused()
    with output_set([path]) as names:
        writer = None
        try:
            for i in range(stored.n_blocks):
                kept = engine.part(i, tuple(COLUMNS.values()))
                columns: dict[str, Any] = {"question": Ids(stored.block_ids(i))}
                columns |= {column: kept[name] for column, name in COLUMNS.items()}
                columns["n_answers"] = stored.block(i, answers=False).counts
                table = make_frame("pyarrow", columns, null_columns=UNKNOWN, names=stored.names)
                if writer is None:
                    coded = repeating(table.schema)
                    writer = parquet.ParquetWriter(names[path], table.schema, use_dictionary=coded)
                writer.write_table(table)
        except OSError as error:
            raise TrueupError(
                f"{quoted(str(path))} cannot be written ({error.strerror or error}).",
                argument="out",
            ) from error
        except pyarrow.ArrowException as error:
            raise TrueupError(
                f"{quoted(str(path))} cannot be written ({error}).", argument="out"
            ) from error
        finally:
            if writer is not None:
                writer.close()
