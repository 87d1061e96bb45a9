"""One expression for every element, over arrays of any layout that broadcast together.

A call is looked up by the shapes and strides of its arrays: a :class:`Plan` says which loop nest serves it, over which
dims, and how the result lies in memory (as the arrays do, where they agree; else in C order).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides, is_contiguous_layout
from candelabra.dtypes import dtype, uint8, uint16, uint32, uint64
from candelabra.errors import IntegerDivisionByZero

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import (
    WIDE,
    aligned,
    broadcast,
    collapsed,
    dense_strides,
    is_wide,
    memory_order,
    overlapping,
)
from candelabra_clike.library import needed
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.loops import CHUNK, HOISTED, NAMES, STEP, TILE, UNIT, Nest

__all__ = ["CHUNK", "Elementwise", "NAMES", "apart", "identity"]

RANKS = (2, 4, 8, 16, 32, 64)
"""Numbers of dims for which there are loop nests of rows; others get dims of size 1."""
PLANS = 4096
"""Plans that are kept, of each expression."""
MASK = (1 << 64) - 1


class Plan(NamedTuple):
    """How arrays of certain shapes and strides are walked."""

    launch: Launch | None
    """None where there is nothing to do."""
    items: int
    numbers: tuple[int, ...]
    """Sizes and strides, as the kernel wants them after the offsets."""
    shape: Shape
    strides: Shape
    size: int
    contiguous: bool


class Elementwise:
    """``out[i] = expression(a[i], b[i], …, s0, s1, …)``.

    ``inputs`` and ``output`` are the dtypes in memory, ``numbers`` the types of the scalars. The expression is of
    values (see :mod:`candelabra_clike.types`) and gives a value of the output.
    """

    def __init__(
        self,
        name: str,
        expression: str,
        inputs: Sequence[dtype],
        output: dtype,
        numbers: Sequence[str] = (),
        contract: bool = False,
    ) -> None:
        self.nest = Nest(name, expression, tuple(inputs), output, tuple(numbers), contract)
        self.output = output
        self.flat: dict[Engine, tuple[Launch, int, int]] = Flat(self.nest)
        self.past_caches: dict[Engine, Launch] = PastCaches(self.nest)
        self._plans: dict[Any, Plan] = {}

    def __call__(self, *arrays: StridedArray, numbers: Sequence[Any] = (), out: StridedArray | None = None) -> Any:
        """A new array, or ``out`` with the result in it; ``out`` may be one of the arrays, or overlap them."""
        return self.general(arrays, numbers, out)

    def general(self, arrays: Sequence[StridedArray], numbers: Sequence[Any], out: StridedArray | None) -> Any:
        """The same, of sequences."""
        if out is None:
            engine = arrays[0].engine
            key: Any = (engine, *[(a.shape, a.strides) for a in arrays])
        else:
            engine = out.engine
            arrays = [apart(array, out) for array in arrays]
            key = (engine, out.shape, out.strides, *[(a.shape, a.strides) for a in arrays])
        if not engine.traits.serial:
            key = (is_wide(*arrays), *key)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            plan = self._plans[key] = self.plan(engine, arrays, out)
        if out is None:
            out = StridedArray(
                engine, engine.allocate(plan.size * self.output.itemsize or 1), plan.shape, plan.strides, 0,
                self.output, plan.size, plan.contiguous,
            )  # fmt: skip
        if plan.launch is not None:
            complaints = (engine.faults.buffer(), engine.faults.number(by_zero)) if self.nest.refuses else ()
            plan.launch(
                plan.items, out.buffer, *[a.buffer for a in arrays], out.offset, *[a.offset for a in arrays],
                *plan.numbers, *numbers, *complaints,
            )  # fmt: skip
        return out

    # -- plans --------------------------------------------------------------------------------------------------------
    def plan(self, engine: Engine, arrays: Sequence[StridedArray], out: StridedArray | None) -> Plan:
        """The plan of a call. ``RuntimeError`` where shapes do not fit."""
        shape = broadcast([a.shape for a in arrays]) if arrays else out.shape if out else ()
        if out is not None and out.shape != shape and broadcast([shape, out.shape]) != out.shape:
            raise RuntimeError(f"{self.nest.name}: a result of shape {shape} does not fit into {out.shape}")
        shape = shape if out is None else out.shape
        rows = [aligned(a, shape) for a in arrays]
        order = memory_order(shape, tuple(rows if out is None else (out.strides, *rows)))
        strides = dense_strides(shape, order) if out is None else out.strides
        if is_contiguous_layout(shape, strides) and out is None:
            strides = contiguous_strides(shape)
        size = 1
        for n in shape:
            size *= n
        result = (shape, strides, size, is_contiguous_layout(shape, strides))
        if not size:
            return Plan(None, 0, (), *result)
        ordered = tuple(tuple(row[d] for d in order) for row in (strides, *rows))
        sizes, walked = collapsed(tuple(shape[d] for d in order), ordered)
        if all(row == (1,) for row in walked):
            launch, chunk, most = self.flat[engine]
            if size > most and out is None:
                launch = self.past_caches[engine]
            return Plan(launch, -(-size // chunk), (size,), *result)
        if not engine.traits.serial:
            wide = size >= WIDE or is_wide(*arrays, *([] if out is None else [out]))
            numbers = (size, *sizes, *[step for row in walked for step in row])
            return Plan(engine.compile(self.nest.lanes(len(sizes), wide)), size, numbers, *result)
        source, count, numbers = serial_walk(self.nest, sizes, walked)
        return Plan(engine.compile(source), count, tuple(n & MASK for n in numbers), *result)


def serial_walk(nest: Nest, sizes: Shape, rows: tuple[Shape, ...]) -> tuple[Source, int, tuple[int, ...]]:
    """The loop nest for devices whose work-items are loops, the number of these, and the numbers that it takes."""
    across = dim_across(rows)
    if across is not None:
        sizes, rows = moved_inside(sizes, across), tuple(moved_inside(row, across) for row in rows)
    rank = next(r for r in RANKS if r >= len(sizes))
    missing = rank - len(sizes)
    sizes = (1,) * missing + sizes
    rows = tuple((0,) * missing + row for row in rows)
    dims = (*sizes, *[step for row in rows for step in row])
    last = sizes[-1]
    steps = [min(row[-1], STEP) if row[-1] >= 0 else STEP for row in rows]
    inner = tuple(steps) if STEP not in steps else (UNIT if steps[0] == UNIT else STEP, *[STEP] * (len(rows) - 1))
    if inner[0] == HOISTED:
        inner = (STEP, *inner[1:])
    outer = 1
    for n in sizes[:-1]:
        outer *= n
    if across is not None:
        bands = -(-sizes[-2] // TILE)
        return nest.tiles(rank, inner), outer // sizes[-2] * bands, dims
    segments, width, together = 1, last, max(1, CHUNK // last)
    if last >= 2 * CHUNK:
        segments, width = -(-last // CHUNK), CHUNK
    count = -(-outer // together) * segments
    return nest.rows(rank, inner), count, (outer, together, segments, width, *dims)


def dim_across(rows: tuple[Shape, ...]) -> int | None:
    """A dim along which some array goes on by fewer elements than along the last one: both then belong in a tile."""
    found = None
    for row in rows[1:]:
        for dim, step in enumerate(row[:-1]):
            if 0 < step < row[-1] and (found is None or step < found[0]):
                found = (step, dim)
    return None if found is None else found[1]


def moved_inside(values: Shape, dim: int) -> Shape:
    """The values with that of one dim moved to the last place but one."""
    return (*values[:dim], *values[dim + 1 : -1], values[dim], values[-1])


class Flat(dict[Engine, tuple[Launch, int, int]]):
    """The nest of contiguous arrays on each device, how many elements a work-item takes, and how many a new result has
    at most for which it is the right one.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest

    def __missing__(self, engine: Engine) -> tuple[Launch, int, int]:
        traits = engine.traits
        source = self.nest.flat(traits.serial)
        most = sys.maxsize
        if traits.serial and not needed(source.body):
            # Of a result of a quarter of the cache much is still there when the next operator reads it. What calls a
            # function of the library is slower to compute than to write, and slower yet beside. Both are measured.
            most = traits.cache // 4 // self.nest.output.itemsize
        self[engine] = found = engine.compile(source), CHUNK if traits.serial else 1, most
        return found


class PastCaches(dict[Engine, Launch]):
    """The nest of contiguous arrays for new results that are larger than that."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest

    def __missing__(self, engine: Engine) -> Launch:
        found = self[engine] = engine.compile(self.nest.past_caches())
        return found


def by_zero(*_: object) -> Exception:
    """What a kernel complains about that says ``BAD``."""
    return IntegerDivisionByZero("ZeroDivisionError: integer division or modulo by zero")


def apart(array: StridedArray, out: StridedArray) -> StridedArray:
    """The array, or a copy of it where writing ``out`` element by element would change what is still to be read."""
    if array.buffer is not out.buffer or not overlapping(array, out):
        return array
    if array.shape == out.shape and array.strides == out.strides and array.offset == out.offset:
        return array
    copy: StridedArray = identity(array.dtype)(array)
    return copy


@lru_cache(64)
def identity(d: dtype) -> Elementwise:
    """The copy of elements of a dtype, as integers of its size: every bit arrives."""
    bits = {1: uint8, 2: uint16, 4: uint32, 8: uint64}.get(d.itemsize, d)
    return Elementwise(f"copy_{bits.name}", "{a}", (bits,), bits)
