"""Elementwise kernels: one expression for every element of arrays of any layout, with broadcasting.

Calls are looked up by the shapes and strides of their arrays. An :class:`ElementwisePlan` determines the loop nest, its
dims, and the memory order of the result: that of the arrays where they agree, otherwise C order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeVar

from candelabra.backend import contiguous_strides, is_contiguous_layout
from candelabra.dtypes import dtype, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.conversions import converted
from candelabra_clike.device_errors import Refusal
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import Value, declared, value_type
from candelabra_clike.layouts import (
    WIDE,
    broadcast,
    broadcast_strides,
    collapsed,
    dense_strides,
    is_wide,
    memory_order,
    overlapping,
)
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.large import LINE_BYTES, nontemporal, nontemporal_rows, tile_size, tiles
from candelabra_clike.templates.elementwise.loops import (
    CHUNK,
    HOISTED,
    NAMES,
    STEP,
    TRANSPOSED,
    UNIT,
    LoopNest,
    operands,
    stride_kind,
)
from candelabra_clike.templates.elementwise.vectors import rows_of_vectors

__all__ = ["CHUNK", "Elementwise", "NAMES", "cast_kernel", "copy_kernel", "without_overlap"]

RANKS = (2, 4, 8, 16, 32, 64)
"""The ranks of the loop nests over rows. Other ranks are padded with dims of size 1."""
MAX_PLANS = 4096
"""The number of plans that are kept per expression, and per template of indexing."""
MASK = (1 << 64) - 1


class ElementwisePlan(NamedTuple):
    """The launch for arrays of certain shapes and strides."""

    launch: Launch | None
    """None if the result is empty."""
    items: int
    numbers: tuple[int, ...]
    """Sizes and strides, the kernel's arguments after the offsets."""
    shape: Shape
    strides: Shape
    size: int
    contiguous: bool
    max_offset: int = sys.maxsize
    """The largest offset of an array for which the kernel's indices suffice."""


class Elementwise:
    """``out[i] = value(a[i], b[i], …, s0, s1, …)``.

    ``inputs`` and ``output`` are the dtypes in memory, ``numbers`` the types of the scalars. The value is an expression
    of :func:`~candelabra_clike.templates.elementwise.loops.operands`. ``operator`` names the operator in the errors of
    refused values; the default is ``name``.
    """

    def __init__(
        self,
        name: str,
        value: Value,
        inputs: Sequence[dtype],
        output: dtype,
        numbers: Sequence[str] = (),
        contract: bool = False,
        operator: str = "",
    ) -> None:
        self.nest = LoopNest(name, (value,), tuple(inputs), (output,), tuple(numbers), contract)
        self.output = output
        self.refusals = tuple(Refusal(operator or name, reason) for reason in self.nest.reasons)
        self.launches = Launches(self.nest)
        self.flat, self.nontemporal = self.launches.flat, self.launches.nontemporal
        self.plans: dict[Any, ElementwisePlan] = {}
        """By engine, shape and strides of the result if it is given, and those of the arrays, which the functions of
        :func:`~candelabra_clike.templates.elementwise.calls.build_call` look up, too."""

    @classmethod
    def of(
        cls,
        name: str,
        function: Callable[..., Any],
        inputs: Sequence[dtype],
        output: dtype,
        numbers: Sequence[str] = (),
    ) -> Elementwise:
        """Return the kernel of a function of the elements of ``inputs``. Raises ``ExpressionError``."""
        return cls(name, declared(name, function, operands(inputs), value_type(output)), inputs, output, numbers)

    def __call__(self, *arrays: StridedArray, numbers: Sequence[Any] = (), out: StridedArray | None = None) -> Any:
        """Return a new array, or ``out`` with the result. ``out`` may be one of the arrays or overlap them."""
        return self.general(arrays, numbers, out)

    def general(self, arrays: Sequence[StridedArray], numbers: Sequence[Any], out: StridedArray | None) -> Any:
        """Like ``__call__``, with sequences of arrays and numbers."""
        # One loop over the arrays: comprehensions would be more frames than all else here.
        layouts: list[Any]
        if out is None:
            engine, furthest = arrays[0].engine, 0
            layouts = [engine]
        else:
            engine, furthest = out.engine, out.offset
            layouts = [engine, out.shape, out.strides]
        read, buffers, offsets = [], [], []
        for array in arrays:
            if out is not None and array.buffer is out.buffer:
                array = without_overlap(array, out)
            read.append(array)
            layouts.append((array.shape, array.strides))
            buffers.append(array.buffer)
            offsets.append(array.offset)
            if array.offset > furthest:
                furthest = array.offset
        key: Any = tuple(layouts)
        plan = self.plans.get(key)
        if plan is not None and furthest > plan.max_offset:
            key = (*key, "wide")
            plan = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= MAX_PLANS:
                self.plans.clear()
            plan = self.plans[key] = self.plan(engine, read, out)
        if out is None:
            out = StridedArray(
                engine, engine.allocate(plan.size * self.output.itemsize or 1), plan.shape, plan.strides, 0,
                self.output, plan.size, plan.contiguous,
            )  # fmt: skip
        if plan.launch is not None:
            refusals: tuple[Any, ...] = ()
            if self.refusals:
                refusals = (engine.errors.buffer(), *map(engine.errors.number, self.refusals))
            plan.launch(plan.items, out.buffer, *buffers, out.offset, *offsets, *plan.numbers, *numbers, *refusals)
        return out

    # -- plans --------------------------------------------------------------------------------------------------------
    def plan(self, engine: Engine, arrays: Sequence[StridedArray], out: StridedArray | None) -> ElementwisePlan:
        """Return the plan of a call. Raises ``RuntimeError`` if the shapes do not fit."""
        shape = broadcast([a.shape for a in arrays]) if arrays else out.shape if out else ()
        if out is not None and out.shape != shape and broadcast([shape, out.shape]) != out.shape:
            raise RuntimeError(f"{self.nest.name}: a result of shape {shape} does not fit into {out.shape}")
        shape = shape if out is None else out.shape
        rows = [broadcast_strides(a, shape) for a in arrays]
        order = memory_order(shape, tuple(rows if out is None else (out.strides, *rows)))
        strides = dense_strides(shape, order) if out is None else out.strides
        if is_contiguous_layout(shape, strides) and out is None:
            strides = contiguous_strides(shape)
        size = prod(shape)
        result = (shape, strides, size, is_contiguous_layout(shape, strides))
        if not size:
            return ElementwisePlan(None, 0, (), *result)
        placed = [*arrays, *([] if out is None else [out])]
        furthest = max([extent(a.shape, a.strides) for a in placed], default=0)
        wide = size >= WIDE or is_wide(*placed)
        launch, items, numbers, max_offset = self.launches.schedule(
            engine, shape, (strides, *rows), out is None, wide, furthest
        )
        return ElementwisePlan(launch, items, numbers, *result, max_offset)


class ElementwiseSchedule(NamedTuple):
    """How a kernel is launched for arrays of certain strides."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    """Sizes and strides, the kernel's arguments after the offsets."""
    max_offset: int
    """The largest offset of an array for which the kernel's indices suffice."""


class NotContiguous(Exception):
    """Arrays of other strides than a kernel with random numbers takes."""


class Launches:
    """The launches of a loop nest."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest
        self.flat = OfEngine(self._contiguous)
        """The loop nest over contiguous arrays, the elements per work-item, and the largest new result that it writes
        through the caches.
        """
        self.nontemporal = OfEngine(lambda engine: engine.compile(nontemporal(nest)))
        """The loop nest over contiguous arrays for larger new results, with non-temporal stores."""

    def _contiguous(self, engine: Engine) -> tuple[Launch, int, int]:
        serial = engine.traits.serial
        chunk = CHUNK if serial else self.nest.per_lane
        return engine.compile(self.nest.flat(serial)), chunk, most_through_caches(self.nest, engine)

    def schedule(
        self, engine: Engine, shape: Shape, rows: tuple[Shape, ...], new: bool, wide: bool, furthest: int
    ) -> ElementwiseSchedule:
        """Return the launch over ``shape``, which is not empty.

        ``rows`` are the strides of all arrays, the outputs first. ``new``: the outputs are new memory. ``wide``: an
        index may need more than 32 bits. ``furthest`` is the number of elements that the largest array extends over.
        """
        size = prod(shape)
        order = memory_order(shape, rows)
        ordered = tuple(tuple(row[d] for d in order) for row in rows)
        sizes, loop_strides = collapsed(tuple(shape[d] for d in order), ordered)
        if size == 1 or all(row == (1,) for row in loop_strides):
            launch, chunk, most = self.flat[engine]
            if size > most and new:
                launch = self.nontemporal[engine]
            return ElementwiseSchedule(launch, -(-size // chunk), (size,), sys.maxsize)
        if self.nest.draws:
            raise NotContiguous(self.nest.name)
        if not engine.traits.serial:
            source, count, numbers = lane_schedule(self.nest, sizes, loop_strides, wide)
            max_offset = sys.maxsize if wide else WIDE - 1 - furthest
            return ElementwiseSchedule(engine.compile(source), count, numbers, max_offset)
        source, count, numbers = serial_schedule(self.nest, sizes, loop_strides)
        launch = engine.compile(source)
        if new and size > most_through_caches(self.nest, engine):
            source = serial_schedule(self.nest, sizes, loop_strides, past_caches=True)[0]
            launch = engine.compile(source) if engine.offers(source) else launch
        return ElementwiseSchedule(launch, count, tuple(n & MASK for n in numbers), sys.maxsize)


def lane_schedule(
    nest: LoopNest, sizes: Shape, rows: tuple[Shape, ...], wide: bool
) -> tuple[Source, int, tuple[int, ...]]:
    """Return the kernel for devices whose work-items are lanes, their number, and the numbers that the kernel takes.

    A lane processes a vector along the last dim if all arrays are contiguous or constant along it, and rows start at
    multiples of the vector.
    """
    width, inner = nest.per_lane, tuple([row[-1] for row in rows])
    units = [row for row in rows if row[-1] == 1]
    in_vectors = sizes[-1] % width == 0 and not any(step % width for row in units for step in row[:-1])
    if width > 1 and in_vectors and set(inner[: len(nest.outputs)]) == {1} and set(inner) <= {0, 1}:
        sizes = (*sizes[:-1], sizes[-1] // width)
        rows = tuple([(*row[:-1], row[-1] * width) for row in rows])
        source = rows_of_vectors(nest, len(sizes), inner, wide)
    else:
        source = nest.lanes(len(sizes), wide)
    count = prod(sizes)
    return source, count, (count, *sizes, *[step for row in rows for step in row])


def serial_schedule(
    nest: LoopNest, sizes: Shape, rows: tuple[Shape, ...], past_caches: bool = False
) -> tuple[Source, int, tuple[int, ...]]:
    """Return the loop nest for serial devices, the number of work-items, and the numbers that the kernel takes.

    ``past_caches``: the results are large new memory. They are written past the caches if each row is whole lines.
    """
    band_dim = tiled_dim(rows)
    if band_dim is not None:
        sizes, rows = move_before_last(sizes, band_dim), tuple(move_before_last(row, band_dim) for row in rows)
    rank = next(r for r in RANKS if r >= len(sizes))
    missing = rank - len(sizes)
    sizes = (1,) * missing + sizes
    rows = tuple((0,) * missing + row for row in rows)
    dims = (*sizes, *[step for row in rows for step in row])
    last = sizes[-1]
    steps = [stride_kind(row[-1]) for row in rows]
    inner = tuple(steps) if STEP not in steps else (UNIT if steps[0] == UNIT else STEP, *[STEP] * (len(rows) - 1))
    if inner[0] == HOISTED:
        inner = (STEP, *inner[1:])
    outer = 1
    for n in sizes[:-1]:
        outer *= n
    if band_dim is not None:
        bands = -(-sizes[-2] // tile_size(nest))
        return tiles(nest, rank, tile_kinds(rows, len(nest.outputs)) or inner), outer // sizes[-2] * bands, dims
    segments, width, rows_per_item = 1, last, max(1, CHUNK // last)
    if last >= 2 * CHUNK:
        segments, width = -(-last // CHUNK), CHUNK
    count = -(-outer // rows_per_item) * segments
    lines = inner[0] == UNIT and STEP not in inner and not any(last * d.itemsize % LINE_BYTES for d in nest.outputs)
    source = nontemporal_rows(nest, rank, inner) if past_caches and lines else nest.rows(rank, inner)
    return source, count, (outer, rows_per_item, segments, width, *dims)


def tiled_dim(rows: tuple[Shape, ...]) -> int | None:
    """Return a dim along which an array has a smaller stride than along the last one, or None. Both dims are then
    tiled.
    """
    best = None
    for row in rows[1:]:
        for dim, step in enumerate(row[:-1]):
            if 0 < step < row[-1] and (best is None or step < best[0]):
                best = (step, dim)
    return None if best is None else best[1]


def tile_kinds(rows: tuple[Shape, ...], outputs: int) -> tuple[int, ...] | None:
    """Return the kinds of stride of all arrays, the outputs first, if each is contiguous along one of the two last dims
    or constant along the last one, and every output along the last one: tiles transpose only arrays that are read.
    """
    kinds = tuple(r[-1] if r[-1] in (HOISTED, UNIT) else TRANSPOSED if r[-2] == 1 and r[-1] > 1 else STEP for r in rows)
    return kinds if set(kinds[:outputs]) == {UNIT} and STEP not in kinds else None


def move_before_last(values: Shape, dim: int) -> Shape:
    """Return the values with that of ``dim`` moved before the last one."""
    return (*values[:dim], *values[dim + 1 : -1], values[dim], values[-1])


T = TypeVar("T")


class OfEngine(dict[Engine, T]):
    """What ``make(engine)`` returns for each device, made at the first use."""

    def __init__(self, make: Callable[[Engine], T]) -> None:
        self.make = make

    def __missing__(self, engine: Engine) -> T:
        found = self[engine] = self.make(engine)
        return found


def most_through_caches(nest: LoopNest, engine: Engine) -> int:
    """Return the number of elements of the largest new result that is written through the caches.

    If a result is at most a quarter of the cache, much of it is still cached when the next operator reads it. An
    expression with library calls is bound by computation, and non-temporal stores make it slower. Both were measured.
    """
    traits = engine.traits
    if not traits.serial or nest.uses_library:
        return sys.maxsize
    return traits.cache // 4 // nest.outputs[0].itemsize


def without_overlap(array: StridedArray, out: StridedArray) -> StridedArray:
    """Return the array, or a copy if writing ``out`` element by element would overwrite elements that are still to be
    read.
    """
    if array.buffer is not out.buffer or not overlapping(array, out):
        return array
    if array.shape == out.shape and array.strides == out.strides and array.offset == out.offset:
        return array
    copy: StridedArray = copy_kernel(array.dtype)(array)
    return copy


@lru_cache(64)
def copy_kernel(d: dtype) -> Elementwise:
    """Return the kernel that copies elements of a dtype, as integers of its size, so that all bits are preserved."""
    bits = {1: uint8, 2: uint16, 4: uint32, 8: uint64}.get(d.itemsize, d)
    return Elementwise.of(f"copy_{bits.name}", lambda a: a, (bits,), bits)


@lru_cache(None)
def cast_kernel(source: dtype, target: dtype) -> Elementwise:
    """Return the kernel that converts elements of one dtype to another."""
    return Elementwise.of(f"{source.name}_as_{target.name}", lambda a: converted(a, source, target), (source,), target)
