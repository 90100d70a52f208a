"""Files of answers as a Spark DataFrame: columns go by name, and rows that are written wrongly are told of.

What a file means is decided as for files in memory, by the parts of `trueup.io`; the rows are read by Spark, where its
executors are. It would take a row with too many or too few fields for an answer, or for none, and a quote that is never
closed for a text with all rows below: so delimited text is looked at once before anything is made of it.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.core.libraries import need
from trueup.engines.disk.files import File, ParquetFile, check_stands, open_alike, unified_type
from trueup.engines.spark.intake import fault
from trueup.errors import MOST_ROWS, AnswersError, listing, quoted
from trueup.io.readers.delimited import DELIMITERS, read_header
from trueup.io.readers.files import FORMATS
from trueup.io.readers.source import label_of, labelled, one_line
from trueup.io.readers.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

    from trueup.io.readers.delimited import Layout

# Columns beside those that are wanted: a row that has not the fields of the header, the file it is in, and whether its
# last value goes over the end of a line.
BAD, FILE, GOES_ON = "bad", "file", "goes_on"
# A character that no text has: between its lines there are no values then.
NEVER = "\uffff"
# Encodings that Spark knows, by the names that Python has for them; it takes off a byte order mark itself.
ENCODINGS = {
    "utf-8": "UTF-8", "utf-8-sig": "UTF-8", "ascii": "US-ASCII", "iso8859-1": "ISO-8859-1", "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE", "utf-32": "UTF-32",
}  # fmt: skip
QUOTE_REMEDY = "Mend that line; a quote within quotes is written twice."


class Wanted(NamedTuple):
    """Columns that are wanted: ids, numbers, and labels, each of them once."""

    ids: tuple[str, ...]
    numbers: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.ids, *self.numbers, *self.labels]


class TextFile(File):
    """A file of delimited text; all values are text."""

    untyped = True

    def __init__(self, path: Path, name: str, layout: Layout) -> None:
        super().__init__(path, name)
        plain = path.name.lower()
        text = Text.of(path, layout.encoding)
        if text.packed and not plain.endswith(".gz"):
            raise AnswersError(
                "is packed by gzip, which Spark tells from the name. Let the name end in .gz."
            )
        tabs = plain.removesuffix(".gz").endswith(".tsv")
        delimiters = [layout.sep] if layout.sep else ["\t"] if tabs else DELIMITERS
        header = read_header(text, delimiters)
        self.names, self.delimiter = header.names, header.delimiter
        self.encoding = ENCODINGS.get(text.encoding, "")
        if not self.encoding:
            raise AnswersError(
                f"encoding: Spark cannot read {quoted(text.encoding)}, only {', '.join(ENCODINGS)}. Write the file as "
                "UTF-8."
            )

    @property
    def form(self) -> tuple[Any, ...]:
        """What files must have in common to be read together."""
        return self.delimiter, self.encoding, tuple(self.names)


def open_files(given: str, layout: Layout) -> list[Any]:
    """Open files of one kind, Parquet or delimited text; only what they say about themselves is read."""
    return open_alike(given, lambda path, name: _open(path, name, layout))


def _open(path: Path, name: str, layout: Layout) -> File:
    check_stands(path)
    plain = path.name.lower()
    with labelled(label_of(name)):
        if plain.startswith(("_", ".")):
            raise AnswersError(
                "Spark passes over files whose names begin with an underscore or a point. Give it another name."
            )
        if plain.endswith(FORMATS["Parquet"].endings):
            if layout.given:
                raise AnswersError(
                    f"{layout.given[0]}: is for text, and this is Parquet. Leave it out."
                )
            return ParquetFile(path, name)
        if plain.removesuffix(".gz").endswith(FORMATS["text"].endings):
            return TextFile(path, name, layout)
        endings = ", ".join(FORMATS["Parquet"].endings + FORMATS["text"].endings)
        raise AnswersError(
            f"cannot be read by the engine on Spark. It takes files ending in {endings} (text also with .gz behind): "
            "write the answers in one of these formats."
        )


def read_files(session: Any, files: Sequence[Any], wanted: Wanted, layout: Layout) -> DataFrame:
    """Return these columns of all files, which each of them has once."""
    if files[0].untyped:
        return _read_text(session, files, wanted, layout)
    return _read_parquet(session, files, wanted.names)


def _together(files: Sequence[Any], form: Callable[[Any], Any]) -> list[list[Any]]:
    """Group files that can be read together."""
    groups: dict[Any, list[Any]] = {}
    for file in files:
        groups.setdefault(form(file), []).append(file)
    return list(groups.values())


def _paths(files: Sequence[File]) -> list[str]:
    """Write paths for Spark so that each means this file only: no pattern."""
    return [re.sub(r"([*?\[\]{}\\])", r"\\\1", str(file.path.absolute())) for file in files]


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda above, below: above.union(below), parts)


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


@contextmanager
def _explained() -> Iterator[None]:
    """Say in one line what Spark says of a file in a hundred."""
    errors = (
        need("py4j.protocol", "spark").Py4JError,
        need("pyspark.errors", "spark").PySparkException,
    )
    try:
        yield
    except errors as error:
        message = str(error)
        file = re.search(r"reading file \S*?([^/\s]+)\.\s", message)
        label = f"{label_of(file[1])}: " if file else "Files: "
        if "Unescaped quote" in message:
            content = re.search(
                r"content parsed=(.*?)(?:\n\tat|\nIdentified|\nParser|$)", message, re.S
            )
            found = f" ({quoted(content[1])})" if content else ""
            raise AnswersError(
                f"{label}a quote is never closed, or text follows where it closes{found}. {QUOTE_REMEDY}"
            ) from error
        said = [line for line in message.splitlines() if not line.startswith("An error occurred")]
        raise AnswersError(
            f"{label}cannot be read by Spark ({one_line(chr(10).join(said))})."
        ) from error


@contextmanager
def _quiet(session: Any) -> Iterator[None]:
    """Keep Spark from printing the stack of an error that is told in a line."""
    try:
        context = session.sparkContext
        level = context.getConf().get("spark.log.level", "WARN")
    except (
        Exception
    ):  # Spark Connect has no context, and several ways of saying so; it prints elsewhere
        context = None
    try:
        if context is not None:
            context.setLogLevel("OFF")
        yield
    finally:
        if context is not None:
            context.setLogLevel(level)


# -- Parquet ---------------------------------------------------------------------------------------


def _read_parquet(session: Any, files: Sequence[ParquetFile], names: Sequence[str]) -> DataFrame:
    """Read Parquet files; numbers of several widths become the widest, a column of nulls is of any type."""
    from pyspark.sql import functions

    for name in names:
        unified_type(files, name)  # or it says which files have none in common
    groups = _together(files, lambda file: tuple(map(file.kind, names)))
    parts = []
    with _explained():
        for group in groups:
            empty = {name for name in names if str(group[0].kind(name)) == "null"}
            columns = [
                functions.lit(None).alias(name)
                if name in empty and len(groups) > 1
                else _column(name)
                for name in names
            ]
            parts.append(session.read.parquet(*_paths(group)).select(*columns))
        return _union(parts)


# -- delimited text --------------------------------------------------------------------------------


def _read_text(
    session: Any, files: Sequence[TextFile], wanted: Wanted, layout: Layout
) -> DataFrame:
    """Read delimited text, each file by its own header, and look at all rows once."""
    groups = _together(files, lambda file: file.form)
    names = wanted.names
    # By place: Spark takes names that differ only in case for the same.
    column = {name: f"value{i}" for i, name in enumerate(names)}
    commas = wanted.numbers if layout.decimal == "," else ()
    with _quiet(session), _explained():
        rows = _union([_rows(session, group, column) for group in groups])
        seen = _look(rows, {each: column[each] for each in wanted.ids}, commas, column)
        _check_fields(rows, seen)
        if seen["goes_on"]:
            _check_quotes(session, groups)
        for name in commas:
            _check_points(rows, name, column[name], seen)
    return rows.select(
        *(_typed(rows[column[name]], name, commas, seen).alias(name) for name in names)
    )


def _rows(session: Any, group: Sequence[TextFile], column: Mapping[str, str]) -> DataFrame:
    """Return the rows of files with the same header: what is wanted, and what may be wrong with them."""
    names = group[0].names
    rows: DataFrame = (
        _reader(session, group[0])
        .options(
            header=True,
            escape='"',
            columnNameOfCorruptRecord=BAD,
            unescapedQuoteHandling="RAISE_ERROR",
            columnPruning=False,  # or fields of columns that are not wanted would not be counted
        )
        .schema(", ".join(f"field{i} string" for i in range(len(names))) + f", {BAD} string")
        .csv(_paths(group))
    )
    return rows.select(
        *(rows[f"field{names.index(name)}"].alias(value) for name, value in column.items()),
        rows[BAD],
        rows["_metadata.file_name"].alias(FILE),
        rows[f"field{len(names) - 1}"].rlike(r"[\r\n]").alias(GOES_ON),
    )


def _reader(session: Any, file: TextFile, sep: str | None = None) -> Any:
    """Return what reads files of this form; texts in quotes may hold ends of lines."""
    return session.read.options(
        sep=sep or file.delimiter, encoding=file.encoding, multiLine=True, mode="PERMISSIVE"
    )


def _look(
    rows: DataFrame, ids: Mapping[str, str], commas: Sequence[str], column: Mapping[str, str]
) -> dict[str, Any]:
    """Count rows and what is wrong with them, and see which ids are all written as whole numbers."""
    from pyspark.sql import functions

    looks = {
        "rows": functions.count("*"),
        "bad": functions.count(BAD),
        "goes_on": functions.count_if(GOES_ON),
    }
    for name in commas:
        looks[f"points {name}"] = functions.count_if(rows[column[name]].contains("."))
    for name, value in ids.items():
        # No leading zero, no plus, no space: the text such a number would be written as again.
        again = rows[value].try_cast("bigint").cast("string")
        same = functions.bool_and(rows[value].eqNullSafe(again))
        looks[f"whole {name}"] = functions.coalesce(same, functions.lit(False))
    (found,) = rows.agg(*looks.values()).collect()
    return dict(zip(looks, found, strict=True))


def _check_fields(rows: DataFrame, seen: Mapping[str, Any]) -> None:
    """Refuse rows that have not as many fields as the header."""
    if not (count := seen["bad"]):
        return
    # Spark does not look for what is wrong where nothing else is asked for.
    wrong = rows.where(rows[BAD].isNotNull()).orderBy(FILE, BAD).limit(MOST_ROWS).collect()
    file = wrong[0][FILE]
    some = [row[BAD] for row in wrong if row[FILE] == file]
    advice = "Mend them."
    if any('"' in each and "\n" in each for each in some):
        advice = f"A quote is never closed, or far below. {QUOTE_REMEDY}"
    noun = "row" if seen["rows"] == 1 else "rows"
    raise AnswersError(
        f"{label_of(file)}: {count:,} of {seen['rows']:,} {noun} {'has' if count == 1 else 'have'} more or fewer "
        f"fields than the header, such as {listing(some, MOST_ROWS)}. {advice}"
    )


def _check_quotes(session: Any, groups: Sequence[Sequence[TextFile]]) -> None:
    """Refuse files with a quote that is never closed: all below it would be one text, the last of its row.

    Where it is not the last, fields are missing behind it. Quotes come in pairs, those within a text twice.
    """
    from pyspark.sql import functions

    for group in groups:
        lines = _reader(session, group[0], NEVER).options(quote="").schema("line string")
        text = lines.csv(_paths(group))
        quotes = functions.sum(functions.length(functions.regexp_replace("line", '[^"]', "")))
        files = text.groupBy(text["_metadata.file_name"].alias(FILE)).agg(quotes.alias("quotes"))
        odd = files.where("quotes % 2 = 1").orderBy(FILE).limit(1).collect()
        if odd:
            raise AnswersError(f"{label_of(odd[0][FILE])}: a quote is never closed. {QUOTE_REMEDY}")


def _check_points(rows: DataFrame, name: str, value: str, seen: Mapping[str, Any]) -> None:
    """Refuse a point where the decimal mark is a comma: it could mean anything."""
    if not (count := seen[f"points {name}"]):
        return
    some = rows.where(rows[value].contains(".")).select(value).distinct().orderBy(value)
    found = listing([row[0] for row in some.limit(MOST_ROWS).collect()], MOST_ROWS)
    raise fault(
        name,
        count,
        seen["rows"],
        ("has a point", "have a point"),
        f", such as {found}",
        'With decimal="," write 1234,5 and no points, or leave decimal out if points are meant.',
    )


def _typed(value: Column, name: str, commas: Sequence[str], seen: Mapping[str, Any]) -> Column:
    """Return a column as it is meant: ids as whole numbers where all are, since text has another order."""
    from pyspark.sql import functions

    if seen.get(f"whole {name}"):
        return value.cast("bigint")
    if name in commas:
        return functions.regexp_replace(value, r"^([^,]*),([^,]*)$", "$1.$2")
    return value
