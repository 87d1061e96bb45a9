"""Launches of fused kernels: their schedule for arrays of certain strides, and the call on strided arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.engine import Engine
from candelabra_clike.fusion.convolutions import ConvolutionNode, convolution_schedule
from candelabra_clike.fusion.lowering import lowered, lowered_product, lowered_row
from candelabra_clike.fusion.products import product_schedule, products_in
from candelabra_clike.fusion.reductions import reduction_schedule
from candelabra_clike.fusion.rows import row_schedule, rows_in
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule, Launches, NotContiguous


class FusedKernel:
    """The kernel of a group of nodes. A call takes what the group's graph takes, in order.

    ``into``: the outputs that are written in place of an argument, by position, see
    :func:`~candelabra.graph.memory_plan`. A kernel that reads an element after it has written others ignores it.
    """

    def __init__(self, group: Graph, engine: Engine, into: Mapping[int, int] | None = None) -> None:
        self.engine = engine
        self.group = group
        self._lower()
        self.into = {} if into is None or self.reduction is not None or self.in_c_order else dict(into)
        self.outputs = [v.spec for v in group.outputs if v.spec is not None]
        self.size = prod(self.shape)
        self.arrays = [i for i, v in enumerate(group.inputs) if v.spec is not None]
        """The positions of arrays among the arguments."""
        self._position = {v: i for i, v in enumerate(group.inputs)}
        self._schedules: dict[Any, ElementwiseSchedule] = {}

    def _lower(self) -> None:
        self.nest, self.shape, self.inputs, self.scalars, self.reduction = lowered(self.group)
        self.name = self.nest.name
        self.in_c_order = bool(self.nest.draws)
        self._launches = Launches(self.nest)

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
        if self.reduction is not None:
            return reduction_schedule(self.engine, self.reduction, self.nest, self.group.outputs, layouts, wide)
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


class FusedRowKernel(FusedKernel):
    """The kernel of a group with a row program."""

    def _lower(self) -> None:
        self.row, self.found, self.inputs, self.scalars = lowered_row(self.group, rows_in(self.group.nodes)[0])
        self.name, self.shape = self.row.name, self.found.spec.shape
        self.in_c_order, self.reduction = False, None

    def _planned(self, layouts: Sequence[tuple[Shape, Shape]], wide: bool) -> ElementwiseSchedule:
        return row_schedule(self.engine, self.found, self.row, self.group.outputs, layouts, wide)


class FusedProductKernel(FusedKernel):
    """The kernel of a group with a matrix product or a convolution."""

    def _lower(self) -> None:
        self.epilogue, self.found, self.inputs, self.scalars = lowered_product(
            self.group, products_in(self.group.nodes)[0]
        )
        self.name, self.shape = self.epilogue.nest.name, self.found.spec.shape
        self.in_c_order, self.reduction = False, None

    def _planned(self, layouts: Sequence[tuple[Shape, Shape]], wide: bool) -> ElementwiseSchedule:
        if isinstance(self.found, ConvolutionNode):
            return convolution_schedule(self.engine, self.found, self.epilogue, self.group.outputs, layouts, wide)
        return product_schedule(self.engine, self.found, self.epilogue, self.group.outputs, layouts, wide)


def fused_kernel(group: Graph, engine: Engine, into: Mapping[int, int] | None = None) -> FusedKernel:
    """Return the kernel of a group, which may write its outputs in place of the arguments that ``into`` names."""
    if rows_in(group.nodes):
        return FusedRowKernel(group, engine)
    return FusedProductKernel(group, engine) if products_in(group.nodes) else FusedKernel(group, engine, into)


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
