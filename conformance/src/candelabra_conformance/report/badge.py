"""A badge with the level that a device has reached: an SVG without a service, a font or a script."""

from __future__ import annotations

from html import escape
from typing import Final

from candelabra_conformance.model import LEVELS, Run
from candelabra_conformance.report import tally

_COLOURS: Final = {-1: "#6e7781", 0: "#b35900", 1: "#8a6d00", 2: "#4d7a00", 3: "#1a7f37"}
"""Background colours by level. White text has a contrast of at least 4.5 to 1 on each (WCAG 2.2, 1.4.3)."""
_RED: Final = "#cf222e"
_PADDING: Final = 7.0
_SVG: Final = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="20" role="img" aria-label="{alt}">
<title>{alt}</title>
<clipPath id="r"><rect width="{width:g}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{split:g}" height="20" fill="#424a53"/>\
<rect x="{split:g}" width="{rest:g}" height="20" fill="{colour}"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11" text-anchor="middle">
<text x="{left:g}" y="14" textLength="{left_text:g}">{label}</text>
<text x="{right:g}" y="14" textLength="{right_text:g}">{message}</text>
</g>
</svg>
"""


def to_badge(run: Run) -> str:
    """Return the SVG for `run`: the device's type, and the level that it reached, or that the run failed.

    A run of selected cases has no level.
    """
    device = run.subject.device.split(":")[0]
    reached = f"level {run.level}" if run.level in LEVELS else "no level yet"
    if run.selected:
        reached = tally.many(len(run.results), "selected case")
    message = reached if run.green else f"{reached}, failing"
    colour = _COLOURS[-1 if run.selected else run.level]
    return svg(f"candelabra on {device}", message, colour if run.green else _RED)


def svg(label: str, message: str, colour: str) -> str:
    """Return a badge of two fields, with `message` on `colour`. The texts are stretched to the computed widths, so that
    the badge looks the same with any font."""
    left, right = _width(label), _width(message)
    split, width = left + 2 * _PADDING, left + right + 4 * _PADDING
    return _SVG.format(
        width=width,
        split=split,
        rest=width - split,
        left=split / 2,
        right=split + (width - split) / 2,
        left_text=left,
        right_text=right,
        colour=escape(colour),
        alt=escape(f"{label}: {message}"),
        label=escape(label),
        message=escape(message),
    )


def _width(text: str) -> float:
    """Return the approximate width of `text` in 11 px Verdana, from three classes of letters. The text is stretched to
    it."""
    return round(sum(4.0 if letter in "ijltfrI:.,' " else 10.0 if letter in "mwMW" else 7.0 for letter in text), 1)
