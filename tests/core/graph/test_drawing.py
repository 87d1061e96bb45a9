"""Drawings of graphs."""

from __future__ import annotations

from xml.etree import ElementTree

import candelabra as cd
import pytest
from candelabra._graph import drawing
from candelabra.graph import Graph, fuse, trace


def example() -> Graph:
    """Return a graph with an argument, a captured tensor and two outputs."""
    w = cd.ones(2)
    return trace(lambda x: (x * w, (x * x).exp()), cd.ones(2))


def test_boxes_and_arrows() -> None:
    """Inputs, nodes and outputs are boxes; a value that is used twice is one arrow."""
    drawn = example().draw()
    assert [box.lines[0] for box in drawn.boxes] == ["a0", "c0", "mul", "mul", "exp", "v0", "v2"]
    assert drawn.arrows == [(0, 2), (1, 2), (0, 3), (3, 4), (2, 5), (4, 6)]
    assert ElementTree.fromstring(drawn.svg).tag.endswith("svg")
    assert 'label="exp\\nfloat32[2]"' in drawn.source


def test_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is one box that names its operators, the first ones if there are many."""
    fused = fuse(example(), lambda node: True)
    assert ("mul", "exp", "float32[2]") in [box.lines for box in fused.draw().boxes]
    monkeypatch.setattr(drawing, "LONGEST_GROUP", 1)
    assert ("mul", "and 1 more", "float32[2]") in [box.lines for box in fused.draw().boxes]


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that is too large to read is an error."""
    monkeypatch.setattr(drawing, "LIMIT", 2)
    with pytest.raises(RuntimeError, match="the graph has more than 2 nodes, too many to draw"):
        example().draw()
