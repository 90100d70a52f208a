"""A real browser, without a window and without a network."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MAC = ("Google Chrome", "Chromium")
SWITCHES = (
    "--headless",
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--enable-logging=stderr",
    "--virtual-time-budget=20000",
)
# Where a browser calls for its own ends, whatever it is told.
OWN = r"^\w+ (https?://)?[\w.-]*(google|googleapis|gvt1|gstatic)\.com\b"
FRAME = """<!DOCTYPE html><iframe src="PAGE" style="width:WIDTHpx;height:3000px;border:0"></iframe><script>
setTimeout(() => {
  const page = document.querySelector("iframe").contentDocument, colour = (each, name) =>
    page.defaultView.getComputedStyle(page.querySelector(each))[name];
  const found = {
    width: page.documentElement.scrollWidth,
    charts: [...page.querySelectorAll(".chart svg")].map((each) => each.getBoundingClientRect().width),
    paper: colour("body", "backgroundColor"),
    ink: colour("body", "color"),
    axis: colour(".chart svg .role-axis-title text", "fill"),
  };
  const place = document.createElement("pre");
  place.textContent = JSON.stringify(found);
  document.body.append(place);
}, 5000);
</script>"""
DARK = "--blink-settings=preferredColorScheme=0"


class Seen(NamedTuple):
    """What the browser made of a page: its elements afterwards, and what it wrote to the console."""

    dom: str
    console: list[str]

    @property
    def elements(self) -> list[Element]:
        """All elements, in order."""
        return elements(self.dom)


class Element(NamedTuple):
    """The start of an element."""

    name: str
    attributes: dict[str, str | None]


def elements(html: str) -> list[Element]:
    """Return the elements of a page; what stands in texts, attributes and scripts is none."""
    found: list[Element] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(Element(tag, dict(attrs)))

    parser = Parser()
    parser.feed(html)
    parser.close()
    return found


def executable() -> str:
    """Return the path of a Chromium or Chrome."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    programs = [Path(f"/Applications/{name}.app/Contents/MacOS/{name}") for name in MAC]
    return str(next(program for program in programs if program.exists()))


def look(page: Path, *switches: str) -> Seen:
    """Open a page, let its scripts finish, and return what became of it."""
    done = _run(page, "--dump-dom", *switches)
    return Seen(done.stdout, re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr))


def screenshot(page: Path, picture: Path, *switches: str) -> Path:
    """Take a picture of a page."""
    _run(page, f"--screenshot={picture}", *switches)
    return picture


def _run(page: Path, *switches: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        return subprocess.run(  # noqa: S603
            [executable(), *SWITCHES, f"--user-data-dir={profile}", *switches, page.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )


def requests(page: Path) -> list[str]:
    """Open a page and return the requests it makes, those of the browser for itself left out."""
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_listen, args=(server, lines), daemon=True)
        thread.start()
        _run(page, "--dump-dom", f"--proxy-server=http://127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    return [line for line in lines if not re.search(OWN, line)]


def _listen(server: socket.socket, lines: list[str]) -> None:
    """Note the first line of all that comes, and hang up."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # shut down
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            lines.append(connection.recv(1000).partition(b"\r\n")[0].decode(errors="replace"))


def measure(page: Path, width: int, *switches: str) -> dict[str, Any]:
    """Show a page in a frame of this width and return what PROBE finds there."""
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder, "frame.html")
        frame.write_text(FRAME.replace("WIDTH", str(width)).replace("PAGE", page.as_uri()), "utf-8")
        dom = look(frame, "--allow-file-access-from-files", *switches).dom
    found = re.search(r"<pre>(.*?)</pre>", dom)
    assert found, dom
    measured: dict[str, Any] = json.loads(found[1])
    return measured
