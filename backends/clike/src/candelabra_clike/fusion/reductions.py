"""Fused reductions: a reduction whose elements are computed by pointwise nodes of its group.

The loop nest of the pointwise nodes is the *producer* of
:mod:`candelabra_clike.templates.reductions.source`: its first value is the element that is reduced, and its other
values are results of the group. The partition of the work is that of the reduction alone, so that a result has the same
bits, unless an operand of the pointwise nodes is broadcast and their dims collapse to fewer than the reduction's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from candelabra.graph import FUNCTION, Graph, Node
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, extent
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.reductions import reduction_for
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule
from candelabra_clike.templates.elementwise.loops import LoopNest
from candelabra_clike.templates.reduction_dims import reduction_dims
from candelabra_clike.templates.reductions.reduction import Reduction, planned_launch, rest_launch, total_bytes

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


def reductions_in(nodes: Sequence[Node]) -> list[ReductionNode]:
    """Return the reductions among nodes."""
    return [anchor for node in nodes if (anchor := reduction_node(node)) is not None]


def suits(
    anchor: ReductionNode, nodes: Sequence[Node], reads: Sequence[Tensor], writes: Sequence[Tensor], serial: bool
) -> bool:
    """Return whether one kernel should compute a reduction and pointwise nodes.

    The pointwise nodes have the shape of the reduced elements and do not need the result. Rows are long enough for a
    strip. Sums of columns fuse on devices of lanes only: a processor reduces blocks of columns, and computing the
    elements of a block, of which each row is in another page of memory, takes longer than computing all in order.
    """
    spec = anchor.element.spec
    assert spec is not None
    if anchor.result not in writes or any(anchor.result in node.operands for node in nodes):
        return False
    if not any(anchor.element in node.results for node in nodes):
        return False
    others = [v.spec for node in nodes for v in node.results if v is not anchor.result and v.spec is not None]
    if any(other.shape != spec.shape and other.numel != 1 for other in others):
        return False
    if any(v.spec is not None and v.spec.shape != spec.shape for v in writes if v is not anchor.result):
        return False
    rows = tuple([broadcast_layout(v.spec.shape, v.spec.strides, spec.shape) for v in reads if v.spec is not None])
    loop_dims = reduction_dims(spec.shape, spec.strides, anchor.dims, others=rows)
    across = loop_dims.reduced_strides[-1] != 1
    if across:
        return not serial and loop_dims.kept[-1] >= NARROW
    return loop_dims.reduced[-1] >= SHORT


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


def reduction_schedule(
    engine: Engine,
    anchor: ReductionNode,
    producer: LoopNest,
    outputs: Sequence[Tensor],
    layouts: Sequence[tuple[Shape, Shape]],
    wide: bool,
) -> ElementwiseSchedule:
    """Return the launch of a fused reduction. ``outputs`` are those of the group, ``layouts`` the shapes and strides of
    its arrays.
    """
    spec = anchor.element.spec
    assert spec is not None
    written = [v.spec.strides for v in outputs if v is not anchor.result and v.spec is not None]
    rows = (*written, *[broadcast_layout(shape, strides, spec.shape) for shape, strides in layouts])
    furthest = max([extent(spec.shape, row) for row in rows], default=0)
    wide = wide or max(furthest, spec.numel) >= WIDE
    loop_dims = reduction_dims(spec.shape, spec.strides, anchor.dims, others=rows)
    reduction = anchor.reduction
    fold = reduction.fold(engine.traits.float64)
    first = planned_launch(
        engine, producer.name, fold, reduction.element, reduction.output, loop_dims, loop_dims.count, wide, True,
        producer,
    )  # fmt: skip
    rest, size = None, 0
    if first.parts > 1:
        rest = rest_launch(engine, reduction.name, fold, reduction.output, loop_dims, first.parts, wide)
        size = first.parts * loop_dims.outputs * total_bytes(fold.total)
    position = list(outputs).index(anchor.result)
    launch = TwoLaunches(first, rest, engine, size, position, len(outputs) + len(layouts))
    return ElementwiseSchedule(launch, 1, (), sys.maxsize if wide else WIDE - 1 - furthest)
