"""Graphs as DOT and SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import candelabra as cd
import pytest
from candelabra.autograd import make_dot


def test_names_shapes_and_operators_are_shown(tmp_path: Path) -> None:
    """Leaves carry names and shapes, and the same graph gives the same text twice."""
    w = cd.ones(2, 3, requires_grad=True)
    drawing = make_dot((w * w).sum(), {"weight": w}, show_saved=True, show_attrs=True)
    assert "weight" in drawing.source
    assert "MulBackward" in drawing.source
    assert ElementTree.fromstring(drawing.svg).tag.endswith("svg")
    assert drawing.svg == make_dot((w * w).sum(), {"weight": w}, show_saved=True, show_attrs=True).svg
    assert drawing._repr_svg_() == Path(drawing.save(tmp_path / "graph.svg")).read_text(encoding="utf-8")
    assert Path(drawing.save(tmp_path / "graph.dot")).read_text(encoding="utf-8") == drawing.source


def test_what_cannot_be_drawn_says_so(tmp_path: Path) -> None:
    """A missing graph, a graph that is too large, and an unsupported format are errors."""
    with pytest.raises(RuntimeError, match="there is no graph to draw"):
        make_dot(cd.ones(1))
    y = x = cd.ones(1, requires_grad=True)
    for _ in range(6000):
        y = y + 1
    with pytest.raises(RuntimeError, match="more than 5000 nodes"):
        make_dot(y)
    with pytest.raises(ValueError, match=r"saved as .svg, .dot or .gv"):
        make_dot(x * 2).save(tmp_path / "graph.png")
