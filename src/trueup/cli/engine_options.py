"""Where a command works: in memory, on disk, on a Spark cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from trueup.request import Request

#: Memory that an answer takes while it is read and combined, and the share of all memory that may be used.
BYTES_AN_ANSWER, SHARE = 100, 0.6
#: What --memory-limit is unless given.
MEMORY_LIMIT = "1GB"


@Parameter(name="*")
@dataclass(frozen=True)
class EngineOptions:
    """Options of where to work."""

    engine: Literal["auto", "memory", "disk", "spark"] = "auto"
    """memory; disk, for files larger than memory; spark, on a cluster. auto: disk for answers too large for memory."""
    work_dir: Path | None = None
    """Working folder of --engine disk; a run that was killed continues in it. By default a temporary one."""
    keep: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """Leave what was read in the folder of --work-dir: the next run need not read the files again."""
    memory_limit: str = MEMORY_LIMIT
    """Memory that --engine disk may use to read delimited text; all else works in pieces of a fixed size."""
    strict: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """Stop at rows that cannot be used, which --engine disk otherwise leaves out; memory and spark always stop."""
    master: str | None = None
    """Spark master of --engine spark, such as local[4] or spark://host:7077."""

    @property
    def folder(self) -> dict[str, Any]:
        """The options of the working folder, as keywords."""
        names = ("work_dir", "keep", "memory_limit", "strict")
        return {name: getattr(self, name) for name in names}

    def choose(
        self, file: str, blockers: dict[str, Any], request: "Request", out: Path | None = None
    ) -> str:
        """Return the engine of trueup estimate.

        Parameters
        ----------
        file
            The file or pattern of the command.
        blockers
            Options that a cluster does not have, by name; those not given are None.
        request
            What was asked for.
        out
            Where the estimates go.
        """
        streams = (
            not request.read.only_in_memory and out is not None and out.suffix.lower() == ".parquet"
        )
        return self.place(file, blockers, streams=streams)

    def place(self, file: str, blockers: dict[str, Any], *, streams: bool = True) -> str:
        """Return the engine; `streams`: whether what is asked for can be done without all answers in memory."""
        import sys

        from trueup.errors import TrueupError

        if self.memory_limit != MEMORY_LIMIT:
            from trueup.engines.disk.files import check_memory_limit

            check_memory_limit(self.memory_limit)
        place = self._place(file, blockers, streams=streams)
        for option, engine in self._unused(place).items():
            if self.engine != "auto":
                raise TrueupError(
                    f"{option}: is for --engine {engine}. Leave it out, or use that engine."
                )
            print(
                f"trueup: {option} is for --engine {engine}; not used, as --engine {place} does the work",
                file=sys.stderr,
            )
        return place

    def _unused(self, place: str) -> dict[str, str]:
        """Return options that were given and mean nothing there, each with the engine that takes it."""
        given = {
            "--work-dir": ("disk", self.work_dir is not None),
            "--keep": ("disk", self.keep),
            "--memory-limit": ("disk", self.memory_limit != MEMORY_LIMIT),
            "--master": ("spark", self.master is not None),
        }
        return {name: engine for name, (engine, here) in given.items() if here and engine != place}

    def _place(self, file: str, blockers: dict[str, Any], *, streams: bool) -> str:
        import sys

        from trueup.errors import TrueupError
        from trueup.io.limits import memory

        given = [name for name, value in blockers.items() if value]
        if self.engine == "spark" and given:
            raise TrueupError(
                f"{given[0]}: does not work on a cluster. Leave it out, or use --engine memory or disk."
            )
        if self.engine != "auto":
            return self.engine
        if given or not streams:
            return "memory"
        if self.work_dir is not None:
            return "disk"
        rows = rows_about(file)
        if rows is None or rows * BYTES_AN_ANSWER <= SHARE * memory():
            return "memory"
        print(
            f"trueup: about {rows:,} answers would not fit into memory; working on disk (--engine disk)",
            file=sys.stderr,
        )
        return "disk"


def rows_about(file: str) -> int | None:
    """Estimate the rows of files without reading them; None if that cannot be done, or they cannot be streamed."""
    from trueup.errors import TrueupError
    from trueup.io.formats import estimate_rows
    from trueup.io.paths import find_paths

    if file == "-":
        return None
    try:
        rows = [estimate_rows(path) for path in find_paths(file).paths]
    except (TrueupError, OSError):
        return None
    return None if None in rows else sum(filter(None, rows))
