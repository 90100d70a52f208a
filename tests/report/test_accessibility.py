"""The report for everybody: by keyboard, read aloud, in light and dark, on a phone, on paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup

if TYPE_CHECKING:
    from pathlib import Path

    import browser

pytest.importorskip("vl_convert", reason='needs pip install "trueup[report]"')

#: Smallest contrast of text: WCAG 2, level AA.
ENOUGH = 4.5
CONTRAST = """(() => {
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  const numbers = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script,style,noscript")) continue;
    const style = getComputedStyle(element);
    if (element.getClientRects().length === 0) continue;
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const paper = behind(element);
    const ink = numbers(element.closest("svg") ? style.fill : style.color);
    const alpha = (ink[3] === undefined ? 1 : ink[3]) * opacity;
    const mixed = [0, 1, 2].map((k) => alpha * ink[k] + (1 - alpha) * paper[k]);
    const [low, high] = [light(mixed), light(paper)].sort((a, b) => a - b);
    const text = walker.currentNode.data.trim().slice(0, 30);
    found.push([(high + 0.05) / (low + 0.05), text, element.tagName]);
  }
  return found;
})()"""
KEYBOARD = """(() => {
  const usable = [...document.querySelectorAll("summary, thead button, input, a[href], .wide, pre")];
  const focus = [];
  for (const each of usable) {
    const place = each.tagName === "SUMMARY" ? each.parentElement.parentElement : each;
    if (place.closest("details:not([open])")) continue;
    each.focus({ focusVisible: true });
    const style = getComputedStyle(each);
    const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    focus.push([each.tagName, document.activeElement === each, visible]);
  }
  return {
    focus,
    headings: [...document.querySelectorAll("h1,h2,h3,h4")].map((each) => Number(each.tagName[1])),
    heads: [...document.querySelectorAll("th")].every((each) => ["row", "col"].includes(each.scope)),
    named: [...document.querySelectorAll("[role=region],[role=img]")].map((each) => each.ariaLabel || ""),
    boxes: [...document.querySelectorAll("table")].every((each) => each.closest(".wide")),
  };
})()"""
FOLDS = """(() => {
  const folds = [...document.querySelectorAll("details.fold")];
  const closed = folds.every((each) => !each.open);
  const count = (each, what) => each.querySelectorAll(what).length;
  const drawn = folds.map((each) => count(each, ".chart") === count(each, ".chart svg"));
  dispatchEvent(new Event("beforeprint"));
  const printed = [...document.querySelectorAll("details")].every((each) => each.open);
  const widths = folds.flatMap((each) => [...each.querySelectorAll(".chart svg")].map((svg) => svg.clientWidth));
  dispatchEvent(new Event("afterprint"));
  return { closed, drawn, printed, widths, again: folds.every((each) => !each.open), count: folds.length };
})()"""
OVERFLOW = """(() => ({
  page: document.documentElement.scrollWidth,
  axis: [...document.querySelectorAll(".chart")[0].querySelectorAll(".role-axis-label text")].map((t) => t.textContent),
}))()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with warnings of all kinds: suspicious answers, odd workers, gold, long names, a unit."""
    rng = np.random.default_rng(4)
    truth = rng.normal(172.0, 9.0, 30)
    x = np.round(truth + rng.normal(0.0, 4.0, (9, 30)))
    x[2, 5] *= 10.0
    x[3] += 6.0
    x[4] = 170.0
    rows = [
        (f"photo/{'folder/' * 6}{j}", f"{'worker-' * 6}{i}", float(x[i, j]), float(truth[j]))
        for j in range(30)
        for i in range(9)
    ]
    question, worker, answer, _ = map(list, zip(*rows, strict=True))
    est = trueup.estimate(
        {"question": question, "worker": worker, "answer": answer},
        gold={question[0]: float(truth[0])},
    )
    path: Path = est.report(
        tmp_path_factory.mktemp("access") / "r.html", title="Heights", unit="cm", truth=truth
    )
    return path


@pytest.mark.needs("browser")
def test_all_text_stands_out_in_light_and_dark(chromium: browser.Browser, page: Path) -> None:
    light, dark = chromium.look(page, script=CONTRAST, schemes=("light", "dark")).found
    for texts in (light, dark):
        assert len(texts) > 500
        assert [text for text in texts if text[0] < ENOUGH] == []
    assert light != dark


@pytest.mark.needs("browser")
def test_everything_can_be_used_by_keyboard_and_read_aloud(
    chromium: browser.Browser, page: Path
) -> None:
    seen: dict[str, Any] = chromium.look(page, script=KEYBOARD).found[0]
    kinds = {kind for kind, _, _ in seen["focus"]}
    assert {"SUMMARY", "BUTTON", "INPUT", "A", "DIV", "PRE"} <= kinds
    assert [each for each in seen["focus"] if not (each[1] and each[2])] == []
    headings = seen["headings"]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert max(np.diff(headings)) <= 1
    assert seen["heads"]
    assert seen["boxes"]
    assert all(map(len, seen["named"]))
    html = page.read_text("utf-8")
    assert '<html lang="en">' in html
    labels = re.findall(r'class="chart" role="img" aria-label="([^"]*)"', html)
    assert len(labels) == html.count("<figure id=")
    assert min(map(len, labels)) > 60


@pytest.mark.needs("browser")
def test_folds_are_closed_on_the_screen_and_open_on_paper(
    chromium: browser.Browser, page: Path
) -> None:
    seen = chromium.look(page, script=FOLDS).found[0]
    assert seen["count"] >= 3
    assert seen["closed"]
    assert all(seen["drawn"])
    assert seen["printed"]
    assert seen["again"]
    assert len(seen["widths"]) >= 2
    assert min(seen["widths"]) > 500


@pytest.mark.needs("browser")
@pytest.mark.parametrize("width", [400, 900])
def test_wide_tables_and_long_names_stay_in_their_box(
    chromium: browser.Browser, page: Path, width: int
) -> None:
    seen = chromium.look(page, width=width, phone=width == 400, script=OVERFLOW).found[0]
    assert seen["page"] <= width
    names = [text for text in seen["axis"] if text.startswith("photo")]
    assert len(names) > 20
    assert len(set(names)) == len(names)  # the end, where they differ, is not cut off
    assert all("…" in name and not name.endswith("…") for name in names)
