"""Row kernels over arrays that broadcast together, such as softmax and normalisation in one kernel.

A row consists of the reduced dims, whatever they are and whatever the strides of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.layouts import WIDE, broadcast_layout, check_dims, collapsed
from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import max_offset
from candelabra_clike.templates.rows import serial
from candelabra_clike.templates.rows.program import RowProgram, RowTypes
from candelabra_clike.templates.rows.schedule import RowNest, row_schedule
from candelabra_clike.templates.rows.source import RowLayout
from candelabra_clike.types import CTYPES

_new = object.__new__
GRAIN = 1 << 13
"""Elements that justify another work-item on serial devices."""


class RowOutput(NamedTuple):
    """A contiguous output."""

    shape: Shape
    strides: Shape
    size: int


class RowPlan(NamedTuple):
    """The launches with their counts, their numbers, the outputs, and the maximum offset of each operand.

    ``totals`` are the sizes in bytes of the buffers that several launches exchange.
    """

    launches: tuple[tuple[Launch, int], ...]
    numbers: tuple[int, ...]
    outs: tuple[RowOutput, ...]
    max_offsets: tuple[int, ...]
    totals: tuple[int, ...] = ()


class RowKernel:
    """A row program for one dtype. Calls return the outputs, then the stored results of reductions (as with
    ``keepdim``).
    """

    def __init__(self, program: RowProgram, d: dtype) -> None:
        self.program = program
        self.dtype = d
        self.writes = sum(p.stored_result for p in program.passes)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(
        self, operands: Sequence[StridedArray], shape: Shape, dims: Shape, numbers: Sequence[Any] = ()
    ) -> list[StridedArray]:
        """Run the program. All operands broadcast to ``shape``."""
        # One loop each over operands and results: comprehensions would be more frames than all else here.
        engine, d = operands[0].engine, self.dtype
        strides, buffers, offsets = [], [], []
        for x in operands:
            strides.append(x.strides if x.shape == shape else broadcast_layout(x.shape, x.strides, shape))
            buffers.append(x.buffer)
            offsets.append(x.offset)
        steps = tuple(strides)
        launches, arguments, likes, furthest, totals = self._plan(engine, shape, steps, dims, False)
        for offset, last in zip(offsets, furthest):
            if offset + last >= WIDE:
                launches, arguments, likes, furthest, totals = self._plan(engine, shape, steps, dims, True)
                break
        outs: list[StridedArray] = []
        written: list[Buffer] = []
        for like in likes:
            out = _new(StridedArray)
            out.engine = engine
            out.buffer = buffer = engine.allocate(like.size * d.itemsize or 1)
            out.shape = like.shape
            out.strides = like.strides
            out.offset = 0
            out.dtype = d
            out.size = like.size
            out.contiguous = True
            outs.append(out)
            written.append(buffer)
        if totals:
            written[:0] = [engine.allocate(size) for size in totals]
        for launch, items in launches:
            launch(items, *written, *buffers, *offsets, *arguments, *numbers)
        return outs

    def _planned(self, engine: Engine, shape: Shape, steps: tuple[Shape, ...], dims: Shape, wide: bool) -> RowPlan:
        check_dims(shape, dims)
        kept_shape = tuple([1 if d in dims else s for d, s in enumerate(shape)])
        shapes = [shape] * len(self.program.outputs) + [kept_shape] * self.writes
        outs = tuple([RowOutput(each, contiguous_strides(each), prod(each)) for each in shapes])
        last = tuple([max_offset(shape, row) for row in steps])
        wide = wide or prod(shape) >= WIDE or max(last) >= WIDE
        strides = (contiguous_strides(shape), *steps)
        kept_dims = [d for d in range(len(shape)) if d not in dims]
        kept, kept_strides = collapsed(
            tuple([shape[d] for d in kept_dims]), tuple([_of(row, kept_dims) for row in strides])
        )
        reduced_dims = sorted(dims)
        reduced, reduced_strides = collapsed(
            tuple([shape[d] for d in reduced_dims]), tuple([_of(row, reduced_dims) for row in strides])
        )
        outputs, count = prod(kept), prod(reduced)
        if not outputs or (not count and not self.writes):
            return RowPlan((), (), outs, last)
        columns = kept[-1] > 1 and kept_strides[0][-1] == 1 != reduced_strides[0][-1]
        innermost = kept_strides if columns else reduced_strides
        layout = RowLayout(len(kept), len(reduced), tuple([min(row[-1], 2) for row in innermost]), columns)
        elements = (CTYPES[self.dtype],) * (self.program.operands + 1)
        traits = engine.traits
        wide_total = traits.float64
        own: tuple[int, ...]
        sources: tuple[tuple[Source, int], ...]
        totals: tuple[int, ...] = ()
        if traits.serial:
            builder = serial.SerialRowSourceBuilder(self.program, elements, layout, wide_total, traits.lanes)
            target_items = max(1, min(outputs * count // GRAIN, 16 * traits.compute_units))
            if columns:
                least = max(32, min(64, outputs // traits.compute_units // 8 * 8))
                size = min(serial.BLOCK, max(least, -(-outputs // target_items // 8) * 8))
                blocks = -(-kept[-1] // size)
                source, own, items = builder.in_columns(wide), (blocks, size), outputs // kept[-1] * blocks
            else:
                per_item = -(-outputs // target_items)
                source, own, items = builder.in_rows(wide), (per_item,), -(-outputs // per_item)
            sources = ((source, items),)
        else:
            nest = RowNest(kept, kept_strides, reduced, reduced_strides)
            sources, own, many = row_schedule(engine, self.program, elements, layout, nest, wide)
            types = RowTypes(elements[0].value, "f64" if wide_total else "f32")
            each = [int(p.operation.total(types)[1:]) // 8 for p in self.program.passes]
            totals = tuple([many * size for size in each]) if many else ()
        loop_dims = (
            *kept,
            *reduced,
            *[s for row in kept_strides for s in row],
            *[s for row in reduced_strides for s in row],
        )
        launches = tuple([(engine.compile(source), items) for source, items in sources])
        return RowPlan(launches, (outputs, count, *own, *loop_dims), outs, last, totals)


def _of(row: Shape, dims: Sequence[int]) -> Shape:
    return tuple([row[d] for d in dims])
