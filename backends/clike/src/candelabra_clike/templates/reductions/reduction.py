"""Reductions over any dims of arrays of any layout: selection of the form, and division of the work.

If there are fewer outputs than the device can process in parallel, each output is divided into several parts, and a
second launch combines their totals. The division depends on shapes and on the device only, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, check_dims
from candelabra_clike.templates.elementwise.loops import LoopNest
from candelabra_clike.templates.reduction_dims import ReductionDims, check_not_empty, max_offset, reduction_dims
from candelabra_clike.templates.reductions.fold import TypedFold
from candelabra_clike.templates.reductions.groups import GroupReductionSourceBuilder
from candelabra_clike.templates.reductions.partitioning import partition
from candelabra_clike.templates.reductions.serial import SerialReductionSourceBuilder
from candelabra_clike.types import CTYPES, CType


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
        fold = self.fold(engine.traits.float64)
        first = planned_launch(
            engine, self.name, fold, self.element, self.output, loop_dims, loop_dims.count, wide, split=True
        )
        if first.parts == 1:
            return ReductionPlan(result, last, first, None, 0)
        second = rest_launch(engine, self.name, fold, self.output, loop_dims, first.parts, wide)
        size = first.parts * outputs * total_bytes(fold.total)
        return ReductionPlan(result, last, first, second, size)


def total_bytes(value: str) -> int:
    """Return the size of a total of a type."""
    return int(value[1:]) // 8


def planned_launch(
    engine: Engine,
    name: str,
    fold: TypedFold,
    element: CType,
    output: dtype,
    loop_dims: ReductionDims,
    count: int,
    wide: bool,
    split: bool,
    producer: LoopNest | None = None,
) -> ReductionLaunch:
    """Return the launch of a reduction. Its output are the totals of the parts if there are several.

    ``producer`` computes the elements from other arrays, those of ``loop_dims`` after the first.
    """
    division = partition(engine.traits, loop_dims, split)
    kind = SerialReductionSourceBuilder if engine.traits.serial else GroupReductionSourceBuilder
    text = kind(name, fold, element, CTYPES[output] if division.parts == 1 else None, producer)
    launch = engine.compile(division.source(text, wide))
    dims = loop_dims.numbers(0 if producer is None else 1)
    return ReductionLaunch(launch, division.items, (loop_dims.outputs, count, *division.numbers, *dims), division.parts)


def rest_launch(
    engine: Engine, name: str, fold: TypedFold, output: dtype, loop_dims: ReductionDims, count: int, wide: bool
) -> ReductionLaunch:
    """Return the launch that combines ``count`` totals of each output."""
    rest = reduction_dims((count, loop_dims.outputs), (loop_dims.outputs, 1), (0,))
    total = CType(fold.total, fold.total)
    return planned_launch(
        engine, f"{name}_rest", fold.of_totals(), total, output, rest, loop_dims.count, wide, split=False
    )
