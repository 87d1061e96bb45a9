"""Row kernels over arrays that broadcast together, such as softmax and normalisation in one kernel.

A row consists of the reduced dims, whatever they are and whatever the strides of the operands. The form of a kernel and
the division of its work depend on the layout and on the device only, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

from candelabra.backend import contiguous_strides, reduced_shape
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.layouts import WIDE, broadcast_layout, check_dims, collapsed_dims
from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import max_offset
from candelabra_clike.templates.rows import serial
from candelabra_clike.templates.rows.columns import ACROSS, ColumnTileSourceBuilder, LaneRowSourceBuilder
from candelabra_clike.templates.rows.program import RowProgram, RowTypes
from candelabra_clike.templates.rows.source import RowLayout
from candelabra_clike.templates.rows.tiles import VECTOR, Tile, TiledRowSourceBuilder
from candelabra_clike.types import CTYPES, CType

_new = object.__new__
GRAIN = 1 << 13
"""Elements that justify another work-item on serial devices."""


GROUP = 256
"""The usual work-group size."""
FEW = 16
"""The maximum row size for which one lane processes a row."""
FEW_OF_COLUMN = 64
"""The same for columns, which adjacent lanes read together."""
SHORT = 8
"""Elements of a lane in rows that a warp processes with as few."""
MOST_LANES = 512
"""The maximum number of lanes of a row that is in registers."""
EACH: Final = (4, 8, 12, 16, 24, 32)
"""The numbers of 32-bit registers of a lane with elements of an operand: few, because each is another kernel."""
LOOP_EACH = 16
"""The same in a loop over tiles."""
PART, LEAST_OF_COLUMN = 1 << 13, 1 << 7
"""The minimum number of elements of a part of a row, and of a column."""


class RowNest(NamedTuple):
    """The kept and the reduced dims of a row kernel: sizes, and the strides of the output and of each operand."""

    kept: Shape
    kept_strides: tuple[Shape, ...]
    reduced: Shape
    reduced_strides: tuple[Shape, ...]

    @property
    def outputs(self) -> int:
        """The number of rows."""
        return prod(self.kept)

    @property
    def count(self) -> int:  # type: ignore[override] # hides the method of tuples
        """The number of elements of a row."""
        return prod(self.reduced)


class RowSchedule(NamedTuple):
    """The sources of the launches, each with its number of work-items or groups, the arguments that only this form has,
    and the number of totals that the launches of a divided row exchange for each reduction.
    """

    sources: tuple[tuple[Source, int], ...]
    own: tuple[int, ...]
    totals: int


def row_schedule(
    engine: Engine, program: RowProgram, elements: tuple[CType, ...], layout: RowLayout, nest: RowNest, wide: bool
) -> RowSchedule:
    """Return the schedule of a row program for one layout."""
    traits, outputs, count = engine.traits, nest.outputs, nest.count
    group = min(GROUP, 1 << (traits.group.bit_length() - 1))
    if count <= (FEW_OF_COLUMN if layout.columns else FEW) or (layout.columns and group < ACROSS):
        source = LaneRowSourceBuilder(program, elements, layout, traits.float64).by_lanes(wide)
        return RowSchedule(((source, outputs),), (), 0)
    operands = range(1, len(elements))
    constant = frozenset([k for k in operands if not any(nest.reduced_strides[k])])
    shared = frozenset([k for k in operands if k not in constant and not any(nest.kept_strides[k])])
    words = int(elements[0].value[1:]) // 32
    if layout.columns:
        held = max(1, len(elements) - 1 - len(constant)) * words
        tile = Tile(group // ACROSS, max(VECTOR, LOOP_EACH // held), 1, group)
        blocks = -(-nest.kept[-1] // ACROSS)
        columns = ColumnTileSourceBuilder(
            program, elements, layout, traits.float64, tile, constant, frozenset(), engine.dialect.warp
        )
        division = _division(
            traits.compute_units, outputs // nest.kept[-1] * blocks, count, tile, LEAST_OF_COLUMN, group
        )
        return _in_groups(columns, nest, outputs // nest.kept[-1] * blocks, division, (blocks,), wide)
    vector = _vector(program, layout, nest, constant)
    held = max(1, len(elements) - 1 - len(constant | shared)) * words

    def builder(tile: Tile) -> TiledRowSourceBuilder:
        return TiledRowSourceBuilder(
            program, elements, layout, traits.float64, tile, constant, shared, engine.dialect.warp
        )

    in_registers = _register_tile(outputs, count, held, vector, group, traits.group, traits.compute_units)
    if in_registers is not None:
        groups = -(-outputs // (in_registers.group // in_registers.lanes))
        return RowSchedule(((builder(in_registers).registers(wide), groups),), (), 0)
    tile = Tile(group, max(VECTOR, LOOP_EACH // held // VECTOR * VECTOR), vector, group)
    division = _division(traits.compute_units, outputs, count, tile, PART, group)
    return _in_groups(builder(tile), nest, outputs, division, (), wide)


def _division(units: int, groups: int, count: int, tile: Tile, least: int, most: int) -> tuple[int, int]:
    """Return (parts, elements per part) of a row, in whole tiles. Without division there would be ``groups`` groups."""
    if groups >= 8 * units:
        return 1, count
    whole = tile.lanes * tile.each
    wanted = min(most, -(-32 * units // groups))
    size = -(-max(least, -(-count // wanted)) // whole) * whole
    return -(-count // size), size


def _in_groups(
    builder: TiledRowSourceBuilder,
    nest: RowNest,
    groups: int,
    division: tuple[int, int],
    own: tuple[int, ...],
    wide: bool,
) -> RowSchedule:
    """Return the schedule in groups, each of which processes a row or a part of it, or several columns."""
    parts, size = division
    if parts == 1:
        return RowSchedule(((builder.groups(wide), groups),), own, 0)
    *stages, last = builder.split(wide)
    finish = groups if builder.program.last is None else groups * parts
    launches = (*[(source, groups * parts) for source in stages], (last, finish))
    return RowSchedule(launches, (parts, size, *own), nest.outputs * parts)


def _vector(program: RowProgram, layout: RowLayout, nest: RowNest, constant: frozenset[int]) -> int:
    """Return the number of adjacent elements of a lane."""
    moving = [k for k in range(program.last is None, len(layout.inner)) if k not in constant]
    if nest.reduced[-1] % VECTOR or any(layout.inner[k] == 2 for k in moving):
        return 1
    vectors = [k for k in moving if layout.inner[k] == 1]
    strides = [step for k in vectors for step in (*nest.kept_strides[k], *nest.reduced_strides[k][:-1])]
    return VECTOR if vectors and not any(step % VECTOR for step in strides) else 1


def _register_tile(
    outputs: int, count: int, held: int, vector: int, group: int, largest: int, units: int
) -> Tile | None:
    """Return the tile for rows that fit into registers, or None if they do not."""
    most = max([each for each in EACH if each * held <= EACH[-1]], default=0)
    lanes = 1 << (-(-count // SHORT) - 1).bit_length()
    while lanes > 32 and lanes // 2 * most >= count:
        lanes //= 2
    if not most or lanes * most < count or lanes > min(MOST_LANES, largest):
        return None
    while lanes < group and outputs * lanes < 2 * units * group and count > lanes * EACH[0]:
        lanes *= 2
    each = min([each for each in EACH if each * lanes >= count])
    return Tile(lanes, each, vector, max(group, lanes))


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

    def reduced(
        self, operands: Sequence[StridedArray], dims: Shape | None, keepdim: bool, numbers: Sequence[Any] = ()
    ) -> list[StridedArray]:
        """Run a program without elementwise outputs on arrays of one shape. ``dims`` are reduced (None: all)."""
        shape = operands[0].shape
        dims = tuple(range(len(shape))) if dims is None else dims
        kept = reduced_shape(shape, dims, keepdim)
        return [out.reshaped(kept) for out in self(operands, shape, dims, numbers)]

    def _planned(self, engine: Engine, shape: Shape, steps: tuple[Shape, ...], dims: Shape, wide: bool) -> RowPlan:
        check_dims(shape, dims)
        kept_shape = tuple([1 if d in dims else s for d, s in enumerate(shape)])
        shapes = [shape] * len(self.program.outputs) + [kept_shape] * self.writes
        outs = tuple([RowOutput(each, contiguous_strides(each), prod(each)) for each in shapes])
        last = tuple([max_offset(shape, row) for row in steps])
        wide = wide or prod(shape) >= WIDE or max(last) >= WIDE
        strides = (contiguous_strides(shape), *steps)
        kept, kept_strides = collapsed_dims(shape, strides, [d for d in range(len(shape)) if d not in dims])
        reduced, reduced_strides = collapsed_dims(shape, strides, sorted(dims))
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
