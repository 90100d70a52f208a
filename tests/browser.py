"""A real browser, without a window and without a network.

A start takes more processor time than a page, so one browser shows all pages of a process, each in a tab of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "--js-flags=--single-threaded",  # less work, and the tests fill all processors anyway
    "--remote-debugging-pipe",
)
# The pipe to the browser has the numbers 3 and 4 there.
WITH_PIPE = ("/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh")
PATIENCE = 120  # seconds until a browser that says nothing is given up
# What scripts of a page may take, in milliseconds of the page; they pass as fast as nothing is left to do.
SCRIPT_TIME = 20_000
# Where a browser calls for its own ends, whatever it is told.
OWN = r"^\w+ (https?://)?[\w.-]*(google|googleapis|gvt1|gstatic)\.com\b"
MEASURE = """(() => {
  const colour = (each, name) => getComputedStyle(document.querySelector(each))[name];
  return {
    width: document.documentElement.scrollWidth,
    charts: [...document.querySelectorAll(".chart svg")].map((each) => each.getBoundingClientRect().width),
    paper: colour("body", "backgroundColor"),
    ink: colour("body", "color"),
    axis: colour(".chart svg .role-axis-title text", "fill"),
  };
})()"""


class Seen(NamedTuple):
    """What the browser made of a page.

    Attributes
    ----------
    dom : str
        Its elements, after all scripts.
    console : list of str
        What the page or the browser complained of.
    requests : list of str
        The first lines of what was asked of the network, those of the browser for itself left out.
    found : list
        The value of the script in each colour scheme.
    """

    dom: str
    console: list[str]
    requests: list[str]
    found: list[Any]

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


@contextlib.contextmanager
def start() -> Iterator[Browser]:
    """Start a browser, and end it afterwards."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        socket.create_server(("127.0.0.1", 0)) as network,
        subprocess.Popen(  # noqa: S603
            [
                *WITH_PIPE,
                executable(),
                *SWITCHES,
                f"--proxy-server=http://127.0.0.1:{network.getsockname()[1]}",
                f"--user-data-dir={profile}",
                "about:blank",  # a tab that stays keeps alive what every other one needs
            ],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            yield Browser(process, network)
        finally:
            process.terminate()


class Browser:
    """A running browser, told what to do in the DevTools protocol.

    Parameters
    ----------
    process
        Messages are JSON with a zero byte at the end.
    network
        All that the browser takes for the network: it hangs up whatever it is asked.
    """

    def __init__(self, process: subprocess.Popen[bytes], network: socket.socket) -> None:
        self._process = process
        self._network = network
        self._session: dict[str, str] = {}  # of the tab, if there is one
        self._calls = 0
        self._received = b""
        self._events: list[dict[str, Any]] = []
        self._requests: list[str] = []

    def look(
        self,
        page: Path,
        *,
        width: int = 1000,
        phone: bool = False,
        script: str = "null",
        schemes: tuple[str, ...] = ("light",),
    ) -> Seen:
        """Open a page, let its scripts finish, and return what became of it.

        Parameters
        ----------
        page
        width
            Of the window, in pixels.
        phone
            Whether it is the window of a phone, which shrinks a page that is not made for it.
        script
            An expression that is evaluated at the end, in each of the colour schemes.
        schemes
            Of "light" and "dark"; the page is loaded in the first one.
        """
        self._session = {}  # a look that failed may have left one
        self._events.clear()
        self._requests.clear()
        tab = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        window = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": phone}
        self._call("Emulation.setDeviceMetricsOverride", **window)
        self._prefer(schemes[0])
        assert "errorText" not in self._call("Page.navigate", url=page.as_uri())
        self._wait_for("Page.loadEventFired")
        policy = "pauseIfNetworkFetchesPending"
        self._call("Emulation.setVirtualTimePolicy", policy=policy, budget=SCRIPT_TIME)
        self._wait_for("Emulation.virtualTimeBudgetExpired")
        dom = self._value("document.documentElement.outerHTML")
        found = []
        for scheme in schemes:
            self._prefer(scheme)
            found.append(self._value(script))
        self._session = {}
        self._call("Target.closeTarget", targetId=tab)
        while select([self._network], [], [], 0)[0]:
            self._hang_up()
        requests = [line for line in self._requests if not re.search(OWN, line)]
        return Seen(dom, [text for event in self._events for text in said(event)], requests, found)

    def look_on_phone(self, page: Path, width: int) -> Seen:
        """Open a page on a phone, in the dark; Seen.found holds what MEASURE finds in the dark, then in the light."""
        schemes = ("dark", "light")
        return self.look(page, width=width, phone=True, script=MEASURE, schemes=schemes)

    def _prefer(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def _value(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        done = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have something done, and return what the browser answers."""
        self._calls += 1
        call = {"id": self._calls, "method": method, "params": parameters, **self._session}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(call).encode() + b"\0")
        while True:
            message = self._next_message()
            if message.get("id") == self._calls:
                assert "error" not in message, (call, message)
                answer: dict[str, Any] = message["result"]
                return answer
            self._events.append(message)

    def _wait_for(self, event: str) -> None:
        while all(seen["method"] != event for seen in self._events):
            self._events.append(self._next_message())

    def _next_message(self) -> dict[str, Any]:
        """Return what the browser says next; who calls for the network meanwhile is heard too."""
        assert self._process.stdout is not None
        voice, network = self._process.stdout.fileno(), self._network.fileno()
        while b"\0" not in self._received:
            ready = select([voice, network], [], [], PATIENCE)[0]
            if not ready:
                raise TimeoutError(f"the browser said nothing for {PATIENCE} seconds")
            if network in ready:
                self._hang_up()
            if voice in ready:
                more = os.read(voice, 2**20)
                if not more:
                    raise EOFError("the browser has ended")
                self._received += more
        line, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _hang_up(self) -> None:
        """Note the first line of a request, and hang up."""
        connection, _ = self._network.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            line = connection.recv(1000).partition(b"\r\n")[0].decode(errors="replace")
            if line:  # of spare connections, which a busy browser opens, nothing is asked
                self._requests.append(line)


def said(event: dict[str, Any]) -> list[str]:
    """Return what an event puts on the console, if it does."""
    of = event.get("params", {})
    match event.get("method"):
        case "Runtime.consoleAPICalled":
            return [
                " ".join(str(each.get("value", each.get("description"))) for each in of["args"])
            ]
        case "Runtime.exceptionThrown":
            return [str(of["exceptionDetails"])]
        case "Log.entryAdded":
            return [of["entry"]["text"]]
    return []
