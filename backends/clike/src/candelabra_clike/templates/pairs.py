"""Kernels over all pairs of rows of one matrix: a reduction of each pair, and the gradient of the rows.

The rows are *points*. Their coordinates are *packed*: those of ``LANES`` adjacent points are adjacent. So a vector has
one coordinate of several points, however few coordinates there are, and no vector is reduced. Pairs of points i < j are
numbered row by row of the upper triangle of their matrix.

On serial devices a work-item computes every ``GLOBAL_SIZE``-th stripe of points, so that all have similar numbers of
pairs. On other devices there is a work-item for each pair, or for each element of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from candelabra.dtypes import dtype

from candelabra_clike.language import INDEX, Value, Variable, and_then, cast, constant, declared, parameters_of, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.program import RowProgram, RowTypes
from candelabra_clike.types import CTYPES

LANES: Final = 16
"""Points whose coordinates are adjacent: the elements of the widest vectors of float32."""
STRETCH: Final = 32
"""Coordinates that are accumulated before the totals are updated."""
POINTS: Final = 64
"""Points whose slopes are accumulated before the totals are updated. A multiple of ``LANES``."""


class PairKernel:
    """A kernel over pairs: its result, the packed points, the matrix of points, arrays over pairs, and numbers."""

    def __init__(self, name: str, d: dtype, wide: bool, arrays: Sequence[str] = (), numbers: int = 0) -> None:
        self.kernel = k = KernelBuilder(name, wide)
        self.type = CTYPES[d].value
        self.out, self.packed, self.x = k.writes("out", d), k.writes("packed", self.type), k.reads("x", d)
        self.arrays = {name: k.reads(name, d) for name in arrays}
        self.starts = {name: k.number(f"{name}_at") for name in ("x", *arrays)}
        self.row_step, self.step, self.points, self.depth = k.numbers("x_s0", "x_s1", "points", "depth")
        for i in range(numbers):
            k.number(f"s{i}", self.type)

    def pair(self, i: Value, j: Value) -> Value:
        """Return the number of the pair of points i < j."""
        return i * (2 * self.points - i - 1) // 2 + j - i - 1

    def point(self, name: str, i: Value) -> KernelArray:
        """Declare the coordinates of a point. The next one is ``LANES`` elements later."""
        return self.kernel.pointer(name, self.packed, i // LANES * LANES * self.depth + i % LANES)

    def pack(self, block: Value) -> None:
        """Pack a block of points. The lanes after the last point are 0."""
        k, first = self.kernel, self.kernel.let("first", block * LANES)
        to = k.pointer("to", self.packed, first * self.depth)
        with k.loop("l", constant(INDEX, 0), LANES) as lane, k.loop("c", 0, self.depth) as c:
            element = self.x[self.starts["x"] + (first + lane) * self.row_step + c * self.step]
            to[c * LANES + lane] = select(lane < self.points - first, element, 0)

    @property
    def blocks(self) -> Value:
        """The number of blocks of points."""
        return (self.points + (LANES - 1)) // LANES

    def pack_if_alone(self) -> None:
        """Pack all points in the only work-item, which saves a launch."""
        k = self.kernel
        with k.when(k.items == 1), k.loop("b", 0, self.blocks) as block:
            self.pack(block)

    @contextmanager
    def each_stretch(self, total: Value, size: int) -> Iterator[tuple[Value, Value]]:
        """A loop over stretches of up to ``size`` of ``total``: the begin and the end of each."""
        k = self.kernel
        with k.loop("begin", 0, total, size) as begin:
            yield begin, k.let("end", begin + least(total - begin, size))

    def each_lane(self) -> AbstractContextManager[Variable]:
        """A loop over lanes."""
        return self.kernel.loop("l", 0, LANES, independent=True)

    def array(self, name: str, type: str, number: float = 0, rows: int = 1) -> KernelArray:
        """Declare a number for each lane of some rows."""
        k = self.kernel
        return k.fill(k.array(name, type, rows * LANES), rows * LANES, number, independent=True)


@built("pdist")
def packing(d: dtype, wide: bool) -> Source:
    """Return the kernel in which a work-item packs a block of points."""
    pairs = PairKernel(f"pack_points_{d.name}", d, wide)
    pairs.pack(pairs.kernel.item)
    return pairs.kernel.source(1)


# -- reductions -------------------------------------------------------------------------------------------------------
@built("pdist")
def reduction_source(program: RowProgram, d: dtype, float64: bool, rows: int, serial: bool, wide: bool) -> Source:
    """Return the kernel of a row program of two operands, in which no reduction reads the result of an earlier one for
    its elements. The last result is stored.

    A work-item of ``serial`` devices computes several stripes, and pairs ``rows`` points with ``LANES`` others at a
    time; one of other devices computes a pair.
    """
    kernel = PairReduction(program, d, float64, rows, wide)
    (kernel.stripes if serial else kernel.one_pair)()
    return kernel.kernel.source(1 if serial else None, program.contract)


class PairReduction(PairKernel):
    """The kernel of a row program over pairs. A reduction has a lane, which is added to a total of a wider type."""

    def __init__(self, program: RowProgram, d: dtype, float64: bool, rows: int, wide: bool) -> None:
        super().__init__(f"pairs_{program.name}_{d.name}", d, wide, numbers=program.numbers)
        self.program, self.rows = program, rows
        self.types = RowTypes(self.type, "f64" if float64 else "f32")
        self.operations = [each.operation for each in program.passes]
        self.totals = [(operation.total(self.types), operation.first) for operation in self.operations]

    def stripes(self) -> None:
        """Compute stripes of pairs."""
        k, rows = self.kernel, self.rows
        self.pack_if_alone()
        with k.loop("first", k.item * rows, self.points - 1, k.items * rows) as first:
            own = self.point("own", first)
            with k.loop("block", (first + 1) // LANES * LANES, self.points, LANES) as block:
                totals = self._block(own, k.pointer("other", self.packed, block * self.depth))
                with k.loop("i", first, first + rows) as i:
                    start, at = k.let("from", select(i < block, block, i + 1)), cast("i32", (i - first) * LANES)
                    result = k.array("result", self.type, LANES)
                    with self.each_lane() as lane:
                        result[lane] = self._result([total[at + lane] for total in totals])
                    with k.loop("j", start, block + least(self.points - block, LANES)) as j:
                        self.out[self.pair(i, j)] = result[j - block]

    def _block(self, own: KernelArray, other: KernelArray) -> list[KernelArray]:
        """Declare the totals of the pairs of ``rows`` points from ``own`` on with ``LANES`` others, row by row."""
        k, rows = self.kernel, range(self.rows)
        totals = [self.array(f"sums{n}", *total, self.rows) for n, total in enumerate(self.totals)]
        with self.each_stretch(self.depth, STRETCH) as (begin, end):
            firsts = [(n, first) for n, (_, first) in enumerate(self.totals)]
            lanes = [[self.array(f"lane{n}_{r}", self.type, first) for n, first in firsts] for r in rows]
            with k.loop("c", begin, end) as c:
                near = k.pointer("near", other, c * LANES)
                for r in rows:
                    with k.block():
                        k.let("va", own[c * LANES + r])
                        with self.each_lane() as lane:
                            k.let("vb", near[lane])
                            for n, array in enumerate(lanes[r]):
                                array[lane] = self._combined(n, array[lane])
            with self.each_lane() as lane:
                for r in rows:
                    for total, operation, array in zip(totals, self.operations, lanes[r]):
                        at = lane + r * LANES
                        total[at] = operation.function(total[at], cast(total.type, array[lane]))
        return totals

    def _combined(self, n: int, lane: Value) -> Value:
        """Return the lane of a reduction after the elements of coordinates ``va`` and ``vb``."""
        return self.operations[n].function(lane, self.program.element(n, self.type))

    def _result(self, totals: Sequence[Value]) -> Value:
        """Declare the results ``r0`` … and return the last one."""
        named = [self.kernel.let(f"total{n}", total).name for n, total in enumerate(totals)]
        return [self.kernel.let(f"r{n}", self.program.result(n, self.types, t)) for n, t in enumerate(named)][-1]

    def one_pair(self) -> None:
        """Compute one pair. The triangle is folded into a rectangle, whose rows have the pairs of a point, then those
        of another one as far from the end.
        """
        k, points = self.kernel, self.points
        width = k.let("width", (points - 1) | 1)
        r, q = k.let("r", k.item // width), k.let("q", k.item % width)
        with k.when(r < points // 2):
            length = k.let("length", points - 1 - r)
            folded = k.let("folded", q >= length)
            i = k.let("i", select(folded, points // 2 * 2 - 1 - r, r))
            j = k.let("j", i + 1 + select(folded, q - length, q))
            own, other = self.point("own", i), self.point("other", j)
            totals = [k.variable(f"sum{n}", constant(*total)) for n, total in enumerate(self.totals)]
            with self.each_stretch(self.depth, STRETCH) as (begin, end):
                lanes = [k.variable(f"lane{n}", constant(self.type, first)) for n, (_, first) in enumerate(self.totals)]
                with k.loop("c", begin, end) as c:
                    k.let("va", own[c * LANES])
                    k.let("vb", other[c * LANES])
                    for n, lane in enumerate(lanes):
                        k.assign(lane, self._combined(n, lane))
                for total, operation, lane in zip(totals, self.operations, lanes):
                    k.assign(total, operation.function(total, cast(total.type, lane)))
            self.out[self.pair(i, j)] = self._result(totals)


# -- gradients --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class PairGradient:
    """The gradient of points: for each coordinate, the sum of the slopes of the pairs with all other points.

    The ``weight`` of a pair is a function of ``g``, the gradient of its result, and ``d``, the result. The ``slope`` is
    one of the weight ``w``, of ``d``, and of the coordinates ``a`` of the point and ``b`` of the other one. Both may
    ask for the numbers ``s0`` …, as the expressions of row programs do. Raises ``ExpressionError`` for a wrong one.
    """

    name: str
    weight: Callable[..., Value]
    slope: Callable[..., Value]
    numbers: int = 0
    types: tuple[str, ...] = ("f32", "f64")

    def __post_init__(self) -> None:
        for type in self.types:
            self.expressions(type)

    def expressions(self, type: str) -> tuple[Value, Value]:
        """Return weight and slope, of variables ``vg``, ``vd``, ``vw``, ``va`` and ``vb``."""
        known = {n: Variable(type, f"v{n}") for n in "gdwab"}
        known |= {f"s{i}": Variable(type, f"s{i}") for i in range(self.numbers)}
        name = f"{self.name!r} in {type}"
        return declared(name, self.weight, known, type), declared(name, self.slope, known, type)

    @property
    def slope_reads_result(self) -> bool:
        """Whether the slope depends on the result of the pair in other ways than by the weight."""
        return "d" in parameters_of(self.slope)

    @property
    def scratch(self) -> int:
        """The values of scratch memory for each point that a serial work-item needs."""
        return LANES * (2 if self.slope_reads_result else 1)


@built("pdist_backward")
def gradient_source(gradient: PairGradient, d: dtype, float64: bool, wide: bool, coordinates: int | None) -> Source:
    """Return the kernel of a gradient: one work-item for several blocks of points, or for each element of the gradient
    if ``coordinates`` is None. Otherwise they are the coordinates that are summed at a time, a power of 2.
    """
    kernel = PairGradientKernel(gradient, d, float64, wide)
    if coordinates is None:
        kernel.element()
    else:
        kernel.blocks_of_points(coordinates)
    return kernel.kernel.source(None if coordinates is None else 1, contract=True)


class PairGradientKernel(PairKernel):
    """The kernel of a gradient. ``total`` is the type of totals."""

    def __init__(self, gradient: PairGradient, d: dtype, float64: bool, wide: bool) -> None:
        super().__init__(f"pairs_{gradient.name}_backward_{d.name}", d, wide, ("g", "d"), gradient.numbers)
        self.gradient, self.total = gradient, "f64" if float64 else self.type
        self.weight, self.slope = gradient.expressions(self.type)

    def _weight(self, pair: Value) -> Variable:
        """Declare the weight ``vw`` of a pair, from its gradient ``vg`` and its result ``vd``."""
        k, at = self.kernel, self.kernel.let("pair", pair)
        for name, array in self.arrays.items():
            k.let(f"v{name}", array[self.starts[name] + at])
        return k.let("vw", self.weight)

    def element(self) -> None:
        """Compute one element of the gradient."""
        k = self.kernel
        i, c = k.let("i", k.item // self.depth), k.let("c", k.item % self.depth)
        with k.when(i < self.points):
            k.let("va", self.point("own", i)[c * LANES])
            total = k.variable("total", constant(self.total, 0))
            with self.each_stretch(self.points, POINTS) as (begin, end):
                lane = k.variable("lane", constant(self.type, 0))
                with k.loop("j", begin, end) as j, k.when(j != i):
                    k.let("vb", self.point("other", j)[c * LANES])
                    self._weight(self.pair(least(i, j), select(i < j, j, i)))
                    k.assign(lane, lane + self.slope)
                k.assign(total, total + cast(self.total, lane))
            self.out[k.item] = cast(self.type, total)

    def blocks_of_points(self, coordinates: int) -> None:
        """Compute blocks of ``LANES`` points. The weights of the pairs of a block are stored behind the packed points,
        as a matrix with a row for each other point, since the triangle has half of them in columns.
        """
        k = self.kernel
        self.pack_if_alone()
        scratch = k.pointer("scratch", self.packed, self.blocks * LANES * self.depth)
        weights = k.pointer("weights", scratch, k.item * self.points * self.gradient.scratch)
        self.matrices = {"vw": weights}
        if self.gradient.slope_reads_result:
            self.matrices["vd"] = k.pointer("results", weights, self.points * LANES)
        with k.loop("first", k.item * LANES, self.points, k.items * LANES) as first:
            count = k.let("count", least(self.points - first, LANES))
            self._weights(first, count)
            c = k.variable("c", constant(INDEX, 0))
            while coordinates:
                with k.repeat(self.depth - c >= coordinates):
                    self._sums(coordinates, first, count, c)
                    k.assign(c, c + coordinates)
                coordinates //= 2

    def _weights(self, first: Value, count: Value) -> None:
        """Compute the weights of a block: 0 of absent pairs, those with earlier points, and those with later ones."""
        k, following = self.kernel, self.kernel.let("next", first + count)

        def store(at: Value, pair: Value | None = None) -> None:
            if pair is not None:
                self._weight(pair)
            for name, matrix in self.matrices.items():
                matrix[at] = 0 if pair is None else Variable(self.type, name)

        with k.loop("j", 0, self.points) as j, k.loop("l", count, LANES) as lane:
            store(j * LANES + lane)
        with k.loop("l", 0, count) as lane:
            store((first + lane) * LANES + lane)
        with k.loop("j", 0, following) as j:
            start = k.let("from", select(j < first, first, j + 1))
            before = k.let("before", self.pair(j, start))
            with k.loop("m", 0, k.let("many", cast("i32", following - start)), independent=True) as m:
                store(j * LANES + (start - first) + cast(INDEX, m), before + cast(INDEX, m))
        with k.loop("i", first, following) as i:
            after = k.let("after", self.pair(i, i + 1))
            with k.loop("m", 0, k.let("many", cast("i32", self.points - i - 1)), independent=True) as m:
                store((i + 1 + cast(INDEX, m)) * LANES + (i - first), after + cast(INDEX, m))

    def _sums(self, width: int, first: Value, count: Value, c: Value) -> None:
        """Sum the slopes of ``width`` coordinates from ``c`` on."""
        k, every = self.kernel, range(width)
        own = k.pointer("own", self.packed, first * self.depth + c * LANES)
        totals = [self.array(f"total{q}", self.total) for q in every]
        with self.each_stretch(self.points, POINTS) as (begin, end):
            lanes = [self.array(f"lane{q}", self.type) for q in every]
            with k.when(and_then(begin <= first, first < end)):  # the slope of a point with itself may be NaN
                self._slopes(lanes, own, begin, end, c, lambda j, lane: select(j == first + lane, 0, self.slope))
            with k.otherwise():
                self._slopes(lanes, own, begin, end, c, lambda j, lane: self.slope)
            with self.each_lane() as lane:
                for total, part in zip(totals, lanes):
                    total[lane] = total[lane] + cast(self.total, part[lane])
        with k.loop("l", 0, count) as lane:
            for q, total in enumerate(totals):
                self.out[(first + lane) * self.depth + c + q] = cast(self.type, total[lane])

    def _slopes(
        self, lanes: Sequence[KernelArray], own: KernelArray, begin: Value, end: Value, c: Value,
        slope: Callable[[Value, Value], Value],
    ) -> None:  # fmt: skip
        """Add the slopes for points ``begin`` to ``end``."""
        k = self.kernel
        with k.loop("block", begin, end, LANES) as block:
            other = k.pointer("other", self.packed, block * self.depth + c * LANES)
            with k.loop("j", block, block + least(end - block, LANES)) as j:
                near = {name: k.pointer(f"{name}_near", array, j * LANES) for name, array in self.matrices.items()}
                for q, part in enumerate(lanes):
                    with k.block():
                        k.let("vb", other[j - block + q * LANES])
                        with self.each_lane() as lane:
                            k.let("va", own[lane + q * LANES])
                            for name, array in near.items():
                                k.let(name, array[lane])
                            part[lane] = part[lane] + slope(j, cast(INDEX, lane))
