"""Excel workbooks."""

from __future__ import annotations

import importlib
import zipfile
from typing import TYPE_CHECKING, Any

from trueup.errors import AnswersError, MissingExtra
from trueup.io.readers.python_values import listed_source
from trueup.io.readers.source import label_of, one_line, unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.io.readers.delimited import Layout
    from trueup.io.readers.source import Source

#: Bytes that a workbook may unpack to: a full sheet of three columns has about 200 MB.
MOST_UNPACKED = 1 << 30
#: The last row of a sheet in any version of Excel.
LAST_ROW = 1_048_576


def open_excel(path: Path, _layout: Layout, name: str) -> Source:
    """Read the first sheet of a workbook; its first row that is not empty names the columns.

    Raises
    ------
    MissingExtra
        When openpyxl is not installed.
    """
    try:
        openpyxl = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtra(
            f"{label_of(name)}: a sheet of Excel needs the package openpyxl, which is not installed. Save "
            'the sheet as .csv (CSV UTF-8), or run: pip install "trueup[excel]"'
        ) from error
    try:
        with path.open("rb") as file:
            rows = _rows(openpyxl, file)
    except PermissionError as error:
        raise unreadable(error) from error
    except AnswersError:
        raise
    except Exception as error:  # openpyxl lets through whatever its parsers raise
        raise AnswersError(
            f"cannot be read as a workbook of Excel ({one_line(error)}). Save the sheet as "
            ".csv (CSV UTF-8), or check that it is an .xlsx file."
        ) from error
    if not rows:
        raise AnswersError("its first sheet is empty. Its first row must name the columns.")
    (first, header), *body = rows
    width = max(len(row) for _, row in rows)
    names = [_name(cell) for cell in header] + [""] * (width - len(header))
    cells = [list(row) + [None] * (width - len(row)) for _, row in body]
    columns = list(zip(*cells, strict=True)) if cells else [()] * width
    # A column without a name and without values is left over from formatting.
    kept = [i for i in range(width) if names[i] or any(cell is not None for cell in columns[i])]
    return listed_source(
        "Excel",
        {names[i]: list(columns[i]) for i in reversed(kept)},
        names=[names[i] for i in kept],
        place=lambda row: f"row {body[row][0]} of the sheet",
        counting=f"Rows are counted from 0, below row {first} of the sheet",
    )


def _rows(openpyxl: Any, file: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the rows of the first sheet that are not empty, with their numbers."""
    _check_size(file)
    # `data_only`: the result of a formula when the file was saved, not the formula.
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        if not book.worksheets:
            raise AnswersError("holds no sheet of cells. Put the answers on a sheet.")
        sheet = book.worksheets[0]
        # Some programs write a wrong size of the sheet: rows outside it would be lost.
        sheet.reset_dimensions()
        rows = []
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if number > LAST_ROW:
                raise AnswersError(
                    f"has rows below row {LAST_ROW:,}, the last of a sheet. Mend it."
                )
            if any(cell is not None for cell in row):
                rows.append((number, tuple(row)))
        return rows
    finally:
        book.close()


def _check_size(file: Any) -> None:
    """Check that a workbook does not unpack to far more than a sheet can need; no part can exceed its stated size."""
    with zipfile.ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > MOST_UNPACKED:
        raise AnswersError(
            f"unpacks to {size:,} bytes, more than the {MOST_UNPACKED:,} that are read. Save the sheet as .csv "
            "(CSV UTF-8)."
        )
    file.seek(0)


def _name(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell)
