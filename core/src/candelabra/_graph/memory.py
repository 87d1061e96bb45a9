"""The memory plan of a graph: which results may take the memory of operands that nothing uses after the node.

A device that computes a group of nodes element by element writes such a result in place of the operand. That saves an
allocation, and the memory is in the caches already. The plan is a table, not another graph: whether a kernel can write
in place is the device's to decide.

Memory of inputs and outputs, and of results of opaque functions, is never reused: others refer to it. So are tensors
that a derivative saves, which are outputs, and the constants of a graph, which are inputs. Views have the memory of
what they show, so that the last use of a memory is that of its last view.
"""

from __future__ import annotations

from candelabra._graph.structure import FUNCTION, Graph, Memory, Node, Value
from candelabra._layout import contiguous_strides


def memory_plan(graph: Graph) -> dict[Node, dict[int, int]]:
    """Return, for each group of nodes, the results that may take the memory of an argument, by position.

    The node is the last one that uses the argument's memory, no other operand shows it, and result and argument have
    one spec: they are contiguous, of one shape and dtype. Each argument serves one result.
    """
    last = {value.memory: i for i, node in enumerate(graph.nodes) for value in node.operands}
    bound = {value.memory for value in (*graph.inputs, *graph.outputs)} | graph.written()
    fresh = {
        value
        for node in graph.nodes
        if node.form == FUNCTION and not node.is_view
        for value in node.results
        if value.memory not in bound and not value.memory.external and _is_whole(value)
    }
    plan: dict[Node, dict[int, int]] = {}
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, Graph):
            dying = {v: at for at, v in enumerate(node.args) if v in fresh and last[v.memory] == i}
            found = _placed(node, {v: at for v, at in dying.items() if _is_alone(v, node)})
            if found:
                plan[node] = found
    return plan


def _is_whole(value: Value) -> bool:
    """Return whether a value is a contiguous tensor at the start of its memory, on a device whose memory is written."""
    spec = value.spec
    if spec is None or spec.instance.immutable:
        return False
    return not spec.offset and spec.numel > 0 and spec.strides == contiguous_strides(spec.shape)


def _is_alone(value: Value, node: Node) -> bool:
    """Return whether no other operand of a node shows the memory of a value."""
    memory: Memory = value.memory
    return not any(other.memory is memory for other in node.operands if other is not value)


def _placed(node: Node, dying: dict[Value, int]) -> dict[int, int]:
    """Return the argument whose memory each result takes."""
    found: dict[int, int] = {}
    for position, result in enumerate(node.results):
        donor = next((value for value in dying if value.spec == result.spec), None)
        if donor is not None:
            found[position] = dying.pop(donor)
    return found


__all__ = ["memory_plan"]
