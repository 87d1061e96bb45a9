"""Passes: functions from a graph to a graph that computes the same with fewer nodes.

Each respects memory that nodes write: a value whose memory is written is neither shared, nor moved, nor removed.
Ordered nodes stay as they are.
"""

from __future__ import annotations

from candelabra._annotations import Any, Final
from candelabra._graph.joining import with_joined_slices
from candelabra._graph.running import default_kernel
from candelabra._graph.structure import Graph, Memory, Node, Value, mapped, values_in
from candelabra._tensor import wrap

LARGEST_CONSTANT: Final = 1 << 20
"""The size of a constant in bytes, at most: larger ones are cheaper to compute than to keep."""
PLAIN: Final = (int, float, bool, complex, str, bytes, type(None), slice)


def without_dead_code(graph: Graph) -> Graph:
    """Return the graph without nodes whose results nothing uses. Writes to memory of inputs or of used values stay."""
    wanted = set(graph.outputs)
    memories: set[Memory] = {value.memory for value in (*graph.outputs, *graph.inputs)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        writes = any(memory in memories for memory in node.written)
        checks = not isinstance(node.op, Graph) and node.op.data_dependent  # it may raise an error
        if writes or checks or node.is_ordered or any(value in wanted for value in node.results):
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
    if isinstance(node.op, Graph) or node.written or node.is_ordered:
        return None
    if node.op.random or node.op.name == "full":
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
    kept = {value.memory for value in (*graph.outputs, *graph.inputs)}
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
            whole = copy.spec is not None and copy.spec.nbytes == size.get(memory)
            if unshared and untouched and source.spec == copy.spec and whole:
                replaced[copy] = source
                if copy in graph.outputs:
                    kept.add(memory)
                continue
        nodes.append(node)
    return graph.with_nodes(nodes, [replaced.get(value, value) for value in graph.outputs])


def folded(graph: Graph) -> Graph:
    """Return the graph with constants in place of what nodes compute from nothing: captured tensors, computed now.

    Constants that are returned, or whose memory is written, are computed at each run.
    """
    written, returned = graph.written(), {value.memory for value in graph.outputs}
    constants: dict[Value, Any] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = node.operands
        fixed = not (node.written or isinstance(node.op, Graph) or node.op.random or node.is_ordered)
        fixed = fixed and all(value in constants for value in operands) and node.kernel is not None
        if fixed and not any(_is_bound(value, written, returned) for value in node.results):
            (value,) = node.results
            constants[value] = default_kernel(node)(*[mapped(a, constants.__getitem__) for a in node.args])
        else:
            nodes.append(node)
    used = dict.fromkeys(value for node in nodes for value in node.operands if value in constants)
    tensors = {v: wrap(constants[v], v.spec.instance.keys_for(v.spec.dtype)) for v in used if v.spec is not None}
    return Graph([*graph.inputs, *tensors], nodes, graph.outputs, {**graph.captured, **tensors}, graph.prepared)


def _is_bound(value: Value, written: set[Memory], returned: set[Memory]) -> bool:
    large = value.spec is None or value.spec.nbytes > LARGEST_CONSTANT
    return large or value.memory in written or value.memory in returned or value.memory.external


def simplified(graph: Graph) -> Graph:
    """Return the graph after all passes. The outputs keep their order; constants are added to the inputs."""
    return folded(without_dead_code(without_copies(with_joined_slices(without_duplicates(graph)))))


__all__ = ["folded", "simplified", "without_copies", "without_dead_code", "without_duplicates"]
