"""Fused rows: a row program, such as a softmax, with pointwise nodes before and after it.

Nodes that need the program's output come after it, all others before. What one of the three loops over a row computes
and another one reads is a strip in private memory (:mod:`candelabra_clike.templates.rows.fused`).
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
from candelabra_clike.kernels.softmax import ALONG
from candelabra_clike.layouts import WIDE, broadcast_layout, collapsed
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule
from candelabra_clike.templates.rows.fused import FusedRow, FusedRowSourceBuilder, kinds_of
from candelabra_clike.templates.rows.program import RowProgram
from candelabra_clike.templates.rows.rows import GRAIN
from candelabra_clike.types import CTYPES

SHORT = 32
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
    if any(v.spec is None or v.spec.dtype is not spec.dtype for v in values) or not spec.shape[-1] >= SHORT:
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


def rows_in(nodes: Sequence[Node]) -> list[RowNode]:
    """Return the row programs among nodes."""
    return [anchor for node in nodes if (anchor := row_node(node)) is not None]


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


def suits(anchor: RowNode, nodes: Sequence[Node], writes: Sequence[Tensor]) -> bool:
    """Return whether one kernel can compute a row program and pointwise nodes.

    All have the shape of the program's output, except for the program's stored results, which no node of the group
    uses. All strips of a row fit into the cache.
    """
    shape, stored = anchor.spec.shape, anchor.node.results[1:]
    others = [node for node in nodes if node is not anchor.node]
    specs = [v.spec for node in others for v in node.results if v.spec is not None]
    if any(spec.shape != shape and spec.numel != 1 for spec in specs):
        return False
    if any(v.spec is not None and v.spec.shape != shape for v in writes if v not in stored):
        return False
    if any(v in node.operands for v in stored for node in others):
        return False
    if any(not isinstance(node.op, Graph) and node.op.random for node in others) and shape[-1] % PER_COUNTER:
        return False
    strips = phases(anchor, nodes).strips
    return sum(v.spec.dtype.itemsize for v in strips if v.spec is not None) * shape[-1] <= STRIP_BYTES


def row_schedule(
    engine: Engine,
    anchor: RowNode,
    row: FusedRow,
    outputs: Sequence[Tensor],
    layouts: Sequence[tuple[Shape, Shape]],
    wide: bool,
) -> ElementwiseSchedule:
    """Return the launch of a fused row. ``outputs`` are those of the group, ``layouts`` the shapes and strides of its
    arrays.
    """
    shape = anchor.spec.shape
    written = [v.spec.strides for v in outputs if v.spec is not None and v not in anchor.node.results[1:]]
    strides = (*written, *[broadcast_layout(each, steps, shape) for each, steps in layouts])
    furthest = max([extent(shape, each) for each in strides], default=0)
    wide = wide or max(furthest, prod(shape)) >= WIDE
    kept, kept_rows = collapsed(shape[:-1], tuple([each[:-1] for each in strides]))
    last = [each[-1] for each in strides]
    count, rows, traits = shape[-1], prod(kept), engine.traits
    builder = FusedRowSourceBuilder(
        row, CTYPES[anchor.spec.dtype], kinds_of(row.addressed, last), len(kept), count, traits.float64, traits.lanes
    )
    items = max(1, min(rows * count // GRAIN, 16 * traits.compute_units))
    per_item = -(-rows // items)
    numbers = (rows, count, per_item, *kept, count, *[step for each in kept_rows for step in each], *last)
    launch = engine.compile(builder.fused(wide))
    return ElementwiseSchedule(launch, -(-rows // per_item), numbers, sys.maxsize if wide else WIDE - 1 - furthest)
