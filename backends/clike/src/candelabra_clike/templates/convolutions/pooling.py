"""Pooling over the last dims of an array: maximum with index, sum, and the gradient of the sum.

Every kernel gathers: a work-item reduces the window of an output element, position by position in C order, so results
do not depend on the launch. The geometry of small windows is a constant of the kernel, and the compiler unrolls their
loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import COMPLEX, FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import (
    Value,
    Variable,
    all_declared,
    assignments,
    cast,
    constant,
    highest,
    lowest,
    select,
)
from candelabra_clike.language import text as text_of
from candelabra_clike.layouts import WIDE, collapsed
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.reduction_dims import max_offset
from candelabra_clike.types import CTYPES

GRAIN = 2048
"""Elements of the result per work-item on serial devices."""
SMALL = 16
"""The maximum window size that is a constant of the kernel, if there are enough elements."""

LANES = 8
"""Rows of fewer elements are computed in one partial vector."""


class PoolingGeometry(NamedTuple):
    """The geometry of windows: size, stride, padding and dilation."""

    window: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @property
    def named(self) -> Iterator[tuple[str, int]]:
        """The names of these numbers in sources: ``w0 w1 …``, ``t0 …``, ``q0 …``, ``d0 …``."""
        for letter, values in zip("wtqd", self, strict=True):
            for dim, value in enumerate(values):
                yield f"{letter}{dim}", value


@dataclass(frozen=True, eq=False)
class WindowReduction:
    """The reduction of the elements of a window, of type ``element``, to a value of type ``state``.

    ``more`` returns the value after an element, from the value ``a0`` before it, which is ``first`` in the beginning,
    and the element ``v``. For windows without padding ``interior`` returns the initial value from the first element,
    and ``more_interior`` is the same as ``more``.

    With ``with_index``, each of them returns a position, too: ``a1`` is that before an element, at first the largest
    index, and ``at`` is the position of the element. ``index`` is the type of positions. Raises ``ExpressionError`` for
    a wrong expression.
    """

    name: str
    element: str
    state: str
    first: float
    more: Callable[..., Any]
    interior: Callable[..., Any]
    more_interior: Callable[..., Any]
    with_index: bool = False
    adjoint: bool = False

    def __post_init__(self) -> None:
        for index in ("u32", "u64"):
            for interior in (True, False):
                self.declare(index, interior)
                self.add(index, "0", interior)

    def declare(self, index: str, interior: bool) -> str:
        """Return declarations of the variables ``best0``, ``best1``."""
        types = self._types(index)
        values = [constant(type, first) for type, first in zip(types, (self.first, highest(index)))]
        if interior:
            known = {"v": Variable(self.element, "v"), "index": index}
            values = all_declared(repr(self.name), self.interior, known, [(type,) for type in types])
        return " ".join(f"{type} best{k} = {text_of(v)};" for k, (type, v) in enumerate(zip(types, values)))

    def add(self, index: str, at: str, interior: bool) -> str:
        """Return statements that add element ``v`` at a position."""
        types = self._types(index)
        known: dict[str, Any] = {f"a{k}": Variable(type, f"best{k}") for k, type in enumerate(types)}
        known |= {"v": Variable(self.element, "v"), "at": Variable(index, f"({at})"), "index": index}
        function = self.more_interior if interior else self.more
        values = all_declared(repr(self.name), function, known, [(type,) for type in types])
        return assignments([f"best{k}" for k in range(len(types))], values)

    def _types(self, index: str) -> list[str]:
        return [self.state, *[index] * self.with_index]


class PoolingForm(NamedTuple):
    """The properties that a kernel is compiled for. ``adjacent``: the elements along the last dim are adjacent."""

    fold: WindowReduction
    dtype: dtype
    rank: int
    lead: int
    adjacent: bool
    serial: bool
    wide: bool
    fixed: PoolingGeometry | None
    dilated: bool
    """Whether the dilation is greater than 1."""
    short: bool
    """Whether rows of the result are shorter than vectors."""

    @property
    def index_type(self) -> str:
        """The type of indices."""
        return "u64" if self.wide else "u32"


class PoolingPlan(NamedTuple):
    """The kernel for arrays of certain shapes and strides, and its arguments after buffers and offset."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]


def max_reduction(d: dtype, with_index: bool) -> WindowReduction:
    """The first of the largest elements, or the last NaN. A window without elements gives the lowest number and index
    -1.
    """
    value = CTYPES[d].value

    def larger(a0: Value, v: Value) -> Value:
        return (v > a0) | (v != v) if d.category == FLOATING else v > a0

    def largest(a0: Value, v: Value) -> Value:
        return select(larger(a0, v), v, a0)

    def first_or_larger(a0: Value, a1: Value, v: Value, at: Value, index: str) -> tuple[Value, Value]:
        better = (a1 == highest(index)) | larger(a0, v)
        return select(better, v, a0), select(better, at, a1)

    def larger_of(a0: Value, a1: Value, v: Value, at: Value) -> tuple[Value, Value]:
        better = larger(a0, v)
        return select(better, v, a0), select(better, at, a1)

    if not with_index:
        return WindowReduction(f"max_pool_values_{d.name}", value, value, lowest(value), largest, lambda v: v, largest)
    return WindowReduction(
        f"max_pool_{d.name}", value, value, lowest(value), first_or_larger,
        lambda v, index: (v, constant(index, 0)), larger_of, with_index=True,
    )  # fmt: skip


def sum_reduction(d: dtype, adjoint: bool = False) -> WindowReduction:
    """The sum of the elements. Sums of integers wrap around."""
    value = CTYPES[d].value
    exact = d.category in (COMPLEX, FLOATING)
    state = value if exact else f"u{value[1:]}"

    def add(a0: Value, v: Value) -> Value:
        return a0 + v if exact else cast(state, a0 + cast(state, v))

    name = f"sum_pool{'_adjoint' if adjoint else ''}_{d.name}"
    return WindowReduction(name, value, state, 0, add, lambda: constant(state, 0), add, adjoint=adjoint)


# -- plans ------------------------------------------------------------------------------------------------------------
def pool(
    x: StridedArray, geometry: PoolingGeometry, extents: Shape, fold: WindowReduction, outs: Sequence[StridedArray]
) -> None:
    """Reduce the windows of ``x`` into contiguous results, whose last dims are ``extents``."""
    if not outs[0].size:
        return
    plan = planned(x.engine, x.shape, x.strides, x.dtype, geometry, extents, fold, x.offset >= WIDE // 2)
    plan.launch(plan.items, *[out.buffer for out in outs], x.buffer, x.offset, *plan.numbers)


@lru_cache(4096)
def planned(
    engine: Engine,
    shape: Shape,
    strides: Shape,
    d: dtype,
    geometry: PoolingGeometry,
    extents: Shape,
    fold: WindowReduction,
    far: bool,
) -> PoolingPlan:
    """Return the plan of a call."""
    rank = len(extents)
    lead = len(shape) - rank
    planes, (steps,) = collapsed(shape[:lead], (strides[:lead],))
    rows = prod(planes) * prod(extents[:-1])
    size = rows * extents[-1]
    # Positions in the padding count too: those before 0, which wrap around, and those after the end.
    margin = sum(map(prod, zip(geometry.window, geometry.dilation))) + sum(geometry.padding)
    furthest = max(
        size, max_offset(shape, strides), prod(shape[lead:]), *[m * t for m, t in zip(extents, geometry.stride)]
    )
    wide = far or furthest + margin >= WIDE // 2
    serial = engine.traits.serial
    fixed = geometry if prod(geometry.window) <= SMALL and size >= GRAIN else None
    form = PoolingForm(
        fold, d, rank, len(planes), strides[-1] == 1, serial, wide, fixed, any(k > 1 for k in geometry.dilation),
        fixed is not None and extents[-1] < LANES,
    )  # fmt: skip
    numbers = (*planes, *extents, *shape[lead:], *steps, *strides[lead:])
    if fixed is None:
        numbers += tuple(value for _, value in geometry.named)
    launch = engine.compile(text(form))
    if not serial:
        return PoolingPlan(launch, size, numbers)
    pieces = max(1, min(size // GRAIN, 16 * engine.traits.compute_units))
    rows_per_item = -(-rows // pieces)
    low, high = interior_windows(geometry, shape[-1], extents[-1])
    return PoolingPlan(launch, -(-rows // rows_per_item), (rows, rows_per_item, low, high, *numbers))


def interior_windows(geometry: PoolingGeometry, size: int, windows: int) -> tuple[int, int]:
    """Return the range of windows along the last dim that do not overlap the padding."""
    window, stride, padding, dilation = (row[-1] for row in geometry)
    low = min(-(-padding // stride), windows)
    high = (size - 1 + padding - (window - 1) * dilation) // stride + 1
    return low, min(max(high, low), windows)


# -- texts ------------------------------------------------------------------------------------------------------------
def text(form: PoolingForm) -> Source:
    """Return the kernel: a work-item computes several rows of the result, or one element."""
    fold, last = form.fold, form.rank - 1
    memory = CTYPES[form.dtype].memory
    own = ("rows", "rows_per_item", "low", "high") if form.serial else ()
    geometry = () if form.fixed else tuple([f"{letter}{d}" for letter in "wtqd" for d in range(form.rank)])
    parameters: tuple[KernelParameter, ...] = (
        writes("out", memory), *([writes("at", "i64")] if fold.with_index else []), reads("x", memory), number("x_at"),
        *map(number, own), *index_walker.size_parameters(form.lead, "l"), *index_walker.size_parameters(form.rank, "m"),
        *index_walker.size_parameters(form.rank), *index_walker.stride_parameters(("x",), form.lead, "_l"),
        *index_walker.stride_parameters(("x",), form.rank), *map(number, geometry),
    )  # fmt: skip
    fixed = "".join([f"const INDEX {n} = {v};\n" for n, v in (form.fixed.named if form.fixed else ())])
    one = f"const INDEX to = row * m{last} + o{last};\n{element(form)}"
    if form.serial:
        body = (
            f"{fixed}const INDEX begin = GLOBAL_ID * rows_per_item;\n"
            "const INDEX end = begin + rows_per_item < rows ? begin + rows_per_item : rows;\n"
            f"for (INDEX row = begin; row < end; ++row) {{\n{row_position(form)}{row_text(form, one)}}}"
        )
    else:
        body = (
            f"{fixed}const INDEX row = GLOBAL_ID / m{last}, o{last} = GLOBAL_ID % m{last};\n{row_position(form)}{one}"
        )  # fmt: skip
    name = f"{fold.name}_{form.rank}d{'_apart' if form.dilated else ''}{'_fixed' if form.fixed else ''}"
    return Source(name, parameters, body, group=1 if form.serial else None, wide=form.wide)


def row_position(form: PoolingForm) -> str:
    """Return statements for the position of row ``row``: indices ``o0 …`` along all dims but the last, and offset
    ``x_row``.
    """
    outer = index_walker.declare_coordinates("o", "plane", form.rank - 1, "m")
    return f"INDEX plane = row;\n{outer}" + index_walker.row_offsets(("x",), form.lead, "plane", "l", "_l")


def element(form: PoolingForm) -> str:
    """Return statements that compute one element of the result from the elements of its window."""
    fold, c = form.fold, CTYPES[form.dtype]
    lines, flat, index = [fold.declare(form.index_type, False)], "0", form.index_type
    for d in range(form.rank):
        lines.append(window_loop(form, d))
        flat = f"({flat}) * n{d} + i{d}" if d else "i0"
    offset = " + ".join(["x_row", *[f"i{d} * {stride_of(form, d)}" for d in range(form.rank)]])
    lines.append(f"const {c.value} v = {c.load(f'x[{offset}]')};\n{fold.add(index, flat, False)}")
    last = f"out[to] = {c.store('best0')};"
    if fold.with_index:
        last += " at[to] = best1 == (INDEX)-1 ? (i64)-1 : (i64)best1;"
    return "\n".join([*lines, "}}" * form.rank, last]) + "\n"


def window_loop(form: PoolingForm, d: int) -> str:
    """Return the loop along a dim over the positions ``k`` of a window that are not padding, at index ``i`` of the
    input.
    """
    if not form.fold.adjoint:
        interior_windows = f"const INDEX i{d} = o{d} * t{d} + k{d} * d{d} - q{d};\nif (i{d} < n{d}) {{"
    elif form.dilated:
        interior_windows = (
            f"const INDEX u{d} = o{d} + q{d} - k{d} * d{d}, i{d} = u{d} / t{d};\n"
            f"if (i{d} * t{d} == u{d} && i{d} < n{d}) {{"
        )
    else:  # every t-th position belongs to a window; the next one belongs to the previous window
        start = f"INDEX i{d} = (o{d} + q{d}) / t{d}, k{d} = (o{d} + q{d}) % t{d}"
        return f"for ({start}; k{d} < w{d}; k{d} += t{d}, --i{d}) {{ if (i{d} < n{d}) {{"
    return f"for (INDEX k{d} = 0; k{d} < w{d}; ++k{d}) {{\n{interior_windows}"


def stride_of(form: PoolingForm, d: int) -> str:
    """Return the stride of ``x`` along a dim."""
    return "1" if form.adjacent and d == form.rank - 1 else f"x_s{d}"


def row_text(form: PoolingForm, one: str) -> str:
    """Return statements that compute a row: interior windows in a loop without conditions, the others one by one."""
    last = form.rank - 1
    if form.fold.adjoint:
        each = f"const INDEX o{last} = (INDEX)j;\n{one}"
        return f"const int many = (int)m{last};\nINDEPENDENT\nfor (int j = 0; j < many; ++j) {{\n{each}}}\n"
    outer = [f"o{d} * t{d} - q{d} < n{d} && o{d} * t{d} - q{d} + (w{d} - 1) * d{d} < n{d}" for d in range(last)]
    return (
        f"const u32 good = {' && '.join(outer) or '1'};\n"
        f"const INDEX from = good ? low : m{last}, until = good ? high : m{last};\n"
        f"for (INDEX o{last} = 0; o{last} < m{last}; ++o{last}) {{\n"
        f"if (o{last} == from) o{last} = until;\nif (o{last} < m{last}) {{\n{one}}}\n}}\n"
        f"if (from < until) {{\n{interior(form)}}}\n"
    )


def interior(form: PoolingForm) -> str:
    """Return the loop over the windows ``low`` to ``high`` of a row, which do not overlap the padding."""
    fold, c, last = form.fold, CTYPES[form.dtype], form.rank - 1
    outer = [f"(o{d} * t{d} - q{d}) * {stride_of(form, d)}" for d in range(last)]
    start = " + ".join(["x_row", *outer, f"(low * t{last} - q{last}) * {stride_of(form, last)}"])
    with_index = [f"(o{d} * t{d} - q{d}) * {plane_stride(d, last)}" for d in range(last)]
    first = " + ".join([*with_index, f"low * t{last} - q{last}"])
    along = f"j * ({'i64' if form.wide else 'int'})(t{last} * {stride_of(form, last)})"
    within = " + ".join([f"k{d} * d{d} * {stride_of(form, d)}" for d in range(form.rank)])
    at = " + ".join([f"k{d} * d{d} * {plane_stride(d, last)}" for d in range(form.rank)])
    unroll = "UNROLL\n" if form.fixed else ""
    loops = "".join([f"{unroll}for (INDEX k{d} = 0; k{d} < w{d}; ++k{d})\n" for d in range(form.rank)])
    stores = f"GLOBAL {c.memory}* const out_near = out + (row * m{last} + low);\n"
    ending = f"out_near[j] = {c.store('best0')};"
    if fold.with_index:
        stores += f"GLOBAL i64* const at_near = at + (row * m{last} + low);\nconst INDEX first = {first};\n"
        ending += f" at_near[j] = (i64)(first + (INDEX)j * t{last} + best1);"
    return (
        f"GLOBAL const {c.memory}* const from_here = x + ({start});\n{stores}"
        "const int many = (int)(high - low);\n"
        f"INDEPENDENT{'_FEW' if form.short else ''}\nfor (int j = 0; j < many; ++j) {{\n"
        f"GLOBAL const {c.memory}* const p = from_here + {along};\n"
        f"{c.value} v = {c.load('p[0]')}; {fold.declare(form.index_type, True)}\n"
        f"{loops}{{ v = {c.load(f'p[{within}]')}; {fold.add(form.index_type, at, True)} }}\n{ending}\n}}\n"
    )


def plane_stride(d: int, last: int) -> str:
    """Return the stride of a dim in a contiguous plane."""
    return " * ".join([f"n{e}" for e in range(d + 1, last + 1)]) or "1"
