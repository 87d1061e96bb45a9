"""Draw a graph of operators, as DOT text or as SVG."""

from __future__ import annotations

from candelabra._autograd.drawing import LEAF, LIMIT, OPERATOR, OUTPUT, SAVED, Box, Drawing
from candelabra._graph.structure import Graph, Node, Value

LONGEST_GROUP = 12
"""The number of operators of a group that are named."""


def drawn(graph: Graph) -> Drawing:
    """Draw a graph: its inputs, captured tensors, nodes and outputs. Arrows follow the data.

    A group of nodes that run as one kernel is one box. Raises RuntimeError for more than 5,000 nodes.
    """
    if len(graph) > LIMIT:
        raise RuntimeError(f"the graph has more than {LIMIT} nodes, too many to draw: trace a part of the function")
    names = graph.names()
    boxes: list[Box] = []
    place: dict[Value, int] = {}
    arrows: dict[tuple[int, int], None] = {}
    once = {value for node in graph.prepared for value in node.results}
    for value in graph.inputs:
        if value not in once:
            place[value] = len(boxes)
            boxes.append(Box(_lines(value, names[value]), SAVED if value in graph.captured else LEAF))
    for node in (*graph.prepared, *graph.nodes):
        arrows.update(dict.fromkeys((place[value], len(boxes)) for value in node.operands))
        place.update(dict.fromkeys(node.results, len(boxes)))
        boxes.append(Box((*_title(node), *[str(value.spec) for value in node.results]), OPERATOR))
    for value in graph.outputs:
        arrows[place[value], len(boxes)] = None
        boxes.append(Box(_lines(value, names[value]), OUTPUT))
    return Drawing(boxes, list(arrows))


def _lines(value: Value, name: str) -> tuple[str, ...]:
    return name, str(value.spec or "number")


def _title(node: Node) -> tuple[str, ...]:
    if not isinstance(node.op, Graph):
        return (node.name,)
    members = [member.name for member in node.op.nodes]
    more = (f"and {len(members) - LONGEST_GROUP} more",) if len(members) > LONGEST_GROUP else ()
    return (*members[:LONGEST_GROUP], *more)


__all__ = ["drawn"]
