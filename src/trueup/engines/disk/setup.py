"""From a request to an engine on disk: read the files into a working folder, and give it back in the end."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import release_unused
from trueup.core.parameters import yes_or_no
from trueup.engines.disk.engine import DiskEngine
from trueup.engines.disk.intake import ingest
from trueup.errors import TrueupError, option

if TYPE_CHECKING:
    from os import PathLike

    from trueup.core.progress import Progress
    from trueup.engines.disk.blocks import StoredAnswers
    from trueup.io.question_data import QuestionDataRequest
    from trueup.io.read_options import ReadOptions

#: Engines of this process that hold a folder which somebody named; a new run in the same folder closes the old one.
_OPEN: weakref.WeakValueDictionary[Path, DiskEngine] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class WorkingFolder:
    """Where answers on disk are kept, and how they are read into it; see `trueup.disk.estimate`."""

    work_dir: str | PathLike[str] | None = None
    keep: bool = False
    memory_limit: str = "1GB"
    strict: bool = False

    def __post_init__(self) -> None:
        """Check that a folder which is kept has a name."""
        yes_or_no("keep", self.keep)
        if self.keep and self.work_dir is None:
            raise TrueupError(
                "a temporary folder does not stay.",
                argument="keep",
                remedy="Pass " + option("work_dir") + " with a folder that does.",
            )


def open_engine(
    source: Any,
    read: ReadOptions,
    folder: WorkingFolder,
    data: QuestionDataRequest | None,
    bar: Progress,
    *,
    threads: int | None,
    **options: Any,
) -> DiskEngine:
    """Read files into a working folder, and return the engine that visits them; `options` are those of the engine."""
    if folder.work_dir is not None:
        held = _OPEN.pop(Path(folder.work_dir).absolute(), None)
        if held is not None:
            held.close()
    stored = ingest(
        source,
        folder.work_dir,
        read,
        None if data is None else data.columns(),
        strict=folder.strict,
        memory_limit=folder.memory_limit,
        threads=threads,
        progress=lambda what, share: bar.note(f"{what}, {share:.0%}"),
    )
    release_unused()  # visits need it for other things
    engine = DiskEngine(stored, threads=threads, **options)
    engine.on_close = weakref.finalize(engine, _give_back, stored, keep=folder.keep)
    if folder.work_dir is not None:
        _OPEN[Path(folder.work_dir).absolute()] = engine
    return engine


def leave_folder(engine: DiskEngine) -> None:
    """Close an engine, and leave what was read in its folder: the next run continues."""
    if engine.on_close is not None:
        engine.on_close.detach()
    engine.problem.close()


def _give_back(stored: StoredAnswers, *, keep: bool) -> None:
    """Leave the folder empty, or with what was read where it is to be kept."""
    if not keep:
        stored.folder.clear()
    stored.close()
