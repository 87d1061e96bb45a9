"""Packed operands: what a kernel does to an operand before it computes becomes a node of the graph.

The kernel of a convolution copies the weight into the layout that its loops read. Inside the kernel, that happens at
every call. As a node, it happens once for all calls of a graph that read the same values, and before the graph, once
for each version, if the weight is one that the program does not change.

The device decides: the function that serves an operator may have an attribute ``packing``, which the pass calls with
the node's arguments, a :class:`~candelabra.graph.Spec` in place of each tensor. It returns a :class:`Packing`, or None
if the kernel reads the operand as it is. Packing that nothing shares stays inside the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from candelabra._annotations import Any, Final, NamedTuple, Protocol
from candelabra._graph.structure import FUNCTION, Graph, Memory, Node, Spec, Value, mapped
from candelabra._layout import contiguous_strides
from candelabra._records.record import Operator
from candelabra._records.rules import like_input
from candelabra._tensor import Tensor
from candelabra._versions import state
from candelabra.dtypes import dtype


class PackedLayout(Protocol):
    """A layout of a device, which is hashable. Equal ones give equal elements; the ``repr`` is shown in graphs."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the packed payload, which is contiguous."""
        ...

    @property
    def dtype(self) -> dtype:
        """The dtype of the packed payload."""
        ...


class Packing(NamedTuple):
    """How a kernel reads one of a call's operands.

    ``argument``: the operand's position. ``pack(payload, layout)`` returns the payload in one of the ``layouts``, in
    new memory. ``kernel`` computes what the call's kernel computes; it takes the same arguments, followed by the list
    of the packed payloads. It must not decline the call.
    """

    argument: int
    layouts: tuple[PackedLayout, ...]
    pack: Callable[[Any, Any], Any]
    kernel: Callable[..., Any]


def _packed(input: Tensor, layout: Any) -> Tensor:
    """Return a copy of ``input`` in a layout of its device, which the kernels of that device read."""
    return input.clone()


PACKED: Final[Operator[..., Any]] = Operator(_packed, like_input, name="packed", public=False, out=False)
"""The operator of packing nodes. It stands in graphs only: outside of them no kernel reads its result."""

Occurrence = tuple[Value, int, PackedLayout]
"""A value in a layout, and the number of writes to its memory before: what a packed payload depends on."""


def with_packed_operands(graph: Graph, fixed: Callable[[Value], bool] = lambda value: False) -> Graph:
    """Return the graph with packing nodes for operands that several nodes read in one layout, or that are ``fixed``.

    ``fixed(value)`` returns whether an input mostly has the same elements in the next run. Its packing nodes are
    :attr:`Graph.prepared`: they run before the graph, when the input has changed, and their results are further inputs.
    """
    found = list(_packings(graph))
    uses = Counter(occurrence for _, _, occurrences in found for occurrence in dict.fromkeys(occurrences))
    chosen = {
        node: (packing, occurrences)
        for node, packing, occurrences in found
        if any(uses[each] > 1 or fixed(each[0]) for each in occurrences)
    }
    made: dict[Occurrence, Value] = {}
    nodes: list[Node] = []
    prepared: list[Node] = []
    for node in graph.nodes:
        if node in chosen:
            packing, occurrences = chosen[node]
            for each in occurrences:
                if each not in made:
                    packer = _packing_node(each, packing, node.where)
                    made[each] = packer.results[0]
                    (prepared if fixed(each[0]) else nodes).append(packer)
            given = [made[each] for each in occurrences]
            node = Node(node.op, (*node.args, given), node.results, node.form, packing.kernel, node.where)
        nodes.append(node)
    inputs = [*graph.inputs, *(value for node in prepared for value in node.results)]
    return Graph(inputs, nodes, graph.outputs, graph.captured, [*graph.prepared, *prepared])


def _packings(graph: Graph) -> Iterator[tuple[Node, Packing, list[Occurrence]]]:
    """Yield each node whose kernel packs an operand, with what it packs."""
    writes: Counter[Memory] = Counter()
    for node in graph.nodes:
        packing = _packing_of(node)
        if packing is not None:
            value = node.args[packing.argument]
            yield node, packing, [(value, writes[value.memory], layout) for layout in packing.layouts]
        writes.update(node.written)


def _packing_of(node: Node) -> Packing | None:
    if node.form != FUNCTION or isinstance(node.op, Graph) or packed_operands(node):
        return None
    kernel = getattr(node.kernel, "first", node.kernel)  # of a chain, the kernel that serves first
    asked: Callable[..., Packing | None] | None = getattr(kernel, "packing", None)
    return None if asked is None else asked(*[mapped(argument, lambda value: value.spec) for argument in node.args])


def _packing_node(occurrence: Occurrence, packing: Packing, where: str) -> Node:
    value, _, layout = occurrence
    assert value.spec is not None
    shape = tuple(layout.shape)
    spec = Spec(shape, contiguous_strides(shape), 0, layout.dtype, value.spec.instance)
    return Node(PACKED, (value, layout), (Value(spec),), FUNCTION, packing.pack, where)


def packed_operands(node: Node) -> list[Value]:
    """Return the packed operands of a node: the values after its operator's arguments, as its kernel takes them."""
    if isinstance(node.op, Graph):
        return []
    return [value for values in node.args[len(node.op.schema.parameters) :] for value in values]


class PackedOnce:
    """A prepared node: it packs the payload of a tensor when that has changed, and keeps the result.

    A tensor has changed if its payload or its version is another one. Memory that others can write without a version,
    such as NumPy, is packed at each call.
    """

    __slots__ = ("_kept", "node")

    def __init__(self, node: Node) -> None:
        self.node: Final = node
        self._kept: tuple[Any, ...] = (None, None, None, None)

    def __call__(self, payload: Any, counter: list[int]) -> Any:
        """Return the packed payload. ``counter`` is the version cell of the tensor."""
        before, cell, version, packed = self._kept  # one tuple, since threads may call at the same time
        now = state(counter)
        if before is not payload or cell is not counter or version != now or now is None:
            packed = self._packed(payload)
            self._kept = (None, None, None, None) if now is None else (payload, counter, now, packed)
        return packed

    def _packed(self, payload: Any) -> Any:
        node = self.node
        assert node.kernel is not None
        packed = node.kernel(payload, node.args[1])
        spec = node.results[0].spec
        assert spec is not None
        if spec.instance.capabilities.asynchronous:  # another stream may read it at the next call
            spec.instance.backend.synchronize(spec.instance.index)
        return packed


__all__ = [
    "PACKED", "PackedLayout", "PackedOnce", "Packing", "packed_operands", "with_packed_operands",
]  # fmt: skip
