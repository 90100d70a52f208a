"""trueup datasets: which public data sets there are, and theirs as files."""

import textwrap
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

WIDTH = 100


def datasets(
    name: str | None = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    truth_out: Path | None = None,
    data: Path | None = None,
) -> None:
    """List the public data sets, describe one, or write its answers to a file.

    Example: trueup datasets emotions -o answers.csv --truth-out truth.csv

    Parameters
    ----------
    name
        One of them; without a name all are listed.
    out
        Where its answers go: .csv or .parquet.
    truth_out
        Where the true values go, where they are known.
    data
        Folder that holds one folder per data set; by default a set is downloaded once.
    """
    from trueup import datasets
    from trueup.cli.exit_codes import UsageError

    if name is None:
        if out or truth_out or data:
            raise UsageError("Name the data set: trueup datasets NAME (trueup datasets lists them)")
        for each in datasets.names():
            first = str(datasets.describe(each)).partition("\n")[0]
            print(textwrap.shorten(first, WIDTH, placeholder=" ..."))
    elif not (out or truth_out or data):
        print(datasets.describe(name))
    else:
        _write(name, out, truth_out, data)


def _write(name: str, out: Path | None, truth_out: Path | None, data: Path | None) -> None:
    from trueup import datasets
    from trueup.cli.tables import answers_table, write_files
    from trueup.core.libraries import need
    from trueup.errors import TrueupError, quoted
    from trueup.io.formats import PARQUET, TEXT
    from trueup.io.outputs import check_outputs

    pyarrow = need("pyarrow", "files")
    endings = (TEXT.written, PARQUET.written)
    check_outputs({"--out": (out, endings), "--truth-out": (truth_out, endings)})
    dataset = datasets.load(name, data=data)
    contents = {} if out is None else {out: answers_table(dataset.answers)}
    if truth_out is not None:
        if not dataset.truth:
            raise TrueupError(
                f"Data set {quoted(name)}: no true values are known. Leave out --truth-out."
            )
        contents[truth_out] = pyarrow.table(
            {"question": list(dataset.truth), "truth": list(dataset.truth.values())}
        )
    write_files(contents)
    print(dataset)
    for path, table in contents.items():
        print(f"Written: {path}, {len(table):,} rows")
