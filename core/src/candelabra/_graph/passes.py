"""Passes: functions from a graph to a graph that computes the same with fewer nodes.

Each respects memory that nodes write: a value whose memory is written is neither shared, nor moved, nor removed.
"""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._graph.structure import Graph, Memory, Node, Value, values_in

PLAIN = (int, float, bool, complex, str, bytes, type(None), slice)


def without_dead_code(graph: Graph) -> Graph:
    """Return the graph without nodes whose results nothing uses. Writes to memory of inputs, or of used values, stay."""
    wanted = set(graph.outputs)
    memories: set[Memory] = {value.memory for value in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        writes = any(memory.external or memory in memories for memory in node.written)
        if writes or any(value in wanted for value in node.results):
            kept.append(node)
            wanted.update(node.operands)
            memories.update(value.memory for value in node.operands)
    return graph.with_nodes(kept[::-1])


def without_duplicates(graph: Graph) -> Graph:
    """Return the graph in which equal calls are one: common subexpressions. Random draws are never equal."""
    written = graph.written()
    outputs = set(graph.outputs)
    first: dict[Any, Node] = {}
    replaced: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = node.replaced(replaced)
        key = _call(node, written)
        same = None if key is None else first.setdefault(key, node)
        if same is None or same is node or outputs.intersection(node.results):
            nodes.append(node)
        else:
            replaced.update(zip(node.results, same.results, strict=True))
    return graph.with_nodes(nodes)


def _call(node: Node, written: set[Memory]) -> Any:
    """Return a key that is equal for equal calls, or None for a call that must stay."""
    if isinstance(node.op, Graph) or node.written or node.op.random or node.op.name == "full":
        return None
    if any(value.memory in written for value in (*node.operands, *node.results)):
        return None
    arguments = _hashable(node.args)
    return None if arguments is None else (node.op.name, arguments)


def _hashable(argument: Any) -> Any:
    """Return an argument as a hashable value that distinguishes types, or None if that is impossible."""
    if isinstance(argument, Value):
        return argument
    if isinstance(argument, (list, tuple)):
        items = tuple(_hashable(item) for item in argument)
        return None if None in items else (type(argument), items)
    if isinstance(argument, slice):
        return "slice", argument.start, argument.stop, argument.step
    if isinstance(argument, float):
        return float, argument.hex()
    if isinstance(argument, PLAIN):
        return type(argument), argument
    return type(argument), id(argument)


def without_copies(graph: Graph) -> Graph:
    """Return the graph without copies of values that nothing uses after the copy.

    While a function is traced its values are referred to, so the engine copies gradients before a tensor keeps them.
    """
    written = graph.written()
    last = {value.memory: i for i, node in enumerate(graph.nodes) for value in node.operands}
    kept = {value.memory for value in graph.outputs}
    size: dict[Memory, int] = {}
    for value in (v for node in graph.nodes for v in node.results):
        size[value.memory] = max(size.get(value.memory, 0), value.spec.nbytes if value.spec else 0)
    replaced: dict[Value, Value] = {}
    nodes: list[Node] = []
    for i, node in enumerate(graph.nodes):
        node = node.replaced(replaced)
        if not isinstance(node.op, Graph) and node.op.name == "clone" and not node.written:
            (source,), (copy,) = values_in(node.args), node.results
            memory = source.memory
            unshared = not memory.external and memory not in kept and last[memory] == i
            untouched = memory not in written and copy.memory not in written
            if unshared and untouched and source.spec == copy.spec and copy.spec.nbytes == size[memory]:
                replaced[copy] = source
                if copy in graph.outputs:
                    kept.add(memory)
                continue
        nodes.append(node)
    return graph.with_nodes(nodes, [replaced.get(value, value) for value in graph.outputs])


def simplified(graph: Graph) -> Graph:
    """Return the graph after all passes. The outputs keep their order."""
    return without_dead_code(without_copies(without_duplicates(graph)))


__all__ = ["simplified", "without_copies", "without_dead_code", "without_duplicates"]
