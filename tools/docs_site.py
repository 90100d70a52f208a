"""Hooks of MkDocs, so that the site needs no network: formulas become MathML, and search works from a plain folder.

Formulas that cannot be read end the build, as every other mistake does.
"""  # noqa: INP001  a script

from __future__ import annotations

import html
import re
from typing import Any

FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.S)
# The theme would load this script from the network; ours does the same.
SHIM = re.compile(r'https://[^"]*/iframe-worker/shim')
OURS = "style/worker.js"


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page."""
    return FORMULA.sub(_mathml, content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Let the page load our script for searching."""
    return SHIM.sub("../" * page.file.dest_uri.count("/") + OURS, output)


def on_post_template(output_content: str, **_: Any) -> str:
    """Do the same for pages that are not written in Markdown."""
    return SHIM.sub(OURS, output_content)


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    text = html.unescape(match[2]).strip()
    block = match[1] == "div"
    opening, closing = (r"\[", r"\]") if block else (r"\(", r"\)")
    latex = text.removeprefix(opening).removesuffix(closing).strip()
    made = convert(latex, display="block" if block else "inline")
    if "\\" in made:
        raise ValueError(f"a formula that cannot be shown: {latex}")
    return f'<div class="formula">{made}</div>' if block else made
