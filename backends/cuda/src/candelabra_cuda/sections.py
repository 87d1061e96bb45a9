"""Sections of a graph: nodes whose launches CUDA can capture, and nodes that need the host at every call.

A captured launch has the arguments of the call that was captured. So a node runs by itself if it takes numbers that
differ from call to call, such as a learning rate or the position of a random number generator, or if its kernel uses
the host: it reads values, uploads some, belongs to CuPy, or is a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from candelabra.graph import Graph, Memory, Node, Value, runner, values_read

Kernel = Callable[..., Any]
LEAST_LAUNCHES: Final = 4
"""The number of launches from which a section is captured. Fewer are queued as quickly as a graph."""


class Section:
    """Consecutive nodes of a graph. Values are named by their position in the list of all values of a call."""

    def __init__(self, graph: Graph, kernels: Mapping[Node, Kernel], captured: bool) -> None:
        self.graph: Final = graph
        self.captured: Final = captured
        """Whether the launches are captured."""
        self.run: Final = runner(graph, kernels.__getitem__)
        self.reads: Sequence[int] = ()
        self.writes: Sequence[int] = ()
        self.dead: Sequence[int] = ()
        """The values that no later section uses."""
        self.moving: Sequence[int] = ()
        """For a captured section, the positions among ``reads`` of values whose memory differs from call to call."""


def sections_of(
    graph: Graph, host: set[Node], kernels: Mapping[Node, Kernel]
) -> tuple[list[Section], dict[Value, int]]:
    """Return the sections of a graph in order, and the position of each value that a section or an output needs.

    ``host`` are nodes that were seen to use the host.
    """
    bodies = [(_body(nodes, graph), captured) for nodes, captured in _Split(graph).runs(host)]
    places: dict[Value, int] = {value: i for i, value in enumerate(graph.inputs)}
    for body, _ in bodies:
        for value in body.outputs:
            places.setdefault(value, len(places))
    made = [Section(body, kernels, captured) for body, captured in bodies]
    last = {value: section for section in made for value in section.graph.inputs}
    outside = {value.memory for value in graph.inputs}
    made_anew = {value for section in made if not section.captured for value in section.graph.outputs}
    for section in made:
        section.reads = [places[value] for value in section.graph.inputs]
        section.writes = [places[value] for value in section.graph.outputs]
        section.dead = [places[v] for v, user in last.items() if user is section and v not in graph.outputs]
        if section.captured:
            section.moving = [
                i for i, v in enumerate(section.graph.inputs) if v in made_anew and v.memory not in outside
            ]
    return made, places


class _Split:
    """The choice of the nodes that are captured.

    A section gets copies of values that another one computes at a new place in each call. Memory that is written, or
    that several outputs show, must not be copied, so all nodes that use it are of one kind, views included. The memory
    of inputs stays where it is.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes: Final = graph.nodes
        shown = [value.memory for value in dict.fromkeys(graph.outputs)]
        several = {memory for memory in shown if shown.count(memory) > 1}
        self._bound: Final = (graph.written() | several) - {value.memory for value in graph.inputs}
        self._users: Final[dict[Memory, set[Node]]] = {}
        for node in graph.nodes:
            for memory in self._shared(node):
                self._users.setdefault(memory, set()).add(node)

    def _shared(self, node: Node) -> set[Memory]:
        return {value.memory for value in (*node.operands, *node.results)} & self._bound

    def runs(self, host: set[Node]) -> list[tuple[list[Node], bool]]:
        """Return the nodes as lists of consecutive ones, with whether they are captured."""
        numbers = {node for node in self.nodes if any(value.is_number for value in node.operands)}
        alone = self._closed(host | numbers | {node for node in self.nodes if node.is_ordered})
        while True:
            found = self._cut(alone)
            short = [nodes for nodes, captured in found if captured and launches(nodes) < LEAST_LAUNCHES]
            if not short:
                return found
            alone = self._closed(alone.union(*short))

    def _closed(self, alone: set[Node]) -> set[Node]:
        """Return some nodes with all that use bound memory that they use."""
        found, waiting = set(alone), list(alone)
        while waiting:
            for memory in self._shared(waiting.pop()):
                more = self._users[memory] - found
                found |= more
                waiting += more
        return found

    def _cut(self, alone: set[Node]) -> list[tuple[list[Node], bool]]:
        found: list[tuple[list[Node], bool]] = []
        for node in self.nodes:
            captured = node not in alone
            fits = found and (found[-1][1] is captured or (node.is_view and not self._shared(node)))
            if fits:
                found[-1][0].append(node)
            else:
                found.append(([node], captured))
        return found


def launches(nodes: Sequence[Node]) -> int:
    """Return the number of nodes that are no views: views launch nothing."""
    return sum(not node.is_view for node in nodes)


def _body(nodes: Sequence[Node], graph: Graph) -> Graph:
    """Return some nodes as a graph, whose outputs are the values that others use."""
    inside = set(nodes)
    used = {value for node in graph.nodes if node not in inside for value in node.operands} | set(graph.outputs)
    results = [value for node in nodes for value in node.results if value in used]
    return Graph(values_read(nodes), nodes, results)


__all__ = ["Section", "launches", "sections_of"]
