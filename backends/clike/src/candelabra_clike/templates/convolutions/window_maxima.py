"""Maxima of windows without a stride, with their indices: windows that divide the input, or start at given places.

A work-item computes several rows of the result on serial devices, and one element on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import mul
from typing import NamedTuple, TypeAlias

from candelabra.dtypes import dtype

from candelabra_clike.language import INDEX, Value, Variable, call, cast, constant, highest, select
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import flat_index, outer_coordinates
from candelabra_clike.templates.indexing.index_arrays import IndexErrors

LONG = 8
"""The elements of a row of a window from which serial devices find the maximum without branches, before its index."""

Bounds: TypeAlias = Sequence[tuple[Value, Value]]
"""The first position of a window along each dim, and its length."""


class WindowForm(NamedTuple):
    """The properties that a kernel is compiled for. ``placed``: the starts of the windows are given."""

    dtype: dtype
    rank: int
    placed: bool
    serial: bool
    wide: bool


@built("window_maxima")
def source(form: WindowForm) -> Source:
    """Return the kernel of a form."""
    return WindowMaxima(form).source()


class WindowMaxima:
    """The kernel of a form."""

    def __init__(self, form: WindowForm) -> None:
        self.form, rank = form, form.rank
        name = f"{'placed' if form.placed else 'adaptive'}_max_pool{rank}d_{form.dtype.name}"
        self.kernel = k = KernelBuilder(name, form.wide)
        self.out, self.at, self.x = k.writes("out", form.dtype), k.writes("at", "i64"), k.reads("x", form.dtype)
        if form.placed:
            self.starts, self.errors = k.reads("starts", "i64"), IndexErrors(k)
        self.x_at, self.rows, self.per_item = k.numbers("x_at", "rows", "per_item")
        self.sizes, self.windows = k.per_dim("n", rank), k.per_dim("m", rank)
        if form.placed:
            self.starts_at, self.lengths = k.number("starts_at"), k.per_dim("w", rank)

    def source(self) -> Source:
        """Return the kernel."""
        k, count = self.kernel, self.windows[-1]
        if self.form.placed:
            self.errors.declare()
            self.dim, self.limit = k.variable("dim", constant("i64", 0)), k.variable("limit", constant(INDEX, 0))
        if self.form.serial:
            with k.share("row", self.rows, self.per_item) as row:
                self._locate(row)
                with k.loop("o", 0, count) as o:
                    self._window(row * count + o, o)
        else:
            self._locate(k.let("row", k.item // count))
            self._window(k.item, k.let("o", k.item % count))
        if self.form.placed:
            self.errors.report(self.dim, self.limit)
        return k.source()

    def _locate(self, row: Value) -> None:
        """Declare the plane of a row, and the bounds of its windows along the dims before the last one."""
        self.number, outer = outer_coordinates(self.kernel, "number", row, self.windows[:-1])
        self.plane = self.kernel.pointer("plane", self.x, self.x_at + self.number * reduce(mul, self.sizes))
        self.outer = [self._bounds(d, o) for d, o in enumerate(outer)]

    def _bounds(self, d: int, o: Value) -> tuple[Value, Value]:
        """Declare the bounds of window ``o`` along a dim."""
        k, n, m = self.kernel, self.sizes[d], self.windows[d]
        if not self.form.placed:
            low = k.let(f"low{d}", o * n // m)
            return low, k.let(f"length{d}", ((o + 1) * n + m - 1) // m - low)
        at = self.number * sum(self.windows[1:], start=self.windows[0]) + sum(self.windows[:d], start=o)
        start, last = k.let(f"start{d}", self.starts[self.starts_at + at]), n - self.lengths[d]
        outside = k.let(f"outside{d}", cast("u64", start) > last)
        with k.when(outside):
            self.errors.note(start)
            k.assign(self.dim, d)
            k.assign(self.limit, last + 1)
        return k.let(f"low{d}", select(outside, 0, cast(INDEX, start))), self.lengths[d]

    def _window(self, to: Value, o: Value) -> None:
        """Store element ``to``: the first of the largest elements of a window, or the last NaN."""
        k, bounds = self.kernel, [*self.outer, self._bounds(self.form.rank - 1, o)]
        found = k.variable("found", flat_index([low for low, _ in bounds], self.sizes))
        best = k.variable("best", self.plane[found])
        with k.when(bounds[-1][1] < LONG) if self.form.serial else k.block():
            self._short_rows(bounds, best, found)
        if self.form.serial:
            with k.otherwise():
                self._long_rows(bounds, best, found)
        self.out[to] = best
        self.at[to] = cast("i64", found)

    @contextmanager
    def _each_row(self, bounds: Bounds) -> Iterator[Value]:
        """Loops over the rows of a window: the number of the first element in the plane."""
        k = self.kernel
        with k.block(), ExitStack() as loops:
            each = [k.loop(f"i{d}", low, low + length) for d, (low, length) in enumerate(bounds[:-1])]
            yield k.let("first", flat_index([*map(loops.enter_context, each), bounds[-1][0]], self.sizes))

    def _short_rows(self, bounds: Bounds, best: Variable, index: Variable) -> None:
        k = self.kernel
        with self._each_row(bounds) as first, k.loop("i", first, k.let("stop", first + bounds[-1][1])) as i:
            v = k.let("v", self.plane[i])
            better = (v > best) | (v != v)
            k.assign_all([best, index], [select(better, v, best), select(better, i, index)])

    def _long_rows(self, bounds: Bounds, best: Variable, index: Variable) -> None:
        k, many = self.kernel, cast("i32", bounds[-1][1])
        most = k.variable("most", call("key", best))
        with self._each_row(bounds) as first:
            row = k.pointer("row_here", self.plane, first)
            with k.loop("i", 0, many) as i:
                key = k.let("key", call("key", row[i]))
                k.assign(most, select(key > most, key, most))
        searching = k.variable("searching", constant("bool", 1))
        with self._each_row(bounds) as first, k.when(searching):
            row, hit = k.pointer("row_here", self.plane, first), k.variable("hit", constant("bool", 0))
            with k.loop("i", 0, many) as i:
                k.assign(hit, hit | (call("key", row[i]) == most))
            with k.when(hit), k.loop("i", 0, many) as i, k.when(call("key", row[i]) == most):
                k.assign(index, first + cast(INDEX, i))
                with k.when(most != highest(most.type)):  # no NaN, of which the last one counts
                    k.assign(searching, 0)
                    k.leave()
        k.assign(best, self.plane[index])
