"""Draw the graph as DOT text or as SVG, like torchviz's ``make_dot`` but without the graphviz program.

The layout is a simple form of Sugiyama's: layers by longest path, a few sweeps of the barycentre heuristic to order
each layer, evenly spaced nodes. The same graph always gives the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.node import RELEASED, Leaf, Node

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

LIMIT = 5000
"""The maximum number of nodes: a larger drawing is not readable."""
LEAF, OUTPUT, SAVED, OPERATOR = "lightblue", "darkolivegreen1", "orange", "lightgrey"
_HEX = {LEAF: "#add8e6", OUTPUT: "#caff70", SAVED: "#ffa500", OPERATOR: "#d3d3d3"}
_HIGH, _GAP_X, _GAP_Y, _CHAR = 18, 24, 44, 7.2


class Box(NamedTuple):
    """One box of the drawing."""

    lines: tuple[str, ...]
    colour: str


class Drawing:
    """A drawn graph: ``source`` (DOT), ``svg`` and ``save(path)``. Notebooks display it."""

    def __init__(self, boxes: list[Box], arrows: list[tuple[int, int]]) -> None:
        self.boxes, self.arrows = boxes, arrows

    @property
    def source(self) -> str:
        """Return the graph in the DOT language, for graphviz."""
        lines = [
            "digraph {",
            '    graph [rankdir=TB, size="12,12"]',
            "    node [shape=box, style=filled, fontname=monospace, fontsize=10]",
        ]
        for number, box in enumerate(self.boxes):
            label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
            lines.append(f'    n{number} [label="{label}", fillcolor={box.colour}]')
        lines += [f"    n{a} -> n{b}" for a, b in self.arrows]
        return "\n".join([*lines, "}", ""])

    @property
    def svg(self) -> str:
        """Return the graph as an SVG document."""
        return _svg(self.boxes, self.arrows)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Any) -> str:
        """Write SVG to ``path`` if it ends in ``.svg``, else DOT, and return the path."""
        name = str(path)
        if not name.endswith((".svg", ".dot", ".gv")):
            raise ValueError(f"a drawing is saved as .svg, .dot or .gv, not as {name!r}")
        with open(name, "w", encoding="utf-8") as file:
            file.write(self.svg if name.endswith(".svg") else self.source)
        return name

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.boxes)} boxes>"


def make_dot(
    var: Tensor | tuple[Tensor, ...] | list[Tensor],
    params: Mapping[str, Tensor] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
) -> Drawing:
    """Draw the graph that computed ``var``, one or more tensors. Arrows follow the data; leaves are at the top.

    ``params``: names of leaves, such as ``dict(model.named_parameters())``. ``show_attrs``: show the plain values that
    nodes keep. ``show_saved``: show the tensors that they keep. Raises RuntimeError for a tensor without a graph and
    for a graph of more than 5,000 nodes.
    """
    outputs = tuple(var) if isinstance(var, (tuple, list)) else (var,)
    names = {id(tensor): name for name, tensor in (params or {}).items()}
    roots = []
    for out in outputs:
        node = out._fresh()._node
        if node is None:
            raise RuntimeError("there is no graph to draw: the tensor does not require grad")
        roots.append(node)
    nodes = _collected(roots)
    builder = _Builder(names, show_attrs, show_saved)
    for node in nodes:
        builder.add(node)
    for node in nodes:
        builder.connect(node)
    for out, node in zip(outputs, roots):
        builder.output(out, node)
    return Drawing(builder.boxes, builder.arrows)


def _collected(roots: list[Node]) -> list[Node]:
    """Return all nodes except ports in a fixed order: depth first from the outputs."""
    found: dict[Node, None] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        while node.is_port and node.e0 is not None:
            node = node.e0
        if node in found:
            continue
        found[node] = None
        if len(found) > LIMIT:
            raise RuntimeError(
                f"the graph has more than {LIMIT} nodes, too many to draw: draw a part of it, an output of one "
                "layer for example"
            )
        stack += [e for e in reversed(node.edges()) if e is not None]
    return list(found)


class _Builder:
    def __init__(self, names: dict[int, str], attrs: bool, saved: bool) -> None:
        self.names, self.attrs, self.saved = names, attrs, saved
        self.boxes: list[Box] = []
        self.arrows: list[tuple[int, int]] = []
        self.numbers: dict[Node, int] = {}

    def add(self, node: Node) -> None:
        self.numbers[node] = len(self.boxes)
        if isinstance(node, Leaf):
            tensor = node.variable
            name = self.names.get(id(tensor)) if tensor is not None else None
            self.boxes.append(Box(((name,) if name else ()) + (_size(node.shape),), LEAF))
            return
        lines = [node.name()]
        if self.attrs:
            lines += [f"{slot[2:]}: {_short(getattr(node, slot))}" for slot in _slots(node, "a_")]
        self.boxes.append(Box(tuple(lines), OPERATOR))
        if self.saved:
            for slot in (*_slots(node, "s_"), *_slots(node, "p_")):
                value = getattr(node, slot)
                payload = getattr(value, "_payload", value)
                if value is not RELEASED and hasattr(payload, "shape"):
                    self.arrows.append((len(self.boxes), self.numbers[node]))
                    self.boxes.append(Box((f"saved {slot[2:]}", _size(tuple(payload.shape))), SAVED))

    def connect(self, node: Node) -> None:
        for edge in node.edges():
            while edge is not None and edge.is_port:
                edge = edge.e0
            if edge is not None:
                self.arrows.append((self.numbers[edge], self.numbers[node]))

    def output(self, tensor: Tensor, node: Node) -> None:
        while node.is_port and node.e0 is not None:
            node = node.e0
        if not isinstance(node, Leaf):
            name = self.names.get(id(tensor))
            self.arrows.append((self.numbers[node], len(self.boxes)))
            self.boxes.append(Box(((name,) if name else ()) + (_size(tuple(tensor.shape)),), OUTPUT))


def _slots(node: Node, prefix: str) -> list[str]:
    own = type(node).__dict__.get("__slots__", ())
    return [s for s in own if s.startswith(prefix) and hasattr(node, s)]


def _size(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(s) for s in shape) + ")"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


# -- layout -----------------------------------------------------------------------------------------------------------
def _layers(count: int, arrows: list[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: the length of the longest path that ends in it.

    A source is in the layer directly above its first successor.
    """
    into: list[int] = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in arrows:
        into[b] += 1
        after[a].append(b)
    layer, ready, order = [0] * count, [i for i in range(count) if not into[i]], []
    left = list(into)
    while ready:
        a = ready.pop()
        order.append(a)
        for b in after[a]:
            layer[b] = max(layer[b], layer[a] + 1)
            left[b] -= 1
            if not left[b]:
                ready.append(b)
    for a in order:
        if not into[a] and after[a]:
            layer[a] = min(layer[b] for b in after[a]) - 1
    return layer


def _ordered(layer: list[int], arrows: list[tuple[int, int]]) -> list[list[int]]:
    """Return the rows of boxes, each row sorted by the mean position of the boxes' neighbours."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
    for number, depth in enumerate(layer):
        rows[depth].append(number)
    near: list[list[int]] = [[] for _ in layer]
    for a, b in arrows:
        near[a].append(b)
        near[b].append(a)
    place = {number: i - len(row) / 2 for row in rows for i, number in enumerate(row)}
    for sweep in range(6):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            row.sort(key=lambda n: (sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n], n))
            place.update({number: i - len(row) / 2 for i, number in enumerate(row)})
    return rows


def _svg(boxes: list[Box], arrows: list[tuple[int, int]]) -> str:
    rows = _ordered(_layers(len(boxes), arrows), arrows)
    wide = [max(len(line) for line in box.lines) * _CHAR + 16 for box in boxes]
    high = [len(box.lines) * _HIGH + 8 for box in boxes]
    total = max(sum(wide[n] for n in row) + _GAP_X * (len(row) + 1) for row in rows)
    x, y, top = [0.0] * len(boxes), [0.0] * len(boxes), float(_GAP_X)
    for row in rows:
        left = (total - sum(wide[n] for n in row) - _GAP_X * (len(row) - 1)) / 2
        for n in row:
            x[n], y[n] = left, top
            left += wide[n] + _GAP_X
        top += max((high[n] for n in row), default=0) + _GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{top:.0f}" '
        f'viewBox="0 0 {total:.0f} {top:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L10,5 L0,10 z"/></marker></defs>',
    ]
    for a, b in arrows:
        parts.append(
            f'<line x1="{x[a] + wide[a] / 2:.1f}" y1="{y[a] + high[a]:.1f}" x2="{x[b] + wide[b] / 2:.1f}" '
            f'y2="{y[b]:.1f}" stroke="#444" marker-end="url(#tip)"/>'
        )
    for n, box in enumerate(boxes):
        parts.append(
            f'<rect x="{x[n]:.1f}" y="{y[n]:.1f}" width="{wide[n]:.1f}" height="{high[n]}" rx="3" '
            f'fill="{_HEX[box.colour]}" stroke="#333"/>'
        )
        for i, line in enumerate(box.lines):
            parts.append(
                f'<text x="{x[n] + wide[n] / 2:.1f}" y="{y[n] + 17 + i * _HIGH:.1f}" text-anchor="middle">'
                f"{escape(line)}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


__all__ = ["Drawing", "make_dot"]
