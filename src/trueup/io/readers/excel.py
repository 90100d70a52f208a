"""Excel workbooks."""

from __future__ import annotations

import importlib
import zipfile
from typing import TYPE_CHECKING, Any

from trueup.errors import MOST_NAMES, AnswersError, Message, MissingExtra, listing, option, quoted
from trueup.io.readers.delimited import LOOKED_AT
from trueup.io.readers.python_values import listed_source
from trueup.io.readers.source import label_of, one_line, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trueup.io.readers.delimited import Layout
    from trueup.io.readers.source import Source

#: Bytes that a workbook may unpack to: a full sheet of three columns has about 200 MB.
MOST_UNPACKED = 1 << 30
#: The last row of a sheet in any version of Excel.
LAST_ROW = 1_048_576


def open_excel(path: Path, layout: Layout, name: str) -> Source:
    """Read a sheet of a workbook; its first row that is not empty, below those to be skipped, names the columns.

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
            rows = _rows(openpyxl, file, layout)
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
        raise AnswersError("its sheet is empty. Its first row must name the columns.")
    if not layout.skip_lines:
        _check_titles(rows)
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


def _rows(openpyxl: Any, file: Any, layout: Layout) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the rows of the sheet that are not empty, with their numbers."""
    _check_size(file)
    # `data_only`: the result of a formula when the file was saved, not the formula.
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        if not book.worksheets:
            raise AnswersError("holds no sheet of cells. Put the answers on a sheet.")
        sheet = _sheet(book, layout.sheet)
        rows = []
        for number, row in _numbered(sheet):
            if number > LAST_ROW:
                raise AnswersError(
                    f"has rows below row {LAST_ROW:,}, the last of a sheet. Mend it."
                )
            if number > (layout.skip_lines or 0) and any(cell is not None for cell in row):
                rows.append((number, tuple(row)))
        return rows
    finally:
        book.close()


def _numbered(sheet: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    # Some programs write a wrong size of the sheet: rows outside it would be lost.
    sheet.reset_dimensions()
    return enumerate(sheet.iter_rows(values_only=True), 1)


def _sheet(book: Any, name: str | None) -> Any:
    """Return the sheet of this name, or the only one that is not empty; which of several is not guessed."""
    sheets = {each.title: each for each in book.worksheets}
    if name is not None:
        if name not in sheets:
            raise AnswersError(
                f"there is no sheet {quoted(name)}, only {listing([*sheets], MOST_NAMES)}.",
                argument="sheet",
            )
        return sheets[name]
    filled = [
        title
        for title, each in sheets.items()
        if any(cell is not None for _, row in _numbered(each) for cell in row)
    ]
    if len(filled) > 1:
        raise AnswersError(
            f"holds {len(filled)} sheets, {listing(filled, MOST_NAMES)}.",
            remedy="Pass the one with the answers: "
            + Message(" or ").join(option("sheet", title) for title in filled[:MOST_NAMES])
            + ".",
        ).mended_by(*({"sheet": title} for title in filled))
    return sheets[filled[0]] if filled else book.worksheets[0]


def _check_titles(rows: list[tuple[int, tuple[Any, ...]]]) -> None:
    """Raise an error where rows above the header are plainly titles: fewer cells than half of those below."""
    filled = [sum(cell is not None for cell in row) for _, row in rows[:LOOKED_AT]]
    widest = max(filled)
    start = filled.index(widest)
    steady = 2 * sum(count > widest // 2 for count in filled[start:]) > len(filled) - start
    if start and widest > 1 and max(filled[:start]) <= widest // 2 and steady:
        above = rows[start][0] - 1
        title = next(cell for cell in rows[0][1] if cell is not None)
        raise AnswersError(
            f"its first row, {quoted(str(title))}, does not name the columns.",
            remedy=f"Row {above + 1} seems to: pass " + option("skip_lines", above) + ".",
        ).mended_by({"skip_lines": above})


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
