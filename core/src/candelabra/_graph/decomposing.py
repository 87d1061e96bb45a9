"""Decomposition: the operators of its body in place of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from candelabra._annotations import Any
from candelabra._device import device
from candelabra._dispatch.resolve import by_position
from candelabra._graph.structure import FUNCTION, Graph, Memory, Node, Spec, Value, mapped, values_in
from candelabra._graph.tracing import GraphBreak, GraphTracer, tracing
from candelabra._operators.creation.uninitialized import empty_strided
from candelabra._tensor import Tensor


def decomposed(graph: Graph, admits: Callable[[Node], bool]) -> Graph:
    """Return the graph in which composite nodes that ``admits`` returns True for are the operators of their bodies.

    So a compiler needs kernels for fewer operators. Bodies are traced on the device ``meta``, where nothing is
    computed; the nodes of a body are decomposed in turn. A node without a body stays, and so does one whose body draws
    random numbers, writes, reads values, creates tensors from nothing, or returns other strides.
    """
    return graph.with_nodes(chain.from_iterable(_decomposed(node, admits) for node in graph.nodes))


def _decomposed(node: Node, admits: Callable[[Node], bool]) -> Iterator[Node]:
    nodes = _body_nodes(node) if admits(node) else None
    if nodes is None:
        yield node
    else:
        for part in nodes:
            yield from _decomposed(part, admits)


def _body_nodes(node: Node) -> list[Node] | None:
    """Return the nodes of the body of a node's operator, with its arguments and results, or None if they cannot
    replace it.
    """
    if isinstance(node.op, Graph) or node.form != FUNCTION or node.op.body is None or node.is_view or node.is_ordered:
        return None
    traced = _traced(node, by_position(node.op, node.op.body))
    if traced is None:
        return None
    body, operands = traced
    if body.captured or any(part.form != FUNCTION or not part.operands for part in body.nodes):
        return None
    given = dict(zip(body.inputs, operands, strict=True))
    results = dict(zip(body.outputs, node.results, strict=True))
    if len(results) != len(node.results) or any(_differ(v, r) for v, r in results.items()):
        return None
    memories = {inner.memory: outer.memory for inner, outer in given.items()}
    if any(value.memory in memories for value in results):  # an operand itself, or a view of one
        return None
    memories |= {inner.memory: outer.memory for inner, outer in results.items()}
    if any(memories[value.memory] is not result.memory for value, result in results.items()):
        return None
    values = {**given, **results}
    offsets = {value.memory: outer.spec.offset for value, outer in given.items() if outer.spec is not None}
    [instance] = {outer.spec.instance for outer in operands if outer.spec is not None}

    def outside(value: Value) -> Value:
        """Return the value of the graph that stands for one of the body."""
        if value not in values and value.spec is not None:
            offset = value.spec.offset + offsets.get(value.memory, 0)
            memory = memories.setdefault(value.memory, Memory())
            values[value] = Value(value.spec._replace(instance=instance, offset=offset), memory)
        return values[value]

    return [
        Node(part.op, [mapped(a, outside) for a in part.args], list(map(outside, part.results)), where=node.where)
        for part in body.nodes
    ]


def _traced(node: Node, run: Callable[..., Any]) -> tuple[Graph, list[Value]] | None:
    """Return the graph of a body for tensors on ``meta``, and the values that its inputs stand for; None if the body
    is no graph, or the operands are not on one device.
    """
    operands = list(dict.fromkeys(node.operands))
    specs = [value.spec for value in operands if value.spec is not None]
    if len(specs) != len(operands) or len({spec.instance for spec in specs}) != 1:
        return None
    tensors = dict(zip(operands, map(_on_meta, specs), strict=True))
    tracer = GraphTracer(strict=True)
    try:
        with tracing(tracer):
            inputs = [tracer.value_of(tensor) for tensor in tensors.values()]
            out = run(*[_with_tensors(argument, tensors) for argument in node.args])
            found = [tracer.value_of(tensor) for tensor in (out if isinstance(out, tuple) else (out,))]
    except GraphBreak:
        return None
    if tracer.draws:
        return None
    return tracer.graph([v for v in inputs if v is not None], [v for v in found if v is not None]), operands


def _on_meta(spec: Spec) -> Tensor:
    return empty_strided(spec.shape, spec.strides, dtype=spec.dtype, device=device("meta"))


def _with_tensors(argument: Any, tensors: dict[Value, Tensor]) -> Any:
    """Return an argument with tensors in place of values."""
    if isinstance(argument, Value):
        return tensors[argument]
    if isinstance(argument, (list, tuple)) and any(True for _ in values_in(argument)):
        return [_with_tensors(item, tensors) for item in argument]
    return argument


def _differ(value: Value, result: Value) -> bool:
    """Return whether a result of the body is not laid out like that of the node."""
    if value.spec is None or result.spec is None:
        return True
    return value.spec[:4] != result.spec[:4]


__all__ = ["decomposed"]
