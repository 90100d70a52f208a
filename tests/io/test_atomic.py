"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from trueup.errors import TrueupError
from trueup.io.atomic import atomic_write, errors_name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_file_is_written_whole_or_stays_as_it_was(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(error), atomic_write(path) as temporary:  # noqa: PT012 - what happens inside is the point
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    link = tmp_path / "link.html"
    link.symlink_to("real.html")
    with atomic_write(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "real.html").read_text() == "new"


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
@pytest.mark.parametrize("what", ["save", "report"])
def test_what_is_no_plain_file_is_not_replaced(
    what: str, kind: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    if kind == "pipe":
        os.mkfifo("special")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("special")
    before = (tmp_path / "special").stat()
    path = tmp_path / ("link" if linked else "special")
    if linked:
        path.symlink_to("special")
    est: Any = trueup.estimate(trueup.simulate(seed=1).answers, "mean")
    with pytest.raises(TrueupError, match="is no plain file"):
        getattr(est, what)(path)
    after = (tmp_path / "special").stat()
    assert not stat.S_ISREG(after.st_mode)
    assert after.st_ino == before.st_ino
    assert {each.name for each in tmp_path.iterdir()} == {"special", path.name}


def test_a_folder_appears_at_once_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(KeyboardInterrupt), atomic_write(folder) as temporary:  # noqa: PT012 - as above
        temporary.mkdir()
        (temporary / "a.csv").write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with atomic_write(folder) as temporary:
        temporary.mkdir()
        (temporary / "a.csv").write_text("all")
    assert (folder / "a.csv").read_text() == "all"
    assert list(tmp_path.iterdir()) == [folder]


def test_errors_name_the_file_that_the_user_knows(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with pytest.raises(OSError, match=r"table\.csv") as error, errors_name(path):
        raise OSError(errno.ENOSPC, "full", "temporary.tmp")
    assert error.value.errno == errno.ENOSPC
