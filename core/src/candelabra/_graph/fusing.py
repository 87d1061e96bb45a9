"""Group connected nodes that a device can run as one kernel.

A device says which nodes it takes (``admits``). Nodes join greedily, in the order of the graph: a node joins the group
of one of its operands' nodes. A group is legal if no path leads out of it and back into it, since its nodes run at one
moment. :func:`gain` decides whether joining is worth it.

Attribution: groups that grow along edges under a test for cycles are the usual design of fusing compilers, such as
XLA's instruction fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from candelabra._annotations import Final
from candelabra._graph.structure import Graph, Node, Value

MOST_OPERANDS: Final = 24
"""The number of tensors that one kernel reads and writes, at most: each takes registers for its address and strides."""
MOST_NODES: Final = 64
"""The number of nodes in one kernel, at most: longer ones take long to compile and spill registers."""


def values_read(nodes: Iterable[Node]) -> list[Value]:
    """Return the values that nodes use and that none of them computes, in the order of their first use."""
    nodes = list(nodes)
    own = {value for node in nodes for value in node.results}
    return list(dict.fromkeys(value for node in nodes for value in node.operands if value not in own))


def gain(group: list[Node], reads: Iterable[Value], writes: Iterable[Value]) -> int:
    """Return the bytes of memory traffic that running nodes as one kernel saves, or -1 if one kernel should not.

    Apart, every node reads its operands and writes its results; together, they read ``reads`` and write ``writes``. No
    value is computed twice, so recomputation costs nothing here. A kernel of too many operands or nodes runs out of
    registers.
    """
    reads, writes = list(reads), list(writes)
    if len(group) > MOST_NODES or len(reads) + len(writes) > MOST_OPERANDS:
        return -1
    apart = sum(_bytes(value) for node in group for value in (*dict.fromkeys(node.operands), *node.results))
    return apart - sum(map(_bytes, reads)) - sum(map(_bytes, writes))


def _bytes(value: Value) -> int:
    return 0 if value.spec is None else value.spec.nbytes


def fuse(graph: Graph, admits: Callable[[Node], bool], worth: Callable[..., int] = gain) -> Graph:
    """Return the graph with groups of admitted nodes replaced by one node each, whose ``op`` is the group's graph.

    A group's graph has as inputs the values that its nodes read from outside, which are also the node's arguments in
    this order, and as outputs, the node's results, the values that are used outside. ``worth(nodes, reads, writes)``
    returns what a group saves, negative if it should not form; see :func:`gain`. Only connected nodes form a group, and
    one node alone stays as it is.
    """
    users, outputs = graph.users(), set(graph.outputs)
    producers = graph.producers()
    groups = _Groups(graph)

    def escaping(nodes: list[Node]) -> list[Value]:
        inside = set(nodes)
        return [v for n in nodes for v in n.results if v in outputs or any(u not in inside for u in users.get(v, ()))]

    for node in graph.nodes:
        if not admits(node):
            continue
        for value in dict.fromkeys(node.operands):
            above = producers.get(value)
            if above is None or not admits(above) or groups.same(above, node):
                continue
            joined = groups.joined(above, node)
            if worth(joined, values_read(joined), escaping(joined)) >= 0 and groups.can_join(above, node):
                groups.join(above, node)
    return graph.with_nodes(_replaced(groups, escaping))


class _Groups:
    """The partition of the nodes: at first, each node is a group of its own."""

    def __init__(self, graph: Graph) -> None:
        self.before: Final = graph.predecessors()
        self.position: Final = {node: i for i, node in enumerate(graph.nodes)}
        self.group: dict[Node, list[Node]] = {node: [node] for node in graph.nodes}

    def same(self, a: Node, b: Node) -> bool:
        return self.group[a] is self.group[b]

    def joined(self, a: Node, b: Node) -> list[Node]:
        return sorted(self.group[a] + self.group[b], key=self.position.__getitem__)

    def join(self, a: Node, b: Node) -> None:
        members = self.joined(a, b)
        for node in members:
            self.group[node] = members

    def can_join(self, a: Node, b: Node) -> bool:
        """Return whether no path leads from the union of two groups over another node back into it."""
        inside = set(self.joined(a, b))
        floor = self._floor(min(map(self.position.__getitem__, inside)))
        seen: set[Node] = set()
        stack = [n for member in inside for n in self.before[member] if n not in inside]
        while stack:
            node = stack.pop()
            if node in seen or self.position[node] < floor:
                continue
            members = self.group[node]  # all of them run at one moment, so the path continues from each
            seen.update(members)
            for member in members:
                if not inside.isdisjoint(self.before[member]):
                    return False
                stack += self.before[member] - seen
        return True

    def _floor(self, first: int) -> int:
        """Return a position such that nothing before it depends on a node at ``first`` or later, groups considered."""
        spans = {id(g): (self.position[g[-1]], self.position[g[0]]) for g in self.group.values() if len(g) > 1}
        for last, start in sorted(spans.values(), reverse=True):
            if last < first:
                break
            first = min(first, start)
        return first

    def ordered(self) -> list[list[Node]]:
        """Return the groups in an order in which each runs after what it needs."""
        found: list[list[Node]] = []
        placed: set[int] = set()
        for node in self.position:
            stack = [self.group[node]]
            while stack:
                members = stack[-1]
                if id(members) in placed:
                    stack.pop()
                    continue
                needed = [self.group[n] for m in members for n in self.before[m]]
                missing = [g for g in needed if g is not members and id(g) not in placed]
                if missing:
                    stack.append(missing[0])
                    continue
                placed.add(id(stack.pop()))
                found.append(members)
        return found


def _replaced(groups: _Groups, escaping: Callable[[list[Node]], list[Value]]) -> list[Node]:
    """Return the nodes in order, with one node for each group."""
    nodes: list[Node] = []
    for members in groups.ordered():
        if len(members) == 1:
            nodes += members
            continue
        reads, results = values_read(members), escaping(members)
        body = Graph(reads, members, results)
        nodes.append(Node(body, reads, results, where=members[-1].where))
    return nodes


__all__ = ["fuse", "gain", "values_read"]
