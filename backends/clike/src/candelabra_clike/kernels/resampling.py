"""The product with a banded matrix along a dim, and with its transpose: interpolation, adaptive means, gradients.

Results do not depend on the launch. The starts of the rows do not decrease, so a binary search finds the rows that read
a column. A work-item computes an element, or on serial devices several rows of the dims after the resampled one, to
which it adds one weighted row of the input after the other. The transpose along the last dim adds one row of the matrix
after the other to a line of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import of_floating
from candelabra_clike.language import INDEX, Value, Variable, and_then, cast, constant, select, value_type
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source

GRAIN = 2048
"""Elements of the result per work-item on serial devices."""
BLOCK = 256
"""Elements of a row that are accumulated together."""
UNROLLED = 16
"""The number of weights of a row up to which the loop over them is unrolled."""


def _run(x: StridedArray, dim: int, start: StridedArray, weight: StridedArray, size: int, adjoint: bool) -> Any:
    """Launch the kernel for a result of ``size`` elements along ``dim``."""
    engine, x, start, weight = x.engine, contiguous(x), contiguous(start), contiguous(weight)
    lead, read, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    out = engine.empty((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
    if not out.size:
        return out
    rows, per_item = lead * size, max(1, GRAIN // tail)
    if adjoint and tail == 1:  # whole planes
        per_item = -(-per_item // size) * size
    launch = compiled(engine, source, engine.traits.serial, x.dtype, weight.shape[1], adjoint, is_wide(x, out, weight))
    items = -(-rows // per_item) if engine.traits.serial else out.size
    offsets = x.offset, start.offset, weight.offset
    launch(items, out.buffer, x.buffer, start.buffer, weight.buffer, *offsets, rows, per_item, size, read, tail)
    return out


def _resample(x: StridedArray, dim: int, start: StridedArray, weight: StridedArray) -> StridedArray | Any:
    return _run(x, dim, start, weight, start.shape[0], False)


def _resample_adjoint(
    g: StridedArray, dim: int, start: StridedArray, weight: StridedArray, size: int
) -> StridedArray | Any:
    return _run(g, dim, start, weight, size, True)


@built("resample")
def source(serial: bool, d: dtype, width: int, adjoint: bool, wide: bool) -> Source:
    """Return the kernel for rows of ``width`` weights, which skips weights of 0."""
    return ResamplingKernel(serial, d, width, adjoint, wide).source()


class ResamplingKernel:
    """The kernel of a product with a banded matrix, or with its transpose.

    A row of the result is the dims after the resampled one, ``tail`` elements. It has number ``i`` of ``count`` in its
    plane, and is a sum of weighted rows of the plane of the input.
    """

    def __init__(self, serial: bool, d: dtype, width: int, adjoint: bool, wide: bool) -> None:
        self.serial, self.dtype, self.width, self.adjoint = serial, d, width, adjoint
        self.type = value_type(d)
        self.kernel = k = KernelBuilder(f"resample{'_adjoint' * adjoint}_{d.name}_{width}", wide)
        self.out, self.x = k.writes("out", d), k.reads("x", d)
        starts, weights = k.reads("starts", "i64"), k.reads("weights", d)
        self.x_at, start_at, weight_at = k.numbers("x_at", "start_at", "weight_at")
        self.rows, self.per_item, self.count, self.size, self.tail = k.numbers(
            "rows", "per_item", "count", "size", "tail"
        )
        self.start = k.pointer("start", starts, start_at)
        self.weight = k.pointer("weight", weights, weight_at)

    def source(self) -> Source:
        """Return the kernel."""
        if self.serial:
            self._all_rows()
        else:
            self._one_element()
        return self.kernel.source()

    def _one_element(self) -> None:
        k = self.kernel
        with k.when(k.item < self.rows * self.tail):
            row, j = k.let("row", k.item // self.tail), k.let("j", k.item % self.tail)
            i, first = k.let("i", row % self.count), k.variable("first", constant(INDEX, 0))
            plane = self._plane(row // self.count)
            self._find_first(i, first)
            self._element(plane, row, i, first, j)

    def _all_rows(self) -> None:
        """Compute the rows of a work-item, which follow one another."""
        k = self.kernel
        begin = k.let("begin", k.item * self.per_item)
        end = k.let("end", begin + least(self.rows - begin, self.per_item))
        if self.adjoint and self.dtype.is_half:  # a sum is stored once in 16 bits
            self._each_row(begin, end)
            return
        with k.when(self.tail == 1):
            (self._scatter_rows if self.adjoint else self._last_dim)(begin, end)
        with k.otherwise():
            self._each_row(begin, end)

    def _each_row(self, begin: Value, end: Value) -> None:
        k = self.kernel
        first, number = k.variable("first", constant(INDEX, 0)), k.variable("number", begin // self.count)
        i = k.variable("i", begin % self.count)  # a division per row would take most time
        with k.loop("row", begin, end) as row:
            plane = self._plane(number)
            if self.adjoint:  # the first row of the matrix follows that of the row before
                with k.when(row == begin):
                    self._find_first(i, first)
                with k.otherwise():
                    with k.when(i == 0):
                        k.assign(first, 0)
                    with k.repeat(and_then(first < self.size, cast(INDEX, self.start[first]) + self.width <= i)):
                        k.assign(first, first + 1)
            else:
                self._find_first(i, first)
            if self.adjoint and self.dtype.is_half:
                with k.when(self.tail == 1):
                    self._element(plane, row, i, first, constant(INDEX, 0))
                with k.otherwise():
                    self._blocks(plane, row, i, first)
            else:
                self._blocks(plane, row, i, first)
            k.assign(i, i + 1)
            with k.when(i == self.count):
                k.assign(i, 0)
                k.assign(number, number + 1)

    def _plane(self, number: Value) -> KernelArray:
        return self.kernel.pointer("plane", self.x, self.x_at + number * self.size * self.tail)

    def _find_first(self, i: Value, first: Variable) -> None:
        """Find the first column of row ``i``, or of the transpose the first row whose last column is not before it."""
        k = self.kernel
        if not self.adjoint:
            k.assign(first, cast(INDEX, self.start[i]))
            return
        last = k.variable("last", self.size)
        with k.repeat(first < last):
            middle = k.let("middle", first + (last - first) // 2)
            with k.when(cast(INDEX, self.start[middle]) + self.width <= i):
                k.assign(first, middle + 1)
            with k.otherwise():
                k.assign(last, middle)

    @contextmanager
    def _each_weight(self, i: Value, first: Value) -> Iterator[tuple[Value, Value]]:
        """A loop over the weights of row ``i`` that are not 0: the weight, and the row of the input."""
        k = self.kernel
        if self.adjoint:
            reads = k.variable("r", first)
            with k.repeat(and_then(reads < self.size, cast(INDEX, self.start[reads]) <= i)):
                weight = k.let("w", self.weight[reads * self.width + (i - cast(INDEX, self.start[reads]))])
                with k.when(weight != 0):
                    yield weight, reads
                k.assign(reads, reads + 1)
        else:
            with k.loop("n", constant(INDEX, 0), self.width) as n:
                weight = k.let("w", self.weight[i * self.width + n])
                with k.when(weight != 0):
                    yield weight, first + n

    def _element(self, plane: KernelArray, row: Value, i: Value, first: Value, j: Value) -> None:
        k = self.kernel
        total = k.variable("sum", constant(self.type, 0))
        with self._each_weight(i, first) as (weight, place):
            k.assign(total, total + weight * plane[place * self.tail + j])
        self.out[row * self.tail + j] = total

    def _blocks(self, plane: KernelArray, row: Value, i: Value, first: Value) -> None:
        """Add the weighted rows of the input to one block of columns after the other."""
        k = self.kernel
        with k.loop("block", 0, self.tail, BLOCK) as block:
            many = k.let("many", cast("u32", least(self.tail - block, BLOCK)))
            sums = k.fill(k.array("sums", self.type, BLOCK), many)
            with self._each_weight(i, first) as (weight, place):
                line = k.pointer("line", plane, place * self.tail + block)
                with k.loop("j", 0, many, independent=True) as j:
                    sums[j] = sums[j] + weight * line[j]
            with k.loop("j", 0, many, independent=True) as j:
                self.out[row * self.tail + block + j] = sums[j]

    def _last_dim(self, begin: Value, end: Value) -> None:
        """Compute rows of one element, plane by plane. The loop over a plane has no branch: compilers vectorize it."""
        k = self.kernel
        number, i = k.variable("number", begin // self.count), k.variable("i", begin % self.count)
        row = k.variable("row", begin)
        with k.repeat(row < end):
            many = k.let("many", cast("u32", least(self.count - i, end - row)))
            plane = k.pointer("plane", self.x, self.x_at + number * self.size)
            starts, weights = k.pointer("starts_here", self.start, i), k.pointer("w", self.weight, i * self.width)
            to = k.pointer("to", self.out, row)
            with k.loop("j", 0, many, independent=True) as j:
                total = k.variable("sum", constant(self.type, 0))
                with k.loop("n", constant("u32", 0), self.width, unrolled=self.width <= UNROLLED) as n:
                    weight = k.let("weight_here", weights[j * self.width + n])
                    term = k.let("term", weight * plane[cast("u32", starts[j]) + n])
                    k.assign(total, total + select(weight == 0, 0, term))
                to[j] = total
            k.assign(row, row + many)
            k.assign(i, 0)
            k.assign(number, number + 1)

    def _scatter_rows(self, begin: Value, end: Value) -> None:
        """Compute whole planes along the last dim: each row of the matrix is added to a line of the result."""
        k = self.kernel
        row = k.variable("row", begin)
        with k.repeat(row < end):
            plane = k.pointer("plane", self.x, self.x_at + row // self.count * self.size)
            line = k.fill(k.pointer("line", self.out, row), self.count)
            with k.loop("r", 0, self.size) as r:
                to = k.pointer("to", line, cast(INDEX, self.start[r]))
                weights, g = k.pointer("w", self.weight, r * self.width), k.let("g", plane[r])
                with k.loop("n", constant("u32", 0), self.width, independent=True) as n:
                    to[n] = to[n] + select(weights[n] == 0, 0, weights[n] * g)
            k.assign(row, row + self.count)


KERNELS: dict[str, Any] = {"resample": of_floating(_resample), "resample_adjoint": of_floating(_resample_adjoint)}
