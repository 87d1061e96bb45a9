"""Kernels over bags of rows of a table: sums, maxima, and the gradients of the table and of the scales.

On serial devices a work-item computes some bags, or for the gradient of the table some of its rows. On others there is
one for each element of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.language import INDEX, Value, and_then, cast, constant, or_else, select, value_type
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.index_arrays import IndexErrors

COLUMNS, BLOCK, LANES = 64, 64, 16
"""The columns that a work-item computes at a time on serial devices, the rows that are added to one partial sum, and
the columns after the last of these blocks, which are also the partial sums of a dot product."""


class BagForm(NamedTuple):
    """The properties that a kernel is compiled for. ``kind`` is ``sums``, ``maxima``, the ``gradient`` of either
    (``sums_gradient``, ``maxima_gradient``), or ``dots``.
    """

    kind: str
    dtype: dtype
    scaled: bool = False
    mean: bool = False


@built("bag_sums")
def source(form: BagForm, serial: bool, wide: bool) -> Source:
    """Return the kernel of a form, see :class:`BagKernel`."""
    bags = BagKernel(form, wide)
    kinds = {
        "sums": bags.sums if serial else bags.sum, "maxima": bags.maxima if serial else bags.maximum,
        "sums_gradient": bags.sums_gradient, "maxima_gradient": bags.maxima_gradient, "dots": bags.dots,
    }  # fmt: skip
    kinds[form.kind]()
    bags.report()
    return bags.kernel.source(group=1 if serial else None)


class BagKernel:
    """A kernel over bags: its parameters are the results, the arrays, the record of errors, offsets, and numbers."""

    def __init__(self, form: BagForm, wide: bool) -> None:
        self.form = form
        self.type = value_type(form.dtype)
        self.row_type = "i64" if wide or self.type == "f64" else "i32"
        """The type of rows in the loop over columns: as wide as values, for vectors."""
        marks = f"{'_scaled' * form.scaled}{'_mean' * form.mean}"
        self.kernel = k = KernelBuilder(f"bag_{form.kind}_{form.dtype.name}{marks}", wide)
        self.out = k.writes("out", form.dtype)
        if form.kind == "maxima":
            self.at = k.writes("at", "i64")
        floats = {"sums": ["x"], "maxima": ["x"], "dots": ["g", "x"]}.get(form.kind, ["g"])
        integers = ["rows_of"] if form.kind == "maxima_gradient" else ["index", "starts"]
        self.arrays = {name: k.reads(name, form.dtype) for name in floats}
        self.arrays |= {name: k.reads(name, "i64") for name in integers}
        self.arrays |= {name: k.reads(name, form.dtype) for name in ["scales"] * form.scaled}
        self.errors = IndexErrors(k)
        self.start_ticket = k.number("start_ticket", "u32")
        self.offsets = {name: k.number(f"{name}_at") for name in self.arrays}
        self.per_item, self.bags, self.n, self.rows, self.width = k.numbers("per_item", "bags", "n", "rows", "width")
        self.errors.declare()
        self.unfit, self.start = k.variable("unfit", constant("bool", 0)), k.variable("start", constant("i64", 0))

    def report(self) -> None:
        """Report a row that the table does not have, and a start that does not fit the indices."""
        k = self.kernel
        self.errors.report(0, self.rows)
        with k.when(self.unfit):
            place = constant("i64", 0), cast("i64", self.n)
            k.run("report_error", self.errors.errors, self.start_ticket, self.start, *place)

    # -- rows of a bag ------------------------------------------------------------------------------------------------
    def bounds(self, bag: Value) -> tuple[Value, Value]:
        """Declare the positions of a bag, within the indices whatever the starts are."""
        k, n, starts, at = self.kernel, cast("i64", self.n), self.arrays["starts"], self.offsets["starts"]
        begins = k.let("begins", starts[at + bag])
        first = k.let("from", select(begins < 0, 0, begins))
        following = k.let("next", select(bag + 1 < self.bags, starts[at + bag + 1], n))
        is_first, is_last = and_then(bag == 0, begins != 0), and_then(bag + 1 == self.bags, begins > n)
        with k.when(or_else(is_first, is_last)):
            k.assign(self.unfit, 1)
            k.assign(self.start, begins)
        return first, k.let("to", least(following, n))

    @contextmanager
    def each_row(self, first: Value, last: Value) -> Iterator[tuple[Value, Value]]:
        """A loop over the positions of a bag: the position, and the number of a row that the table has."""
        k = self.kernel
        with k.loop("p", first, last) as p:
            chosen = k.let("chosen", self.arrays["index"][self.offsets["index"] + cast(INDEX, p)])
            with k.when(cast("u64", chosen) >= self.rows):
                self.errors.note(chosen)
                k.next()
            yield p, cast(INDEX, chosen)

    @contextmanager
    def one_element(self) -> Iterator[tuple[Value, Value]]:
        """The bag and the column of a work-item that computes one element."""
        k = self.kernel
        with k.when(k.item < self.bags * self.width):
            yield k.let("bag", k.item // self.width), k.let("column", k.item % self.width)

    def row_of(self, array: str, row: Value, column: Value | int = 0) -> KernelArray:
        """Declare a row of a matrix, from a column on."""
        return self.kernel.pointer(f"{array}_row", self.arrays[array], self.offsets[array] + row * self.width + column)

    def scaled(self, value: Value, p: Value) -> Value:
        """Return a value times the factor of an index, if there is one."""
        if not self.form.scaled:
            return value
        return value * self.arrays["scales"][self.offsets["scales"] + cast(INDEX, p)]

    def divided(self, total: Value, first: Value, last: Value) -> Value:
        """Return a sum, or a mean."""
        return total / select(last > first, cast(self.type, last - first), 1) if self.form.mean else total

    # -- sums ---------------------------------------------------------------------------------------------------------
    def sums(self) -> None:
        """Sum some bags: blocks of columns whose sums are in registers, and the columns after them."""
        k = self.kernel
        with k.share("bag", self.bags, self.per_item) as bag:
            positions, column = self.bounds(bag), k.variable("column", constant(INDEX, 0))

            def add(columns: int, used: Value | int) -> None:
                self._block(bag, column, positions, columns, used)
                k.assign(column, column + columns)

            with k.repeat(column < self.width):
                left = k.let("left", self.width - column)
                with k.when(left >= COLUMNS):
                    add(COLUMNS, COLUMNS)
                with k.otherwise():
                    with k.when(left >= LANES):
                        add(LANES, LANES)
                    with k.otherwise():
                        add(LANES, k.let("used", cast("i32", left)))

    def _block(
        self, bag: Value, column: Value, positions: tuple[Value, Value], columns: int, used: Value | int
    ) -> None:
        """Sum the columns from ``column`` on, of which some are used."""
        k, (first, last) = self.kernel, positions
        total, part = k.fill(k.array("total", self.type, columns), columns), k.array("part", self.type, columns)
        with k.loop("block", first, last, BLOCK) as block:
            k.fill(part, columns)
            with self.each_row(block, k.let("stop", least(block + BLOCK, last))) as (p, chosen):
                scale = k.let("scale", self.scaled(constant(self.type, 1), p)) if self.form.scaled else None
                row = self.row_of("x", chosen, column)
                with k.loop("j", 0, used, independent=True) as j:
                    part[j] = part[j] + (row[j] if scale is None else row[j] * scale)
            with k.loop("j", 0, columns) as j:
                total[j] = total[j] + part[j]
        to_row = k.pointer("to_row", self.out, bag * self.width + column)
        with k.loop("j", 0, used) as j:
            to_row[j] = self.divided(total[j], first, last)

    def sum(self) -> None:
        """Sum one element."""
        k = self.kernel
        with self.one_element() as (bag, column):
            (first, last), total = self.bounds(bag), k.variable("total", constant(self.type, 0))
            with k.loop("block", first, last, BLOCK) as block:
                part = k.variable("part", constant(self.type, 0))
                with self.each_row(block, k.let("stop", least(block + BLOCK, last))) as (p, chosen):
                    element = self.arrays["x"][self.offsets["x"] + chosen * self.width + column]
                    k.assign(part, part + self.scaled(element, p))
                k.assign(total, total + part)
            self.out[k.item] = self.divided(total, first, last)

    # -- maxima -------------------------------------------------------------------------------------------------------
    def maxima(self) -> None:
        """Find the maxima of some bags, a block of columns at a time: the first of equal ones, and the first NaN."""
        k = self.kernel
        with k.share("bag", self.bags, self.per_item) as bag:
            first, last = self.bounds(bag)
            with k.loop("column", 0, self.width, COLUMNS) as column:
                used = k.let("used", cast("i32", least(self.width - column, COLUMNS)))
                best = k.fill(k.array("best", self.type, COLUMNS), COLUMNS)
                found = k.fill(k.array("found", self.row_type, COLUMNS), COLUMNS, -1)
                with self.each_row(first, last) as (_, chosen):
                    row, here = self.row_of("x", chosen, column), k.let("here", cast(self.row_type, chosen))
                    with k.loop("j", 0, used, independent=True) as j:
                        v, b, f = k.let("v", row[j]), k.let("b", best[j]), k.let("f", found[j])
                        better = k.let("better", (f < 0) | (v > b) | ((v != v) & (b == b)))
                        best[j] = select(better, v, b)
                        found[j] = select(better, here, f)
                to_row = k.pointer("to_row", self.out, bag * self.width + column)
                to_at = k.pointer("to_at", self.at, bag * self.width + column)
                with k.loop("j", 0, used) as j:
                    to_row[j] = best[j]
                    to_at[j] = cast("i64", found[j])

    def maximum(self) -> None:
        """Find the maximum of one element of the result."""
        k = self.kernel
        with self.one_element() as (bag, column):
            first, last = self.bounds(bag)
            best, found = k.variable("best", constant(self.type, 0)), k.variable("found", constant("i64", -1))
            with self.each_row(first, last) as (_, chosen):
                v = k.let("v", self.arrays["x"][self.offsets["x"] + chosen * self.width + column])
                with k.when(or_else(found < 0, v > best, and_then(v != v, best == best))):
                    k.assign(best, v)
                    k.assign(found, cast("i64", chosen))
            self.out[k.item] = best
            self.at[k.item] = found

    # -- gradients, on serial devices ---------------------------------------------------------------------------------
    def _own_rows(self) -> tuple[Value, Value]:
        """Clear the rows of the table's gradient that the work-item adds to. It reads whatever is added to any row."""
        k = self.kernel
        first = k.let("first", k.item * self.per_item)
        end = k.let("end", first + least(self.rows - first, self.per_item))
        k.fill(k.pointer("own", self.out, first * self.width), k.let("size", cast("i64", (end - first) * self.width)))
        return first, end

    def maxima_gradient(self) -> None:
        """Add the gradients of maxima to their rows."""
        k, (first, end), rows_of = self.kernel, self._own_rows(), self.arrays["rows_of"]
        with k.loop("bag", 0, self.bags) as bag, k.loop("j", 0, self.width) as j:
            row = k.let("row", rows_of[self.offsets["rows_of"] + bag * self.width + j])
            with k.when(and_then(row >= cast("i64", first), row < cast("i64", end))):
                at = k.let("at", cast(INDEX, row) * self.width + j)
                self.out[at] = self.out[at] + self.arrays["g"][self.offsets["g"] + bag * self.width + j]

    def sums_gradient(self) -> None:
        """Add the gradients of sums to their rows."""
        k, (first, end) = self.kernel, self._own_rows()
        many = k.let("many", cast("i32", self.width))
        with k.loop("bag", 0, self.bags) as bag:
            start, stop = self.bounds(bag)
            gradient = self.row_of("g", bag)
            with self.each_row(start, stop) as (p, chosen):
                with k.when(or_else(chosen < first, chosen >= end)):
                    k.next()
                factor = k.let("factor", self.divided(self.scaled(constant(self.type, 1), p), start, stop))
                row = k.pointer("row", self.out, chosen * self.width)
                with k.loop("j", 0, many, independent=True) as j:
                    row[j] = row[j] + gradient[j] * factor

    def dots(self) -> None:
        """Compute the products of gradients with rows: those of scales."""
        k = self.kernel
        with k.share("bag", self.bags, self.per_item) as bag:
            first, last = self.bounds(bag)
            gradient = self.row_of("g", bag)
            with self.each_row(first, last) as (p, chosen):
                row, part = self.row_of("x", chosen), k.fill(k.array("part", self.type, LANES), LANES)
                j = k.variable("j", constant(INDEX, 0))
                with k.repeat(j + LANES <= self.width):
                    with k.loop("lane", 0, LANES, independent=True) as lane:
                        at = j + cast(INDEX, lane)
                        part[lane] = part[lane] + row[at] * gradient[at]
                    k.assign(j, j + LANES)
                with k.loop("lane", 0, self.width - j) as lane:
                    part[lane] = part[lane] + row[j + lane] * gradient[j + lane]
                half = LANES // 2
                while half:
                    with k.loop("lane", 0, half) as lane:
                        part[lane] = part[lane] + part[lane + half]
                    half //= 2
                self.out[p] = self.divided(part[0], first, last)
