"""Compile a graph for a device of C-like kernels: groups of nodes become fused kernels, the core runs the others.

A fused kernel has a schedule for the strides of its arrays, and is called on strided arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph, Node, default_kernel, fuse, gain, memory_plan, runner, values_read
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.engine import Engine
from candelabra_clike.fusion.anchors import draws, row_node
from candelabra_clike.fusion.lowering import anchors_in, is_fusible, lowered
from candelabra_clike.fusion.products import convolution_node, product_node
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule, Launches, NotContiguous

KernelOf = Callable[[Node], Callable[..., Any] | None]
LEAST_IN_PLACE = 1 << 16
"""The size of a result in bytes from which a kernel of its own, which writes in place, is worth compiling."""


def fused(graph: Graph, serial: bool = True, multiplies: bool = True) -> Graph:
    """Return the graph with groups of nodes that fused kernels compute. Row programs fuse on serial devices; matrix
    products and convolutions where ``multiplies`` says that kernels in C compute them.
    """
    admitted: dict[Node, bool] = {}

    def admits(node: Node) -> bool:
        if node not in admitted:
            declined = bool(not serial and row_node(node)) or (
                not multiplies and (product_node(node) or convolution_node(node))
            )
            admitted[node] = not declined and is_fusible(node)
        return admitted[node]

    return in_place(fuse(graph, admits, partial(worth, serial=serial)), admits)


def in_place(graph: Graph, admits: Callable[[Node], bool]) -> Graph:
    """Return the graph with groups of one node for elementwise nodes that can write in place of a large operand.

    Kernels of groups follow the memory plan, those of single operators always allocate.
    """
    alone = {}
    for node in graph.nodes:
        large = [v for v in node.results if v.spec is not None and v.spec.nbytes >= LEAST_IN_PLACE]
        if large and not isinstance(node.op, Graph) and admits(node) and _is_elementwise(node):
            reads = values_read([node])
            alone[node] = Node(Graph(reads, [node], node.results), reads, node.results, where=node.where)
    plan = memory_plan(graph.with_nodes(alone.get(node, node) for node in graph.nodes))
    found = {node: group for node, group in alone.items() if group in plan}
    return graph.with_nodes(found.get(node, node) for node in graph.nodes)


def _is_elementwise(node: Node) -> bool:
    assert not isinstance(node.op, Graph)
    return not (node.is_view or node.op.random or anchors_in([node]))


def worth(nodes: list[Node], reads: Iterable[Tensor], writes: Iterable[Tensor], serial: bool = True) -> int:
    """Return the bytes that a group saves, or -1 if one loop nest cannot compute it.

    At most one node is a reduction, of elements that the others compute. All results of the others have one shape,
    since each is computed once per element. A single element, such as the gradient of a loss, is computed again for
    every element if nothing else uses it. A view is no new memory, so nothing else may use
    it. Random numbers are drawn in C order, so all arrays of their kernel are contiguous.
    """
    reads, writes = list(reads), list(writes)
    anchors = anchors_in(nodes)
    if anchors:
        alone = len(anchors) == 1 and anchors[0].suits(nodes, reads, writes, serial)
        return gain(nodes, reads, writes) if alone and _views(nodes).isdisjoint(writes) else -1
    shapes = {v.spec.shape for node in nodes for v in node.results if v.spec is not None and v.spec.numel != 1}
    if len(shapes) > 1:
        return -1
    written = {v.spec.shape for v in writes if v.spec is not None}
    if len(written) > 1 or (shapes and written != shapes) or not _views(nodes).isdisjoint(writes):
        return -1
    if draws(nodes):
        arrays = [v.spec for v in (*reads, *writes) if v.spec is not None]
        if any({spec.shape} != written or not is_contiguous_layout(spec.shape, spec.strides) for spec in arrays):
            return -1
    return gain(nodes, reads, writes)


def _views(nodes: list[Node]) -> set[Tensor]:
    return {v for node in nodes if node.is_view for v in node.results}


def planned(engine: Engine, graph: Graph) -> tuple[Graph, KernelOf]:
    """Return the graph with the groups that a device fuses, and the function that returns the kernel of a group."""
    grouped = fused(graph, engine.traits.serial, engine.traits.multiplies)
    plan = memory_plan(grouped)

    def kernel_of(node: Node) -> Callable[..., Any] | None:
        if not isinstance(node.op, Graph):
            return None
        kernel = FusedKernel(node.op, engine, plan.get(node))
        kernel.traced()  # compiles it
        return on_strided_arrays(kernel, default_kernel(node))

    return grouped, kernel_of


def compiled(engine: Engine, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a graph for a device, or None if no kernel of it can be fused."""
    grouped, kernel_of = planned(engine, graph)
    return runner(grouped, kernel_of) if any(isinstance(node.op, Graph) for node in grouped.nodes) else None


class FusedKernel:
    """The kernel of a group of nodes. A call takes what the group's graph takes, in order.

    ``into``: the outputs that are written in place of an argument, by position, see
    :func:`~candelabra.graph.memory_plan`. A kernel that reads an element after it has written others ignores it.
    """

    def __init__(self, group: Graph, engine: Engine, into: Mapping[int, int] | None = None) -> None:
        self.engine = engine
        self.group = group
        self.name, self.body, self.shape, self.inputs, self.scalars, self.anchor = lowered(group)
        self._launches = Launches(self.body) if self.anchor is None else None
        self.in_c_order = self.anchor is None and bool(self.body.draws)
        self.into = {} if into is None or self.anchor is not None or self.in_c_order else dict(into)
        self.outputs = [v.spec for v in group.outputs if v.spec is not None]
        self.size = prod(self.shape)
        self.arrays = [i for i, v in enumerate(group.inputs) if v.spec is not None]
        """The positions of arrays among the arguments."""
        self._position = {v: i for i, v in enumerate(group.inputs)}
        self._schedules: dict[Any, ElementwiseSchedule] = {}

    def traced(self) -> ElementwiseSchedule | None:
        """Return the schedule for the strides that the graph was traced with, None if there is no element."""
        return self.schedule([(v.spec.shape, v.spec.strides) for v in self.inputs if v.spec is not None])

    def schedule(self, layouts: Sequence[tuple[Shape, Shape]], wide: bool = False) -> ElementwiseSchedule | None:
        """Return the launch for arrays of these shapes and strides, None if there is no element."""
        key = (*layouts, wide)
        found = self._schedules.get(key)
        if found is None and self.size:
            found = self._planned(layouts, wide)
            self._schedules[key] = found
        return found

    def _planned(self, layouts: Sequence[tuple[Shape, Shape]], wide: bool) -> ElementwiseSchedule:
        if self.anchor is not None:
            return self.anchor.schedule(self.engine, self.body, self.group.outputs, layouts, wide)
        assert self._launches is not None
        rows = [broadcast_layout(shape, strides, self.shape) for shape, strides in layouts]
        written = [spec.strides for spec in self.outputs]
        furthest = max([extent(s, r) for s, r in (*layouts, *[(self.shape, row) for row in written])], default=0)
        wide = wide or max(furthest, self.size) >= WIDE
        return self._launches.schedule(self.engine, self.shape, (*written, *rows), not self.into, wide, furthest)

    def numbers(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the kernel's arguments for the numbers of a call."""
        values: list[Any] = []
        for source, convert in self.scalars:
            values += convert(arguments[self._position[source]] if isinstance(source, Tensor) else source)
        return values

    def constant_numbers(self) -> tuple[Any, ...] | None:
        """Return the kernel's arguments for its numbers if none of them is an argument of the call."""
        if any(isinstance(source, Tensor) for source, _ in self.scalars):
            return None
        return tuple(self.numbers(()))


def on_strided_arrays(kernel: FusedKernel, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that calls a fused kernel on strided arrays. ``own`` serves those that the kernel cannot."""
    engine, places, single = kernel.engine, kernel.arrays, len(kernel.outputs) == 1
    new = [
        (s.shape, s.strides, s.dtype, s.numel, is_contiguous_layout(s.shape, s.strides), s.nbytes or 1)
        for s in kernel.outputs
    ]
    constant, taken = kernel.constant_numbers(), kernel.into

    def call(*arguments: Any) -> Any:
        arrays = [arguments[i] for i in places]
        layouts = [(a.shape, a.strides) for a in arrays]
        if kernel.in_c_order and any(a.shape != kernel.shape or not a.contiguous for a in arrays):
            return own(*arguments)
        outputs = [
            arguments[taken[i]]
            if i in taken and arguments[taken[i]].contiguous
            else StridedArray(engine, engine.allocate(nbytes), shape, strides, 0, d, size, contiguous)
            for i, (shape, strides, d, size, contiguous, nbytes) in enumerate(new)
        ]
        try:
            plan = kernel.schedule(layouts)
        except NotContiguous:
            return own(*arguments)
        if plan is not None:
            if plan.max_offset != sys.maxsize and max([a.offset for a in arrays], default=0) > plan.max_offset:
                plan = kernel.schedule(layouts, wide=True)
                assert plan is not None
            placed = (*outputs, *arrays)
            plan.launch(
                plan.items, *[a.buffer for a in placed], *[a.offset for a in placed], *plan.numbers,
                *(kernel.numbers(arguments) if constant is None else constant),
            )  # fmt: skip
        return outputs[0] if single else tuple(outputs)

    return call
