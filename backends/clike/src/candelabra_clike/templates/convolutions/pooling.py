"""Pooling over the last dims of an array: maximum with index, sum, and the gradient of the sum.

Every kernel gathers: a work-item reduces the window of an output element, position by position in C order, so results
do not depend on the launch. The geometry of small windows is a constant of the kernel, and the compiler unrolls their
loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import COMPLEX, FLOATING, dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, Value, Variable, all_declared, and_then, cast, constant, lowest, select
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import WIDE, collapsed
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import declare_offsets, flat_index, outer_coordinates
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


@dataclass(frozen=True, eq=False)
class WindowReduction:
    """The reduction of the elements of a window, of type ``element``, to a value of type ``state``.

    ``more`` returns the value after an element, from the value ``a0`` before it, which is ``first`` in the beginning,
    and the element ``v``. For windows without padding ``interior`` returns the initial value from the first element,
    and ``more_interior`` is ``more`` unless it is given.

    With ``with_index``, each of them returns a position, too: ``a1`` is that before an element, at first -1, and ``at``
    is the position of the element. Raises ``ExpressionError`` for a wrong expression.
    """

    name: str
    element: str
    state: str
    first: float
    more: Callable[..., Any]
    interior: Callable[..., Any]
    more_interior: Callable[..., Any] | None = None
    with_index: bool = False
    adjoint: bool = False

    def __post_init__(self) -> None:
        v, at = Variable(self.element, "v"), Variable("i32", "at")
        self.after(self.initial("i32"), v, at)
        self.after(self.initial("i32", v), v, at, interior=True)

    def initial(self, position: str, v: Value | None = None) -> list[Value]:
        """Return the value before the first element, of a window without padding from that element ``v``. ``position``
        is the type of positions.
        """
        types = [self.state, *[position] * self.with_index]
        if v is None:
            return [constant(type, first) for type, first in zip(types, (self.first, -1))]
        return all_declared(repr(self.name), self.interior, {"v": v}, [(type,) for type in types])

    def after(self, before: Sequence[Value], v: Value, at: Value, interior: bool = False) -> list[Value]:
        """Return the value after an element at a position."""
        function = self.more_interior if interior and self.more_interior else self.more
        known = {**{f"a{n}": value for n, value in enumerate(before)}, "v": v, "at": at}
        return all_declared(repr(self.name), function, known, [(value.type,) for value in before])


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

    def first_or_larger(a0: Value, a1: Value, v: Value, at: Value) -> tuple[Value, Value]:
        better = (a1 < 0) | larger(a0, v)
        return select(better, v, a0), select(better, at, a1)

    def larger_of(a0: Value, a1: Value, v: Value, at: Value) -> tuple[Value, Value]:
        better = larger(a0, v)
        return select(better, v, a0), select(better, at, a1)

    if not with_index:
        return WindowReduction(f"max_pool_values_{d.name}", value, value, lowest(value), largest, lambda v: v)
    return WindowReduction(
        f"max_pool_{d.name}", value, value, lowest(value), first_or_larger, lambda v: (v, 0), larger_of, with_index=True
    )


def sum_reduction(d: dtype, adjoint: bool = False) -> WindowReduction:
    """The sum of the elements. Sums of integers wrap around."""
    value = CTYPES[d].value
    exact = d.category in (COMPLEX, FLOATING)
    state = value if exact else f"u{value[1:]}"

    def plus(a0: Value, v: Value) -> Value:
        return a0 + v if exact else cast(state, a0 + cast(state, v))

    name = f"sum_pool{'_adjoint' if adjoint else ''}_{d.name}"
    return WindowReduction(name, value, state, 0, plus, lambda: 0, adjoint=adjoint)


# -- plans ------------------------------------------------------------------------------------------------------------
def pool(x: StridedArray, fold: WindowReduction, shape: Shape, *geometry: Shape) -> list[StridedArray]:
    """Return the results for the windows of ``x``, whose last dims are those of ``geometry``: the window's size,
    stride, padding and dilation.
    """
    outs = [x.engine.empty(shape, d) for d in (x.dtype, *[int64] * fold.with_index)]
    if outs[0].size:
        form, extents = PoolingGeometry(*map(tuple, geometry)), shape[-len(geometry[0]) :]
        plan = planned(x.engine, x.shape, x.strides, x.dtype, form, extents, fold, x.offset >= WIDE // 2)
        plan.launch(plan.items, *[out.buffer for out in outs], x.buffer, x.offset, *plan.numbers)
    return outs


@lru_cache(4096)
def planned(
    engine: Engine, shape: Shape, strides: Shape, d: dtype, geometry: PoolingGeometry, extents: Shape,
    fold: WindowReduction, far: bool,
) -> PoolingPlan:  # fmt: skip
    """Return the plan of a call."""
    rank, lead = len(extents), len(shape) - len(extents)
    planes, (steps,) = collapsed(shape[:lead], (strides[:lead],))
    rows, size = prod(planes) * prod(extents[:-1]), prod(planes) * prod(extents)
    # Positions in the padding count too: those before 0, which wrap around, and those after the end.
    margin = sum(map(prod, zip(geometry.window, geometry.dilation))) + sum(geometry.padding)
    furthest = max(
        size, max_offset(shape, strides), prod(shape[lead:]), *[m * t for m, t in zip(extents, geometry.stride)]
    )
    wide, serial = far or furthest + margin >= WIDE // 2, engine.traits.serial
    fixed = geometry if prod(geometry.window) <= SMALL and size >= GRAIN else None
    form = PoolingForm(
        fold, d, rank, len(planes), strides[-1] == 1, serial, wide, fixed, any(k > 1 for k in geometry.dilation),
        fixed is not None and extents[-1] < LANES,
    )  # fmt: skip
    numbers = (*planes, *extents, *shape[lead:], *steps, *strides[lead:])
    if fixed is None:
        numbers += (*geometry.window, *geometry.stride, *geometry.padding, *geometry.dilation)
    launch = engine.compile(source(form))
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


# -- kernels ----------------------------------------------------------------------------------------------------------
@built("pool")
def source(form: PoolingForm) -> Source:
    """Return the kernel of a form."""
    return PoolingKernel(form).source()


class PoolingKernel:
    """The kernel of a form: a work-item computes several rows of the result, or one element."""

    def __init__(self, form: PoolingForm) -> None:
        self.form, self.fold, rank = form, form.fold, form.rank
        self.position = "i64" if form.wide else "i32"
        marks = f"{'_apart' * form.dilated}{'_fixed' * (form.fixed is not None)}"
        self.kernel = k = KernelBuilder(f"{form.fold.name}_{rank}d{marks}", form.wide)
        self.out = k.writes("out", form.dtype)
        if self.fold.with_index:
            self.at = k.writes("at", "i64")
        self.x, self.x_at = k.reads("x", form.dtype), k.number("x_at")
        if form.serial:
            self.rows, self.rows_per_item, self.low, self.high = k.numbers("rows", "rows_per_item", "low", "high")
        self.lead, self.windows, self.sizes = k.per_dim("l", form.lead), k.per_dim("m", rank), k.per_dim("n", rank)
        self.lead_steps, steps = k.per_dim("x_l", form.lead), k.per_dim("x_s", rank)
        self.steps: list[Value] = [*steps[:-1], constant(INDEX, 1) if form.adjacent else steps[-1]]
        if form.fixed is None:
            geometry = [k.per_dim(letter, rank) for letter in "wtqd"]
        else:
            named = zip("wtqd", form.fixed, strict=True)
            geometry = [[k.let(f"{n}{d}", constant(INDEX, v)) for d, v in enumerate(values)] for n, values in named]
        self.window, self.stride, self.padding, self.dilation = geometry

    def source(self) -> Source:
        """Return the kernel."""
        k, count = self.kernel, self.windows[-1]
        if self.form.serial:
            with k.share("row", self.rows, self.rows_per_item) as row:
                self._locate(row)
                self._row(row)
        else:
            self._locate(k.let("row", k.item // count))
            self._element(k.item, k.let("o", k.item % count))
        return k.source(group=1 if self.form.serial else None)

    def _locate(self, row: Value) -> None:
        """Declare the coordinates of a row along all dims but the last, and the offset of its plane in ``x``."""
        k = self.kernel
        plane, self.outer = outer_coordinates(k, "plane", row, self.windows[:-1])
        self.x_row = declare_offsets(k, {"x": self.x_at}, {"x": self.lead_steps}, plane, self.lead)["x"]

    # -- elements one by one ------------------------------------------------------------------------------------------
    def _element(self, to: Value, last: Value) -> None:
        """Compute element ``to`` of the result, with coordinate ``last``, from the elements of its window."""
        k, fold = self.kernel, self.fold
        state = self._declare(fold.initial(self.position))
        with ExitStack() as loops:
            i = [loops.enter_context(self._each_position(d, o)) for d, o in enumerate([*self.outer, last])]
            v = k.let("v", self.x[self.x_row + inner(i, self.steps)])
            at = cast(self.position, flat_index(i, self.sizes))
            k.assign_all(state, fold.after(state, v, at))
        self.out[to] = cast(self.out.type, state[0])
        if fold.with_index:
            self.at[to] = cast("i64", state[1])

    def _declare(self, values: Sequence[Value]) -> list[Variable]:
        return [self.kernel.variable(f"best{n}", value) for n, value in enumerate(values)]

    @contextmanager
    def _each_position(self, d: int, o: Value) -> Iterator[Value]:
        """A loop along a dim over the positions of window ``o`` that are not padding: the index of the input."""
        k, window, size = self.kernel, self.window[d], self.sizes[d]
        stride, padding, dilation = self.stride[d], self.padding[d], self.dilation[d]
        if not self.fold.adjoint:
            with k.loop(f"k{d}", 0, window) as tap:
                i = k.let(f"i{d}", o * stride + tap * dilation - padding)
                with k.when(i < size):
                    yield i
        elif self.form.dilated:
            with k.loop(f"k{d}", 0, window) as tap:
                place = k.let(f"u{d}", o + padding - tap * dilation)
                i = k.let(f"i{d}", place // stride)
                with k.when(and_then(i * stride == place, i < size)):
                    yield i
        else:  # every stride-th position belongs to a window; the next one belongs to the previous window
            before = k.variable(f"i{d}", (o + padding) // stride)
            with k.loop(f"k{d}", (o + padding) % stride, window, stride):
                with k.when(before < size):
                    yield before
                k.assign(before, before - 1)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _row(self, row: Value) -> None:
        """Compute a row: windows without padding in a loop without conditions, the others one by one."""
        k, count = self.kernel, self.windows[-1]
        if self.fold.adjoint:
            with k.loop("j", 0, k.let("many", cast("i32", count)), independent=True) as j:
                last = k.let("o", cast(INDEX, j))
                self._element(row * count + last, last)
            return
        corner = [k.let(f"corner{d}", o * self.stride[d] - self.padding[d]) for d, o in enumerate(self.outer)]
        extents = zip(corner, self.window, self.dilation, self.sizes)
        within = [and_then(c < n, c + (w - 1) * dilation < n) for c, w, dilation, n in extents]
        whole = k.let("whole", and_then(constant("bool", 1), *within))
        start, stop = k.let("start", select(whole, self.low, count)), k.let("stop", select(whole, self.high, count))
        with k.loop("o", 0, count) as o:
            with k.when(o == start):
                k.assign(o, stop)
            with k.when(o < count):
                self._element(row * count + o, o)
        with k.when(start < stop):
            self._interior(row, [*corner, self.low * self.stride[-1] - self.padding[-1]])

    def _interior(self, row: Value, corner: Sequence[Value]) -> None:
        """Compute the windows ``low`` to ``high`` of a row, which have no padding. The first begins at ``corner``."""
        k, fold, to = self.kernel, self.fold, row * self.windows[-1] + self.low
        from_x, out = k.pointer("from_x", self.x, self.x_row + inner(corner, self.steps)), k.pointer("to", self.out, to)
        if fold.with_index:
            at, first = k.pointer("to_at", self.at, to), k.let("first", flat_index(corner, self.sizes))
        many = k.let("many", cast("i32", self.high - self.low))
        with k.loop("j", 0, many, independent=True, few=self.form.short) as j:
            here = k.pointer("here", from_x, j * cast(self.position, self.stride[-1] * self.steps[-1]))
            state = self._declare(fold.initial(self.position, k.let("first_here", here[0])))
            with ExitStack() as loops:
                unrolled = self.form.fixed is not None
                each = [k.loop(f"k{d}", 0, w, unrolled=unrolled) for d, w in enumerate(self.window)]
                i = [loops.enter_context(loop) * self.dilation[d] for d, loop in enumerate(each)]
                v = k.let("v", here[inner(i, self.steps)])
                k.assign_all(state, fold.after(state, v, cast(self.position, flat_index(i, self.sizes)), interior=True))
            out[j] = cast(out.type, state[0])
            if fold.with_index:
                at[j] = cast("i64", first + cast(INDEX, j) * self.stride[-1] + cast(INDEX, state[1]))


def inner(coordinates: Sequence[Value], strides: Sequence[Value]) -> Value:
    """Return the offset of an element."""
    first, *others = [coordinate * stride for coordinate, stride in zip(coordinates, strides, strict=True)]
    return sum(others, start=first)
