"""Find calls that have the form of a pattern, and replace them."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, NamedTuple
from candelabra.fx.graph import Graph
from candelabra.fx.node import Node
from candelabra.fx.proxy import Tracer


class Match(NamedTuple):
    """One place where a pattern was found: the node of its result, and the nodes of the graph for the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Any]


def matches(graph: Graph, pattern: Graph, same: Callable[[Any, Any], bool] | None = None) -> list[Match]:
    """Return where a pattern with one result occurs. Occurrences do not overlap, and nothing outside uses their inner
    nodes. ``same(a, b)`` decides whether two arguments that are no nodes are equal; by default ``==``.
    """
    returned = pattern.output_node().args[0]
    expected = returned[0] if isinstance(returned, (tuple, list)) and len(returned) == 1 else returned
    if not isinstance(expected, Node):
        raise ValueError("replace_pattern(): the pattern must return one tensor")
    found: list[Match] = []
    taken: set[Node] = set()
    for node in reversed(graph.nodes):
        match = _Matcher(pattern, same or _equal)
        if not match.node(expected, node):
            continue
        inner = {actual for pattern_node, actual in match.nodes.items() if pattern_node.op not in ("placeholder",)}
        if inner & taken or any(set(n.users) - inner for n in inner if n is not node):
            continue
        taken |= inner
        found.append(Match(node, match.nodes))
    return found[::-1]


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


class _Matcher:
    """One comparison of a pattern with the nodes that lead to one node."""

    def __init__(self, pattern: Graph, same: Callable[[Any, Any], bool]) -> None:
        self.same = same
        self.nodes: dict[Node, Any] = {}

    def node(self, expected: Node, actual: Any) -> bool:
        if expected in self.nodes:
            return self.nodes[expected] is actual
        if expected.op == "placeholder":
            self.nodes[expected] = actual
            return True
        if not isinstance(actual, Node) or expected.op != actual.op or expected.target != actual.target:
            return False
        self.nodes[expected] = actual
        return self.arguments(expected.args, actual.args) and self.arguments(expected.kwargs, actual.kwargs)

    def arguments(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, Node):
            return self.node(expected, actual)
        if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)) and _has_nodes(expected):
            return len(expected) == len(actual) and all(map(self.arguments, expected, actual))
        if isinstance(expected, dict) and isinstance(actual, dict):
            return expected.keys() == actual.keys() and all(self.arguments(expected[k], actual[k]) for k in expected)
        if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)) and len(expected) == len(actual):
            return all(map(self.arguments, expected, actual))
        return not isinstance(actual, Node) and self.same(expected, actual)


def _has_nodes(argument: Any) -> bool:
    if isinstance(argument, (tuple, list)):
        return any(map(_has_nodes, argument))
    return isinstance(argument, Node)


def splice(graph: Graph, match: Match, pattern: Graph, replacement: Graph) -> Node:
    """Replace one match by the nodes of a replacement, whose arguments stand for those of the pattern. Return the node
    of its result. The nodes of the match that nothing uses any more are removed.
    """
    expected = [match.nodes_map.get(node) for node in pattern.nodes if node.op == "placeholder"]
    given = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(expected) != len(given):
        raise ValueError(
            f"replace_pattern(): the pattern has {len(expected)} arguments and the replacement {len(given)}"
        )
    values: dict[Node, Any] = dict(zip(given, expected, strict=True))
    with graph.inserting_before(match.anchor):
        result = graph.graph_copy(replacement, values)
    result = result[0] if isinstance(result, (tuple, list)) and len(result) == 1 else result
    match.anchor.replace_all_uses_with(result)
    for node in reversed(graph.nodes):
        if node in match.nodes_map.values() and not node.users and node.op not in ("placeholder", "output"):
            graph.erase_node(node)
    return result  # type: ignore[no-any-return]


def replace_pattern(gm: Any, pattern: Any, replacement: Any) -> list[Match]:
    """Replace the calls in a GraphModule that have the form of the function ``pattern`` by those of ``replacement``.

    Both take the same tensors and return one; ``symbolic_trace`` makes their graphs, unless they are GraphModules.
    Returns the places.
    """
    pattern, replacement = (
        each.graph if hasattr(each, "graph") else Tracer().trace(each) for each in (pattern, replacement)
    )
    found = matches(gm.graph, pattern)
    replaced: dict[Any, Node] = {}  # a result that was replaced may be an argument of a later place
    for match in found:
        for node, actual in match.nodes_map.items():
            match.nodes_map[node] = replaced.get(actual, actual) if isinstance(actual, Node) else actual
        replaced[match.anchor] = splice(gm.graph, match, pattern, replacement)
    gm.recompile()
    return found


__all__ = ["Match", "matches", "replace_pattern", "splice"]


def __dir__() -> list[str]:
    return sorted(__all__)
