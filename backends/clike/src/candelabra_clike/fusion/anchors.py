"""Anchors of groups: reductions whose elements are computed by pointwise nodes, and row programs, such as a softmax,
with pointwise nodes before and after them.

An *anchor* is the node of a group whose kernel the others join. The classes of anchors have two methods.
``suits(nodes, reads, writes, serial)`` returns whether one kernel should compute the nodes of a group.
``schedule(engine, body, outputs, layouts, wide)`` returns the launch of the group for arrays of certain layouts:
``body`` are the lowered nodes, ``outputs`` are the outputs of the group, and ``layouts`` are the shapes and strides of
its inputs.

The loop nest of the pointwise nodes of a reduction is the *producer* of
:mod:`candelabra_clike.templates.reductions.source`: its first value is the element that is reduced, and its other
values are results of the group. The partition of the work is that of the reduction alone, so that a result has the same
bits, unless an operand of the pointwise nodes is broadcast and their dims collapse to fewer than the reduction's.

Nodes that need the output of a row program come after it, all others before. What one of the three loops over a row
computes and another one reads is a strip in private memory (:mod:`candelabra_clike.templates.rows.fused`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import FLOATING
from candelabra.graph import FUNCTION, Graph, Node, Spec
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, extent
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.normalization import BACKWARD, NORMALIZE
from candelabra_clike.kernels.reductions import reduction_for
from candelabra_clike.kernels.softmax import ALONG
from candelabra_clike.layouts import WIDE, broadcast_layout, collapsed
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule
from candelabra_clike.templates.elementwise.loops import LoopNest, stride_kind
from candelabra_clike.templates.reduction_dims import reduction_dims
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.templates.rows.fused import FusedRow, FusedRowSourceBuilder
from candelabra_clike.templates.rows.program import RowProgram
from candelabra_clike.templates.rows.rows import GRAIN
from candelabra_clike.types import CTYPES

Nodes = Sequence[Node]
Tensors = Sequence[Tensor]
Layouts = Sequence[tuple[Shape, Shape]]


def draws(nodes: Nodes) -> bool:
    """Return whether a node draws random numbers."""
    return any(not isinstance(node.op, Graph) and node.op.random for node in nodes)


SHORT = 16
"""Rows of fewer elements are reduced by a kernel of their own: a strip of them costs more than it saves."""
NARROW = 64
"""Fewer columns are, too."""


class ReductionNode(NamedTuple):
    """A node that reduces ``element`` over ``dims`` (None: all) to ``result``."""

    node: Node
    reduction: Reduction
    element: Tensor
    dims: Shape | None
    result: Tensor

    @property
    def spec(self) -> Spec:
        """The elements, over which the pointwise nodes run."""
        assert self.element.spec is not None
        return self.element.spec

    def suits(self, nodes: Nodes, reads: Tensors, writes: Tensors, serial: bool) -> bool:
        """Return whether one kernel should compute a reduction and pointwise nodes.

        The pointwise nodes have the shape of the reduced elements and do not need the result. Rows are long enough for
        a strip. Sums of columns fuse on devices of lanes only: a processor reduces blocks of columns, and computing the
        elements of a block, of which each row is in another page of memory, takes longer than computing all in order.
        """
        spec, result = self.spec, self.result
        if draws(nodes) or result not in writes or any(result in node.operands for node in nodes):
            return False
        if not any(self.element in node.results for node in nodes):
            return False
        others = [v.spec for node in nodes for v in node.results if v is not result and v.spec is not None]
        if any(other.shape != spec.shape and other.numel != 1 for other in others):
            return False
        if any(v.spec is not None and v.spec.shape != spec.shape for v in writes if v is not result):
            return False
        rows = tuple([broadcast_layout(v.spec.shape, v.spec.strides, spec.shape) for v in reads if v.spec is not None])
        loop_dims = reduction_dims(spec.shape, spec.strides, self.dims, others=rows)
        if loop_dims.reduced_strides[-1] != 1:
            return not serial and loop_dims.kept[-1] >= NARROW
        return loop_dims.reduced[-1] >= SHORT

    def schedule(
        self, engine: Engine, producer: LoopNest, outputs: Tensors, layouts: Layouts, wide: bool
    ) -> ElementwiseSchedule:
        """Return the launch of a fused reduction. ``producer`` computes the elements."""
        spec = self.spec
        written = [v.spec.strides for v in outputs if v is not self.result and v.spec is not None]
        rows = (*written, *[broadcast_layout(shape, strides, spec.shape) for shape, strides in layouts])
        furthest = max([extent(spec.shape, row) for row in rows], default=0)
        wide = wide or max(furthest, spec.numel) >= WIDE
        loop_dims = reduction_dims(spec.shape, spec.strides, self.dims, others=rows)
        first, rest, size = self.reduction.launches(engine, producer.name, loop_dims, wide, producer)
        position = list(outputs).index(self.result)
        launch = TwoLaunches(first, rest, engine, size, position, len(outputs) + len(layouts))
        return ElementwiseSchedule(launch, 1, (), sys.maxsize if wide else WIDE - 1 - furthest)


def reduction_node(node: Node) -> ReductionNode | None:
    """Return a node as a reduction, or None if it is none that fuses."""
    if isinstance(node.op, Graph) or node.form != FUNCTION or node.op.name not in ("sum", "mean", *PLAIN):
        return None
    element, dims, _, *dtypes = node.args
    if not isinstance(element, Tensor) or element.spec is None or 0 in element.spec.shape:
        return None
    reduction = reduction_for(node.op.name, element.spec.dtype, dtypes[0] if dtypes else None)
    return None if reduction is None else ReductionNode(node, reduction, element, dims, node.results[0])


PLAIN = ("amax", "amin", "all", "any")
"""The reductions without a parameter ``dtype``."""


class TwoLaunches(NamedTuple):
    """The launches of a fused reduction as one, which takes buffers and offsets in the order of the group."""

    kernel: Any
    rest: Any
    engine: Engine
    partial: int
    """The size of the totals between the two launches, in bytes."""
    position: int
    """The position of the reduction's result among the buffers."""
    buffers: int

    def __call__(self, items: Any, /, *arguments: Any) -> None:
        at, count = self.position, self.buffers
        result, numbers = arguments[at], arguments[2 * count :]
        others = arguments[:at] + arguments[at + 1 : count]
        offsets = arguments[count : count + at] + arguments[count + at + 1 : 2 * count]
        first, second = self.kernel, self.rest
        between = result if second is None else self.engine.allocate(self.partial)
        first.launch(first.items, between, *others, *offsets, *first.numbers, *numbers)
        if second is not None:
            second.launch(second.items, result, between, 0, *second.numbers)


SHORT_ROW = 32
"""Rows of fewer elements have kernels of their own."""
STRIP_BYTES = 1 << 15
"""The size of all strips of a row, at most: they have to stay in the first-level cache."""
PER_COUNTER = 4
"""A multiple of the random numbers of each counter: rows with such sizes begin with a counter of their own."""


class RowNode(NamedTuple):
    """A node that computes a program over the last dim of arrays of ``spec``'s shape."""

    node: Node
    program: RowProgram
    operands: tuple[Tensor, ...]
    numbers: tuple[float, ...]
    spec: Spec

    @property
    def out(self) -> Tensor:
        """The elementwise result."""
        return self.node.results[0]

    def suits(self, nodes: Nodes, reads: Tensors, writes: Tensors, serial: bool) -> bool:
        """Return whether one kernel can compute a row program and pointwise nodes.

        All have the shape of the program's output, except for the program's stored results, which no node of the group
        uses. All strips of a row fit into the cache.
        """
        shape, stored = self.spec.shape, self.node.results[1:]
        others = [node for node in nodes if node is not self.node]
        specs = [v.spec for node in others for v in node.results if v.spec is not None]
        if any(spec.shape != shape and spec.numel != 1 for spec in specs):
            return False
        if any(v.spec is not None and v.spec.shape != shape for v in writes if v not in stored):
            return False
        if any(v in node.operands for v in stored for node in others):
            return False
        if draws(others) and shape[-1] % PER_COUNTER:
            return False
        strips = phases(self, nodes).strips
        return sum(v.spec.dtype.itemsize for v in strips if v.spec is not None) * shape[-1] <= STRIP_BYTES

    def schedule(
        self, engine: Engine, row: FusedRow, outputs: Tensors, layouts: Layouts, wide: bool
    ) -> ElementwiseSchedule:
        """Return the launch of a fused row."""
        shape = self.spec.shape
        written = [v.spec.strides for v in outputs if v.spec is not None and v not in self.node.results[1:]]
        strides = (*written, *[broadcast_layout(each, steps, shape) for each, steps in layouts])
        furthest = max([extent(shape, each) for each in strides], default=0)
        wide = wide or max(furthest, prod(shape)) >= WIDE
        kept, kept_rows = collapsed(shape[:-1], tuple([each[:-1] for each in strides]))
        last = [each[-1] for each in strides]
        kinds = {name: stride_kind(step) for name, step in zip(row.addressed, last, strict=True)}
        count, rows, traits = shape[-1], prod(kept), engine.traits
        builder = FusedRowSourceBuilder(
            row, CTYPES[self.spec.dtype], kinds, len(kept), count, traits.float64, traits.lanes
        )
        items = max(1, min(rows * count // GRAIN, 16 * traits.compute_units))
        per_item = -(-rows // items)
        numbers = (rows, count, per_item, *kept, count, *[step for each in kept_rows for step in each], *last)
        launch = engine.compile(builder.fused(wide))
        return ElementwiseSchedule(launch, -(-rows // per_item), numbers, sys.maxsize if wide else WIDE - 1 - furthest)


def row_node(node: Node) -> RowNode | None:
    """Return a node as a row program over the last dim, or None if it is none that fuses."""
    if isinstance(node.op, Graph) or node.form != FUNCTION or node.op.name not in PROGRAMS:
        return None
    spec = node.results[0].spec
    if spec is None or not spec.shape or spec.dtype.category != FLOATING:
        return None
    program, operands, dims, numbers = PROGRAMS[node.op.name](node)
    values = [v for v in operands if isinstance(v, Tensor) and v.spec is not None]
    rank = len(spec.shape)
    if len(values) != len(operands) or tuple(d % rank for d in dims) != (rank - 1,):
        return None
    if any(v.spec is None or v.spec.dtype is not spec.dtype for v in values) or not spec.shape[-1] >= SHORT_ROW:
        return None
    return RowNode(node, program, tuple(values), numbers, spec) if spec.numel else None


Found = tuple[RowProgram, Sequence[Any], Shape, tuple[float, ...]]
"""The program of a node, its operands, the dims of a row, and its numbers."""


def _along(node: Node) -> Found:
    *operands, dim = node.args
    assert node.results[0].spec is not None
    return ALONG[node.op.name](node.results[0].spec.dtype), operands, (dim,), ()  # type: ignore[union-attr]


def _normalize(node: Node) -> Found:
    x, weight, bias, dims, eps = node.args
    operands = [v for v in (x, weight, bias) if v is not None]
    return NORMALIZE[weight is not None, bias is not None], operands, dims, (eps,)


def _normalize_backward(node: Node) -> Found:
    *operands, weight, dims = node.args
    return BACKWARD[weight is not None], [*operands, *([] if weight is None else [weight])], dims, ()


PROGRAMS: dict[str, Callable[[Node], Found]] = {
    **dict.fromkeys(ALONG, _along), "normalize": _normalize, "normalize_backward": _normalize_backward,
}  # fmt: skip
"""The operators of row programs."""


class Phases(NamedTuple):
    """The pointwise nodes before and after a row program, and the values that lie in strips."""

    before: list[Node]
    after: list[Node]
    strips: list[Tensor]


def phases(anchor: RowNode, nodes: Sequence[Node]) -> Phases:
    """Divide the nodes of a group at its row program."""
    later = {anchor.out}
    before: list[Node] = []
    after: list[Node] = []
    for node in nodes:
        if node is anchor.node:
            continue
        if later.isdisjoint(node.operands):
            before.append(node)
        else:
            after.append(node)
            later.update(node.results)
    needed = {*anchor.operands, *(v for node in after for v in node.operands)}
    strips = [v for node in before for v in node.results if v in needed]
    return Phases(before, after, strips + [anchor.out] * bool(after))
