"""Reductions over any dims of arrays of any layout: selection of the form, and division of the work.

If there are fewer outputs than the device can process in parallel, each output is divided into several parts, and a
second launch combines their totals. The division depends on shapes and on the device only, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import lcm, prod
from typing import Any, NamedTuple

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.layouts import WIDE, check_dims
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.loops import LoopNest
from candelabra_clike.templates.reduction_dims import ReductionDims, check_not_empty, max_offset, reduction_dims
from candelabra_clike.templates.reductions import groups, serial
from candelabra_clike.templates.reductions.fold import TypedFold
from candelabra_clike.templates.reductions.groups import GroupReductionSourceBuilder
from candelabra_clike.templates.reductions.serial import SerialReductionSourceBuilder
from candelabra_clike.types import CTYPES, CType

GRAIN = 1 << 14
"""Elements that justify another work-item on serial devices."""
FEW = 64
"""The maximum number of elements that one lane reduces."""
LEAST_PARTS = 4
"""The parts of a column that justify another launch, which combines them. With fewer, a work-item per block of columns
is better.
"""


class Partition(NamedTuple):
    """``items`` work-items (or groups) reduce ``units`` of work per output in ``parts`` of ``per_part`` units.

    ``pieces`` is the number of units per row, ``own`` are the arguments that only this form has, and ``source`` returns
    the kernel.
    """

    items: int
    units: int
    parts: int
    per_part: int
    pieces: int
    own: tuple[int, ...]
    source: Callable[[Any, bool], Source]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments in the order of the parameters."""
        return (self.units, self.parts, self.per_part, self.pieces, *self.own)


def partition(traits: Traits, dims: ReductionDims, split: bool) -> Partition:
    """Return the division of a reduction. Without ``split`` every output is one part."""
    if traits.serial:
        return _serial(traits.compute_units, dims, split)
    return _grouped(traits, dims, split)


def uses_columns(dims: ReductionDims) -> bool:
    """Return whether adjacent elements in memory belong to different outputs."""
    kept_stride, reduced_stride = dims.kept_strides[-1], dims.reduced_strides[-1]
    if dims.kept[-1] < 2 or dims.count < 2 or not kept_stride or reduced_stride == 1:
        return False
    return kept_stride == 1 or kept_stride < reduced_stride or not reduced_stride


def split_units(units: int, max_parts: int) -> tuple[int, int]:
    """Return (parts, units per part) for at most ``max_parts`` parts, none of them empty."""
    per_part = max(1, -(-units // max(1, max_parts)))
    return max(1, -(-units // per_part)), per_part


def _target_parts(units: int, dims: ReductionDims) -> int:
    return max(1, min(dims.outputs * dims.count // GRAIN, 8 * units))


def _serial(units: int, dims: ReductionDims, split: bool) -> Partition:
    target_parts = _target_parts(units, dims)
    if not uses_columns(dims):
        return rows_partition(units, dims, split)
    columns = dims.kept[-1]
    if columns < serial.NARROW and dims.kept_strides[-1] == 1 and dims.reduced_strides[-1] == columns:
        return _narrow(dims, target_parts, split)
    outer = dims.outputs // columns
    size = min(serial.BLOCK, max(serial.NARROW, -(-columns * outer // target_parts // 8) * 8))
    blocks = -(-columns // size)
    most = -(-target_parts // (blocks * outer))
    parts, per_part = split_units(dims.count, most if split and most >= LEAST_PARTS else 1)
    nest = dims.form(True, dims.kept_strides[-1] == 1, False)
    return Partition(
        outer * blocks * parts, dims.count, parts, per_part, 1, (blocks, size),
        lambda source, wide: source.columns(nest, wide),
    )  # fmt: skip


def rows_partition(units: int, dims: ReductionDims, split: bool, piece: int = serial.CHUNK) -> Partition:
    """Return the division for serial devices with ``units`` compute units, in units of ``piece`` elements of a row."""
    size, outputs = dims.reduced[-1], dims.outputs
    target_parts, pieces = _target_parts(units, dims), -(-size // piece)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // outputs) if split else 1)
    per_item = -(-outputs // target_parts) if parts == 1 else 1
    adjacent = dims.reduced_strides[-1] == 1
    nest = dims.form(False, adjacent, adjacent)
    return Partition(
        -(-outputs // per_item) * parts, units, parts, per_part, pieces, (per_item,),
        lambda source, wide: source.rows(nest, size >= 32, wide),
    )  # fmt: skip


def _narrow(dims: ReductionDims, target_parts: int, split: bool) -> Partition:
    columns, size = dims.kept[-1], dims.reduced[-1]
    outer = dims.outputs // columns
    width = lcm(8, columns)
    width *= max(1, serial.BLOCK // width)
    piece = max(1, GRAIN // columns)
    pieces = -(-size // piece)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // outer) if split else 1)
    nest = dims.form(False, True, False)
    return Partition(
        outer * parts, units, parts, per_part, pieces, (piece, width), lambda source, wide: source.narrow(nest, wide)
    )


def _grouped(traits: Traits, dims: ReductionDims, split: bool) -> Partition:
    group = min(groups.GROUP, 1 << (traits.group.bit_length() - 1))
    target_parts = 8 * traits.compute_units
    if dims.count <= FEW:
        return _lanes(dims)
    if uses_columns(dims):
        columns = dims.kept[-1]
        blocks, outer = -(-columns // groups.ACROSS), dims.outputs // columns
        most = min(-(-target_parts // (blocks * outer)), dims.count // groups.DEEP) if split else 1
        parts, per_part = split_units(dims.count, most)
        nest = dims.form(True, dims.kept_strides[-1] == 1, False)
        return Partition(
            outer * blocks * parts, dims.count, parts, per_part, 1, (blocks,),
            lambda source, wide: source.columns(nest, wide, group),
        )  # fmt: skip
    pieces = -(-dims.reduced[-1] // groups.PIECE)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // dims.outputs) if split else 1)
    adjacent = dims.reduced_strides[-1] == 1
    nest = dims.form(False, adjacent, adjacent)
    return Partition(
        dims.outputs * parts, units, parts, per_part, pieces, (), lambda source, wide: source.rows(nest, wide, group)
    )


def _lanes(dims: ReductionDims) -> Partition:
    """One lane per output."""
    nest = dims.form(False, False, False)
    return Partition(dims.outputs, dims.count, 1, dims.count, 1, (), lambda source, wide: source.lanes(nest, wide))


class ReductionLaunch(NamedTuple):
    """A launch with its arguments other than buffers, and the number of parts per output."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    parts: int


class ReductionPlan(NamedTuple):
    """The launches of a reduction for one layout. ``max_offset`` is the offset of the last element from the first."""

    shape: Shape
    max_offset: int
    first: ReductionLaunch | None
    second: ReductionLaunch | None
    partial: int
    """The size of the totals between the two launches, in bytes."""


class Reduction:
    """A fold over one type of element.

    ``fold`` returns the fold for devices with or without float64. ``output`` is the dtype of the result.
    ``needs_elements`` is true if the reduction of an empty dim has no result.
    """

    def __init__(
        self, name: str, fold: Callable[[bool], TypedFold], element: CType, output: dtype, needs_elements: bool = False
    ) -> None:
        self.name = name
        self.needs_elements = needs_elements
        self.fold = lru_cache(2)(fold)
        self.element = element
        self.output = output
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dims: Shape | None, keepdim: bool) -> StridedArray:
        """Return a new array with ``dims`` (None: all) reduced. Raises ``IndexError`` for an empty dim without a
        result.
        """
        engine = x.engine
        plan = self._plan(engine, x.shape, x.strides, dims, keepdim, False)
        if x.offset + plan.max_offset >= WIDE:
            plan = self._plan(engine, x.shape, x.strides, dims, keepdim, True)
        out = engine.empty(plan.shape, self.output)
        first, second = plan.first, plan.second
        if first is None:
            return out
        if second is None:
            first.launch(first.items, out.buffer, x.buffer, x.offset, *first.numbers)
        else:
            between = engine.allocate(plan.partial)
            first.launch(first.items, between, x.buffer, x.offset, *first.numbers)
            second.launch(second.items, out.buffer, between, 0, *second.numbers)
        return out

    def _planned(
        self, engine: Engine, shape: Shape, strides: Shape, dims: Shape | None, keepdim: bool, wide: bool
    ) -> ReductionPlan:
        check_dims(shape, dims)
        result = reduced_shape(shape, dims, keepdim)
        if self.needs_elements:
            check_not_empty(self.name, shape, dims)
        loop_dims = reduction_dims(shape, strides, dims)
        outputs, last = prod(result), max_offset(shape, strides)
        if not outputs:
            return ReductionPlan(result, last, None, None, 0)
        return ReductionPlan(result, last, *self.launches(engine, self.name, loop_dims, wide))

    def launches(
        self, engine: Engine, name: str, loop_dims: ReductionDims, wide: bool, producer: LoopNest | None = None
    ) -> tuple[ReductionLaunch, ReductionLaunch | None, int]:
        """Return the launch over all elements. If it divides outputs into parts, also return the launch that combines
        their totals, and the size of the totals in bytes.

        ``producer`` computes the elements from other arrays, those of ``loop_dims`` after the first.
        """
        fold, outputs = self.fold(engine.traits.float64), loop_dims.outputs

        def launch(
            name: str, fold: TypedFold, element: CType, dims: ReductionDims, split: bool, producer: LoopNest | None
        ) -> ReductionLaunch:
            division = partition(engine.traits, dims, split)
            kind = SerialReductionSourceBuilder if engine.traits.serial else GroupReductionSourceBuilder
            text = kind(name, fold, element, CTYPES[self.output] if division.parts == 1 else None, producer)
            compiled = engine.compile(division.source(text, wide))
            numbers = (outputs, loop_dims.count, *division.numbers, *dims.numbers(0 if producer is None else 1))
            return ReductionLaunch(compiled, division.items, numbers, division.parts)

        first = launch(name, fold, self.element, loop_dims, True, producer)
        if first.parts == 1:
            return first, None, 0
        rest = reduction_dims((first.parts, outputs), (outputs, 1), (0,))
        total = CType(fold.total, fold.total)
        second = launch(f"{self.name}_rest", fold.of_totals(), total, rest, False, None)
        return first, second, first.parts * outputs * total_bytes(fold.total)


def total_bytes(value: str) -> int:
    """Return the size of a total of a type."""
    return int(value[1:]) // 8
