"""The page: one file, drawn by a real browser, that runs nothing of what it shows."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import browser
from trueup.errors import MissingExtra, TrueupError
from trueup.report import Figure, PageTable, Section, write_page
from trueup.report.markup import number
from trueup.report.parts import Fold

if TYPE_CHECKING:
    from pathlib import Path

NEEDS = 'needs pip install "trueup[report]"'
altair = pytest.importorskip("altair", reason=NEEDS)
pytest.importorskip("vl_convert", reason=NEEDS)

HOSTILE = (
    "</script><script>document.documentElement.dataset.owned=1</script>"
    "<img src=http://page.test/x.png onerror='document.documentElement.dataset.owned=1'>\"'&"
)


def rows(n: int = 6) -> list[dict[str, Any]]:
    return [{"n": i, "risk": 1 / (i + 1), "method": ("mean", "dtd")[i % 2]} for i in range(n)]


def line(n: int = 6) -> Any:
    return (
        altair.Chart(pd.DataFrame(rows(n)))
        .mark_line(point=True)
        .encode(x="n:Q", y="risk:Q", color=altair.Color("method:N"))
    )


BARS = {
    "data": {"values": rows()},
    "width": 1500,
    "mark": "bar",
    "encoding": {
        "x": {"field": "n", "type": "ordinal"},
        "y": {"field": "risk", "type": "quantitative"},
    },
}
PANELS = {
    "data": {"values": rows()},
    "facet": {"field": "method", "type": "nominal"},
    "columns": 2,
    "spec": {"mark": "point", "encoding": BARS["encoding"]},
}
SIDE_BY_SIDE = {"hconcat": [BARS, BARS]}
NUMBERS = PageTable("The numbers", ["method", "risk"], [["mean", 0.5], ["dtd", 0.25]])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one of everything."""
    figures = [
        Figure("The risk falls.", line(), "Lower is better.", NUMBERS),
        Figure("So it does in bars.", BARS),
        Figure("And in panels.", PANELS),
        Figure("And side by side.", SIDE_BY_SIDE),
        Figure("And in layers.", altair.layer(line(), line())),
    ]
    return write_page(
        tmp_path_factory.mktemp("page") / "all kinds.html",
        title="A paper, again",
        intro="First paragraph.\n\nSecond paragraph.",
        sections=[
            Section("Risk", "It falls.", "It does.", True, "Words.", figures, [NUMBERS]),
            Section("Limits", "None.", "There are some.", False),
            Section("Rest", "All.", "Half.", None),
            Section("Words only", text="No claim here."),
        ],
        footer="The end.",
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page all of whose texts try to run something and to fetch something."""
    table = PageTable(HOSTILE, [HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]])
    chart = {
        "title": HOSTILE,
        "data": {"values": [{"who": HOSTILE, "n": 1}]},
        "mark": "bar",
        "encoding": {
            "y": {"field": "who", "type": "nominal"},
            "x": {"field": "n", "type": "quantitative"},
        },
    }
    figure = Figure(HOSTILE, chart, HOSTILE, table)
    fold = Fold(HOSTILE, HOSTILE, [HOSTILE], [[HOSTILE]])
    section = Section(HOSTILE, HOSTILE, HOSTILE, None, HOSTILE, [figure], [table], closing=[fold])
    return write_page(
        tmp_path_factory.mktemp("page") / "hostile.html",
        title=HOSTILE,
        intro=HOSTILE,
        sections=[section, section],
        footer=HOSTILE,
    )


@pytest.fixture(scope="module")
def seen(chromium: browser.Browser, page: Path) -> browser.Seen:
    """The page in a wide window."""
    return chromium.look(page, width=1000, script=browser.MEASURE)


@pytest.fixture(scope="module")
def seen_hostile(chromium: browser.Browser, hostile: Path) -> browser.Seen:
    return chromium.look(hostile)


def drawn(dom: str) -> list[str]:
    """Return the drawings that have marks in them."""
    drawings = re.findall(r'<svg[^>]*class="marks".*?</svg>', dom, re.DOTALL)
    return [each for each in drawings if re.search(r'class="mark-(line|rect|symbol)\b', each)]


@pytest.mark.needs("browser")
def test_every_figure_is_drawn_without_a_complaint(seen: browser.Seen) -> None:
    assert len(drawn(seen.dom)) == 5
    assert seen.console == []


@pytest.mark.needs("browser")
def test_hostile_texts_are_shown_not_run(
    chromium: browser.Browser, hostile: Path, seen_hostile: browser.Seen, tmp_path: Path
) -> None:
    html = hostile.read_text("utf-8")
    # Escaping must do without the policy that the page has as well.
    unguarded = tmp_path / "unguarded.html"
    unguarded.write_text(re.sub(r"<meta http-equiv.*?>", "", html, count=1), "utf-8")
    assert "Content-Security-Policy" in html
    assert "Content-Security-Policy" not in unguarded.read_text("utf-8")
    for seen in (seen_hostile, chromium.look(unguarded)):
        assert "data-owned" not in seen.elements[0].attributes
        assert "img" not in {element.name for element in seen.elements}
        assert len(drawn(seen.dom)) == 2
        assert seen.console == []
        assert seen.requests == []


@pytest.mark.needs("browser")
def test_the_policy_stops_a_script_that_got_in(
    chromium: browser.Browser, page: Path, tmp_path: Path
) -> None:
    script = "<main><script>document.documentElement.dataset.owned=1</script>"
    bad = tmp_path / "bad.html"
    bad.write_text(page.read_text("utf-8").replace("<main>", script, 1), "utf-8")
    seen = chromium.look(bad)
    assert "data-owned" not in seen.elements[0].attributes
    assert len(seen.console) == 1
    assert "Content Security Policy" in seen.console[0]


@pytest.mark.needs("browser")
def test_a_page_asks_the_network_for_nothing(
    chromium: browser.Browser, seen: browser.Seen, seen_hostile: browser.Seen, tmp_path: Path
) -> None:
    control = tmp_path / "control.html"
    control.write_text('<img src="http://page.test/x.png">')
    assert any("page.test" in request for request in chromium.look(control).requests)
    assert seen.requests == []
    assert seen_hostile.requests == []


@pytest.mark.needs("browser")
def test_complaints_of_every_kind_are_heard(chromium: browser.Browser, tmp_path: Path) -> None:
    control = tmp_path / "control.html"
    control.write_text(
        "<script>console.log('said', 1); setTimeout(() => { throw Error('thrown'); }, 9000);"
        "fetch('http://page.test/x.json')</script>"
    )
    console = "\n".join(chromium.look(control).console)
    for words in ("said 1", "Error: thrown", "Failed to load resource", "Failed to fetch"):
        assert words in console


@pytest.mark.needs("browser")
def test_a_page_fits_a_phone_in_light_and_dark(chromium: browser.Browser, page: Path) -> None:
    dark, light = chromium.look_on_phone(page, 400).found
    for seen in (light, dark):
        assert seen["width"] <= 400
        assert len(seen["charts"]) == 5
        assert max(seen["charts"]) <= 400
        assert seen["axis"] == seen["ink"]  # charts have the colours of the page
        assert seen["paper"] != seen["ink"]
    assert light["paper"] == dark["paper"].replace("20, 23, 27", "255, 255, 255")
    assert light["ink"] != dark["ink"]


@pytest.mark.needs("browser")
def test_a_chart_fills_a_wide_page(seen: browser.Seen) -> None:
    widths = seen.found[0]["charts"]
    assert min(widths) > 600
    assert max(widths) <= 1000


@pytest.mark.needs("browser")
def test_a_chart_that_cannot_be_drawn_says_so(chromium: browser.Browser, tmp_path: Path) -> None:
    bad = {"data": {"values": []}, "mark": "nonsense", "encoding": {}}
    figures = [Figure("Bad", bad), Figure("Good", BARS)]
    path = write_page(
        tmp_path / "p.html", title="t", intro="", sections=[Section("s", figures=figures)]
    )
    seen = chromium.look(path)
    assert ">This chart could not be drawn: " in seen.dom
    assert len(drawn(seen.dom)) == 1


def test_nothing_in_the_file_points_outside(page: Path) -> None:
    html = page.read_text("utf-8")
    for element in browser.elements(html):
        assert "src" not in element.attributes
        assert (element.attributes.get("href") or "#").startswith("#")
    assert html.count("window.vegaEmbed=") == 1
    assert "default-src 'none'" in html


def test_all_links_lead_somewhere(page: Path, hostile: Path) -> None:
    for path in (page, hostile):
        html = path.read_text("utf-8").split("<script>")[0]
        links = re.findall(r'href="#([^"]+)"', html)
        ids = re.findall(r'\bid="([^"]+)"', html)
        assert links
        assert set(links) <= set(ids)
        assert len(ids) == len(set(ids))


def test_claim_and_verdict_stand_side_by_side_with_a_mark_in_words(page: Path) -> None:
    html = page.read_text("utf-8")
    assert "<dt>The paper says:</dt><dd>It falls.</dd>" in html
    for words, finding in (
        ("holds", "It does."),
        ("does not hold", "There are some."),
        ("holds in part", "Half."),
    ):
        assert re.search(rf"<dt>We find:</dt><dd>[^:]*</span> {words}</span>{finding}", html)


def test_tables_have_numbers_at_the_right_and_texts_escaped(tmp_path: Path) -> None:
    table = PageTable("t", ["a", "b", "c"], [["<x>", 0.123456, None], [7, np.float32(2), True]])
    path = write_page(
        tmp_path / "p.html", title="t", intro="i", sections=[Section("s", tables=[table])]
    )
    html = path.read_text("utf-8")
    assert '<tr><th scope="row">&lt;x&gt;</th><td class="number">0.1235</td><td>–</td></tr>' in html
    assert '<tr><th scope="row">7</th><td class="number">2</td><td>yes</td></tr>' in html
    assert '<th scope="col" class="number">b</th><th scope="col">c</th>' in html
    assert "vega" not in html  # no charts, no library for them


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234, "1,234"), (-12345.6, "-12,346"), (1e20, "1e+20"), (float("inf"), "+∞")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(TrueupError, match="row 1 has 1 cells"):
        PageTable("t", ["a", "b"], [[1, 2], [3]])


def test_numbers_of_numpy_and_missing_ones_can_be_drawn(tmp_path: Path) -> None:
    chart = {
        **BARS,
        "data": {"values": [{"n": np.int64(1), "risk": np.nan}, {"n": 2, "risk": np.float32(1)}]},
    }
    path = write_page(
        tmp_path / "p.html",
        title="t",
        intro="",
        sections=[Section("s", figures=[Figure("f", chart)])],
    )
    assert '[{"n":1,"risk":null},{"n":2,"risk":1.0}]' in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("chart", "message"),
    [
        ({"layer": [{"data": {"url": "https://page.test/d.csv"}}]}, "must work offline"),
        ({"data": {"values": [{"n": object()}]}}, "in its spec"),
        (7, "must be an altair chart"),
        (line(6000), "Summarise"),
    ],
)
def test_charts_that_need_more_than_the_page_are_refused(
    chart: Any, message: str, tmp_path: Path
) -> None:
    section = Section("s", figures=[Figure("f", chart)])
    with pytest.raises(TrueupError, match=message):
        write_page(tmp_path / "p.html", title="t", intro="", sections=[section])
    assert list(tmp_path.iterdir()) == []


def test_rows_may_have_a_column_named_url(tmp_path: Path) -> None:
    chart = {**BARS, "data": {"values": [{"url": "x", "data": {"url": "y"}, "n": 1, "risk": 2}]}}
    section = Section("s", figures=[Figure("f", chart)])
    assert write_page(tmp_path / "p.html", title="t", intro="", sections=[section]).exists()


def test_without_the_extra_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    section = Section("s", figures=[Figure("f", BARS)])
    with pytest.raises(MissingExtra, match=r'pip install "trueup\[report\]"'):
        write_page(tmp_path / "p.html", title="t", intro="", sections=[section])


def test_text_that_is_no_unicode_does_not_stop_a_page(tmp_path: Path) -> None:
    path = write_page(tmp_path / "p.html", title="half \ud83d pair", intro="", sections=[])
    assert "half ? pair" in path.read_text("utf-8")
