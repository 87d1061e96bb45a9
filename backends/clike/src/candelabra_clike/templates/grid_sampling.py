"""Interpolation at the points of a grid, and its gradients with respect to the input and to the grid.

A work-item finds the neighbours of some points and their weights, and then processes channel by channel. On serial
devices it has a block of points, which the compiler vectorises, on others a single one. The adjoint scatters: a
work-item fills whole planes in the order of the points, so results do not depend on the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import product
from operator import and_, mul
from typing import NamedTuple

from candelabra.dtypes import dtype, float32

from candelabra_clike.language import INDEX, Value, call, cast, constant, select, value_type
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source

LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
BLOCK = 64
"""Points of a work-item on serial devices."""


class GridForm(NamedTuple):
    """The properties that a kernel is compiled for."""

    dtype: dtype
    rank: int
    mode: int
    padding: int
    align_corners: bool
    serial: bool
    wide: bool

    @property
    def taps(self) -> int:
        """The number of neighbours of a point along each dim."""
        return {LINEAR: 2, NEAREST: 1, CUBIC: 4}[self.mode]

    @property
    def neighbours(self) -> list[tuple[int, ...]]:
        """The neighbours of a point: the number of the neighbour along each dim."""
        return list(product(range(self.taps), repeat=self.rank))

    @property
    def value(self) -> str:
        """The type of values, coordinates and weights."""
        return value_type(self.dtype)

    @property
    def position(self) -> str:
        """The type of the position of an element in its plane."""
        return "i64" if self.wide else "i32"

    @property
    def block(self) -> int:
        """The number of points of a work-item at a time."""
        return BLOCK if self.serial else 1

    @property
    def name(self) -> str:
        """The part of the name of a kernel that tells forms apart."""
        return f"{self.rank}d_{self.dtype.name}_{self.mode}{self.padding}{int(self.align_corners)}"


# -- kernels ----------------------------------------------------------------------------------------------------------
@built("grid_sampler")
def sampler(form: GridForm) -> Source:
    """Return the kernel of the interpolated values."""
    k = KernelBuilder(f"grid_sampler_{form.name}", form.wide)
    out, x, grid = k.writes("out", form.dtype), k.reads("x", form.dtype), k.reads("grid", form.dtype)
    x_at = k.number("x_at")
    points = Points(k, form, grid)
    points.of_block()
    points.find_neighbours()
    with points.each_channel() as (_, planes):
        from_x = k.pointer("from", x, x_at + planes * points.plane)
        to = k.pointer("to", out, planes * points.count + points.first)
        with points.each_point() as j:
            total = k.variable("sum", constant(form.value, 0))
            with points.each_neighbour() as n:
                k.assign(total, total + points.weight[n, j] * points.element(from_x, n, j))
            to[j] = total
    return k.source()


@built("grid_sampler_grid_gradient")
def grid_gradient(form: GridForm) -> Source:
    """Return the kernel of the gradient with respect to the grid."""
    k, dims = KernelBuilder(f"grid_sampler_grid_gradient_{form.name}", form.wide), range(form.rank)
    out, grad = k.writes("out", form.dtype), k.reads("grad", form.dtype)
    x, grid = k.reads("x", form.dtype), k.reads("grid", form.dtype)
    grad_at, x_at = k.numbers("grad_at", "x_at")
    points = Points(k, form, grid)
    points.of_block()
    points.find_neighbours(slopes=True)
    totals = [k.fill(k.array(f"sums{d}", form.value, form.block), points.many) for d in dims]
    with points.each_channel() as (_, planes):
        from_x = k.pointer("from", x, x_at + planes * points.plane)
        gradients = k.pointer("gradients", grad, grad_at + planes * points.count + points.first)
        with points.each_point() as j:
            sums = [k.variable(f"sum{d}", totals[d][j]) for d in dims]
            gradient = k.let("gradient", gradients[j])
            with points.each_neighbour() as n:
                weighted = k.let("weighted", gradient * points.element(from_x, n, j))
                for d in dims:
                    k.assign(sums[d], sums[d] + weighted * points.slopes[d][n, j])
            for d in dims:
                totals[d][j] = sums[d]
    to = k.pointer("to", out, (points.batch * points.count + points.first) * form.rank)
    with k.loop("j", 0, points.many) as j:
        for d in dims:
            to[j * form.rank + (form.rank - 1 - d)] = totals[d][j]
    return k.source()


@built("grid_sampler_adjoint")
def adjoint(form: GridForm) -> Source:
    """Return the kernel of the gradient with respect to the input, for serial devices: planes of several channels."""
    k = KernelBuilder(f"grid_sampler_adjoint_{form.name}", form.wide)
    out = k.writes("out", float32 if form.dtype.is_half else form.dtype)
    grad, grid = k.reads("grad", form.dtype), k.reads("grid", form.dtype)
    grad_at, groups, per_item = k.numbers("grad_at", "groups", "per_item")
    points = Points(k, form, grid)
    points.batch = k.let("batch", k.item // groups)
    begin = k.let("begin", k.item % groups * per_item)
    end = k.let("end", least(begin + per_item, points.channels))
    planes = k.pointer("planes", out, (points.batch * points.channels + begin) * points.plane)
    k.fill(planes, (end - begin) * points.plane)
    with k.loop("first", 0, points.count, BLOCK) as points.first:
        points.many = k.let("many", cast("i32", least(points.count - points.first, BLOCK)))
        points.find_neighbours()
        with points.each_channel(begin, end) as (_, plane):
            to = k.pointer("to", out, plane * points.plane)
            gradients = k.pointer("gradients", grad, grad_at + plane * points.count + points.first)
            with k.loop("j", 0, points.many) as j:
                gradient = k.let("gradient", gradients[j])
                with points.each_neighbour() as n:
                    place = k.let("i", points.place[n, j])
                    with k.when(place >= 0):
                        to[place] = to[place] + points.weight[n, j] * gradient
    return k.source()


# -- points -----------------------------------------------------------------------------------------------------------
class Points:
    """The points of a work-item: the ``many`` points from ``first`` on of element ``batch``, and their neighbours.

    Of neighbour n of point j, ``place[n, j]`` is the number of the element in its plane, or -1 outside of the input,
    ``weight[n, j]`` the weight, and ``slopes[d][n, j]`` the derivative of the weight in the coordinate of dim d.
    """

    def __init__(self, kernel: KernelBuilder, form: GridForm, grid: KernelArray) -> None:
        self.kernel = kernel
        self.form = form
        self.grid = grid
        self.grid_at, self.channels, self.count, self.blocks, self.plane, *self.sizes = kernel.numbers(
            "grid_at", "channels", "points", "blocks", "plane", *[f"n{d}" for d in range(form.rank)]
        )
        self.batch: Value
        self.first: Value
        self.many: Value
        self.place: KernelArray
        self.weight: KernelArray
        self.slopes: Sequence[KernelArray]

    def of_block(self) -> None:
        """Declare the points of a work-item that has one block, or one point."""
        k, serial = self.kernel, self.form.serial
        units = self.blocks if serial else self.count
        self.batch = k.let("batch", k.item // units)
        self.first = k.let("first", k.item % units * BLOCK if serial else k.item % units)
        many = cast("i32", least(self.count - self.first, BLOCK)) if serial else constant("i32", 1)
        self.many = k.let("many", many)

    @contextmanager
    def each_channel(self, begin: Value | int = 0, end: Value | None = None) -> Iterator[tuple[Value, Value]]:
        """A loop over channels: the number of the channel, and that of its plane."""
        k = self.kernel
        with k.loop("channel", begin, self.channels if end is None else end) as channel:
            yield channel, self.batch * self.channels + channel

    @contextmanager
    def each_point(self) -> Iterator[Value]:
        """A loop over the points."""
        with self.kernel.loop("j", 0, self.many, independent=True) as j:
            yield j

    @contextmanager
    def each_neighbour(self) -> Iterator[Value]:
        """A loop over the neighbours of a point."""
        with self.kernel.loop("k", 0, len(self.form.neighbours), unrolled=True) as n:
            yield n

    def element(self, plane: KernelArray, n: Value, j: Value) -> Value:
        """Return the element of a neighbour, or 0 outside of the input."""
        place = self.kernel.let("i", self.place[n, j])
        return self.kernel.let("v", select(place < 0, 0, plane[place]))

    def find_neighbours(self, slopes: bool = False) -> None:
        """Declare and compute the places and weights of the neighbours, and with ``slopes`` the derivatives."""
        k, form = self.kernel, self.form
        shape = len(form.neighbours), form.block
        self.place, self.weight = k.array("place", form.position, *shape), k.array("weight", form.value, *shape)
        self.slopes = [k.array(f"slope{d}", form.value, *shape) for d in range(form.rank)] if slopes else []
        with k.loop("j", 0, self.many) as j:
            point = self.grid_at + (self.batch * self.count + self.first + cast(INDEX, j)) * form.rank
            given = [self.grid[point + (form.rank - 1 - d)] for d in range(form.rank)]
            axes = [_axis(k, form, d, given[d], self.sizes[d], slopes) for d in range(form.rank)]
            for n, taps in enumerate(form.neighbours):
                near = [axis.taps[tap] for axis, tap in zip(axes, taps)]
                flat = near[0].place
                for size, tap in zip(self.sizes[1:], near[1:]):
                    flat = flat * cast(form.position, size) + tap.place
                self.place[n, j] = select(reduce(and_, [tap.inside for tap in near]), flat, -1)
                self.weight[n, j] = reduce(mul, [tap.weight for tap in near])
                for d, slope in enumerate(self.slopes):
                    factors = [tap.slope if e == d else tap.weight for e, tap in enumerate(near)]
                    slope[n, j] = select(axes[d].missing, 0, reduce(mul, factors))


class GridNeighbour(NamedTuple):
    """A neighbour along a dim: its index, whether that is inside of the input, the weight and its derivative."""

    place: Value
    inside: Value
    weight: Value
    slope: Value


class GridAxis(NamedTuple):
    """The neighbours of a point along a dim. ``missing``: its coordinate is NaN."""

    taps: list[GridNeighbour]
    missing: Value


def _axis(k: KernelBuilder, form: GridForm, d: int, coordinate: Value, sizes: Value, slopes: bool) -> GridAxis:
    """Declare the neighbours along a dim."""
    type, size = form.value, cast(form.value, sizes)
    given = k.let(f"given{d}", coordinate)
    missing = k.let(f"missing{d}", given != given)
    c = k.let(f"c{d}", select(missing, -1, given))
    x: Value = k.let(f"x{d}", (c + 1) / 2 * (size - 1) if form.align_corners else ((c + 1) * size - 1) / 2)
    scale: Value = k.let(f"scale{d}", (size - 1) / 2 if form.align_corners else size / 2)
    if form.mode == CUBIC:
        base = k.let(f"f{d}", call("floor", x))
        places = [_padded(k, form, f"q{d}_{i}", base + (i - 1), size)[0] for i in range(4)]
        weights, derivatives = _cubic(k.let(f"t{d}", x - base), scale)
    else:
        x, moved = _padded(k, form, f"at{d}", x, size, scale)
        scale = scale if moved is None else moved
        near = k.let(f"q{d}_0", call("round" if form.mode == NEAREST else "floor", x))
        places = [near] if form.mode == NEAREST else [near, k.let(f"q{d}_1", near + 1)]
        weights = [constant(type, 1)] if form.mode == NEAREST else [places[1] - x, x - near]
        derivatives = [-scale, scale][: form.taps]
    taps = []
    for i, (q, weight, derivative) in enumerate(zip(places, weights, derivatives)):
        inside = k.let(f"in{d}_{i}", (q >= 0) & (q <= size - 1))
        place, weighed = k.let(f"p{d}_{i}", cast(form.position, q)), k.let(f"w{d}_{i}", weight)
        taps.append(GridNeighbour(place, inside, weighed, k.let(f"s{d}_{i}", derivative) if slopes else derivative))
    return GridAxis(taps, missing)


def _padded(
    k: KernelBuilder, form: GridForm, name: str, x: Value, size: Value, scale: Value | None = None
) -> tuple[Value, Value | None]:
    """Return a position outside of the input as the padding mode defines it, and ``scale`` times the derivative."""
    if form.padding == ZEROS:
        return k.let(name, select(x < -2, -2, select(x > size + 1, size + 1, x))), scale
    if form.padding == REFLECTION:
        low, span = (constant(form.value, 0), size - 1) if form.align_corners else (constant(form.value, -0.5), size)
        away = k.let(f"away_{name}", select(x < low, low - x, x - low))
        rest = k.let(f"rest_{name}", select(span > 0, away - 2 * span * call("floor", away / (2 * span)), 0))
        back = k.let(f"back_{name}", rest > span)
        if scale is not None:
            scale = select(back != (x < low), -scale, scale)
        folded = select(span > 0, select(back, 2 * span - rest, rest) + low, x * 0)
        x = k.let(f"folded_{name}", folded)
        x = k.let(f"finite_{name}", select(x - x == 0, x, 0))
    if scale is not None:
        scale = k.let(f"scale_{name}", select((x > 0) & (x < size - 1), scale, 0))
    return k.let(name, select(x < 0, 0, select(x > size - 1, size - 1, x))), scale


def _cubic(t: Value, scale: Value) -> tuple[list[Value], list[Value]]:
    """Return the weights of four neighbours by Keys' kernel with A = -0.75, and their derivatives."""
    a, weights, slopes = -0.75, [], []
    for i, u in enumerate((t + 1, t, 1 - t, 2 - t)):
        if i in (0, 3):
            weight, slope = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a, (3 * a * u - 10 * a) * u + 8 * a
        else:
            weight, slope = ((a + 2) * u - (a + 3)) * u * u + 1, (3 * (a + 2) * u - 2 * (a + 3)) * u
        weights.append(weight)
        slopes.append((-slope if i > 1 else slope) * scale)
    return weights, slopes
