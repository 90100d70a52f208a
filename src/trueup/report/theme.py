"""Every colour of a page, once: as style sheet variables, which texts and charts both refer to.

A chart that is drawn with `var(--ink)` follows the reader's light or dark setting, and the printer's, without being
drawn again.
"""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette, told apart with any kind of colour vision. Strongest on both backgrounds first.
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow
)
# The same hues, lighter, for a dark background.
DARK_PALETTE = ("#3f9bdc", "#f2803a", "#2fbf95", "#de9ac1", "#efb53f", "#a5dcfb", "#f0e442")
LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1b1f24",
    "faint": "#57606a",
    "line": "#d8dde3",
    "link": "#00558a",
    "yes": "#00694d",
    "no": "#a34700",
    "partly": "#57606a",
}
DARK = {
    "paper": "#14171b",
    "panel": "#1e2329",
    "ink": "#e8eaed",
    "faint": "#a8b0b9",
    "line": "#3a424c",
    "link": "#7cc4f2",
    "yes": "#35c79b",
    "no": "#f2914a",
    "partly": "#a8b0b9",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
HEIGHT = 280


def variables() -> str:
    """Return the colours as a style sheet; dark only on screens, so that paper stays white."""
    light, dark = (
        {f"hue{number}": hue for number, hue in enumerate(palette, 1)}
        for palette in (PALETTE, DARK_PALETTE)
    )
    return (
        f":root{{{_declared({**LIGHT, **light})};--font:{FONT}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{_declared({**DARK, **dark})}}}}}\n"
    )


def _declared(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


def chart_config() -> dict[str, Any]:
    """Return the Vega-Lite config of all charts; what a chart says itself goes before it."""
    ink, faint, line = "var(--ink)", "var(--faint)", "var(--line)"
    words = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    hues = [f"var(--hue{number})" for number in range(1, len(PALETTE) + 1)]
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None, "continuousHeight": HEIGHT, "discreteHeight": HEIGHT},
        "mark": {"color": hues[0]},
        "text": {"color": ink, "fontSize": 12},
        "rule": {"color": faint},
        "tick": {"color": ink},
        "axis": {
            **words,
            "labelColor": faint,
            "titleColor": ink,
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "labelLimit": 160,
        },
        "legend": {**words, "labelColor": ink, "titleColor": ink, "orient": "top"},
        "header": {**words, "labelColor": ink, "titleColor": ink},
        "title": {"color": ink, "subtitleColor": faint, "anchor": "start", "fontSize": 13},
        # Lightness rises all along these scales, so that they need no colour vision either.
        "range": {
            "category": [*hues[:-1], ink, hues[-1]],  # yellow, weak on white, comes last
            "ramp": {"scheme": "cividis"},
            "heatmap": {"scheme": "cividis"},
            "ordinal": {"scheme": "cividis"},
            "diverging": {"scheme": "blueorange"},
        },
    }
