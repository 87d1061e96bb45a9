"""One step of a recurrent network on a processor: the product with the state before it, and the gates, in one kernel.

A work-item computes 16 or 32 units of the state for some rows. It keeps the sums of all gates of a few rows in
registers, while it reads the weights of its units, which are packed once for all steps, and applies the gates to the
sums while they are in the cache. Rows and gates are in the order of :mod:`candelabra.nn._operators.recurrent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.language import INDEX, Value, call, cast, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source
from candelabra_clike.templates.gate_steps import (
    DTYPES,
    Place,
    Values,
    compute,
    gru_gradients,
    gru_values,
    lstm_gradients,
    lstm_values,
    plus,
)
from candelabra_clike.types import CTYPES

UNITS = 16
"""The units that the kernel treats together: one vector of the widest registers, or several."""
MOST_ROWS = 12


@dataclass(frozen=True)
class RowArray:
    """An array of a step. It has ``parts`` of as many columns as the state has units.

    ``rows`` says which rows belong to the step: ``step``, those of the step in an array of all steps; ``entering``, the
    rows of the step before, and rows of another array for sequences that begin; ``state``, one row for each sequence,
    which the step also writes; ``one``, a row for all.
    """

    name: str
    parts: int
    rows: str = "step"
    written: bool = False


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A step: its function gets the elements of arrays and the sums of products, ``sum``, and returns those of the
    written arrays, see :func:`~candelabra_clike.templates.gate_steps.compute`. Raises ``ExpressionError``.
    """

    name: str
    sums: int
    arrays: tuple[RowArray, ...]
    function: Callable[..., Any]
    gradient: bool = False
    """Whether the factor of the products are gradients, which are summed over all gates."""

    def __post_init__(self) -> None:
        for d in DTYPES:
            self.source(d, lanes=8, registers=8)  # few rows have every kind of statement

    @property
    def units(self) -> int:
        """The units of a work-item, whose weights are adjacent. One sum alone has few products per element read."""
        return UNITS if self.sums > 1 else 2 * UNITS

    def source(self, d: dtype, lanes: int, registers: int) -> Source:
        """Return the kernel for processors with these traits. A work-item is a block of units times one of
        ``row_parts`` parts of the rows.

        Parameters are the arrays (an ``entering`` one is followed by the rows of sequences that begin), the same for
        the factor of the products, the packed weights, the offsets of the arrays that are not written, and numbers.
        """
        return built(self.name)(lambda: RecurrenceKernel(self, d, lanes, registers).source())()


class RecurrenceKernel:
    """The kernel of a step. ``before`` is the first row of the step before in the recurrence, of which ``carried`` rows
    go on; ``x_before`` and ``x_carried`` say the same for the factor, whose step before is the later one in gradients.
    """

    def __init__(self, step: Recurrence, d: dtype, lanes: int, registers: int) -> None:
        self.step, self.type = step, CTYPES[d].value
        self.units, self.columns = step.units, step.sums * step.units
        self.lanes = lanes * 4 // d.itemsize
        # Three quarters of the registers have sums. The others hold weights and an element of the state.
        self.most = min(registers * 3 // 4 * UNITS // self.columns, MOST_ROWS)
        k = self.kernel = KernelBuilder(f"{step.name}_{d.name}", wide=True)
        self.buffers: dict[str, KernelArray] = {}
        for a in (*step.arrays, RowArray("x", 1, "entering"), RowArray("weights", 1)):
            self.buffers[a.name] = (k.writes if a.written else k.reads)(a.name, self.type)
            if a.rows == "entering":
                self.buffers[f"{a.name}_begin"] = k.reads(f"{a.name}_begin", self.type)
        written = {a.name for a in step.arrays if a.written}
        self.starts = {name: k.number(f"{name}_at") for name in self.buffers if name not in written}
        self.width, self.depth, self.row_parts = k.numbers("width", "depth", "row_parts")
        self.first_row, self.size, self.before, self.carried = k.numbers("start", "size", "before", "carried")
        self.x_before, self.x_carried = k.numbers("x_before", "x_carried")

    def source(self) -> Source:
        """Return the kernel: products of a few rows at a time, and then their gates."""
        k, units = self.kernel, self.units
        block, part = k.let("block", k.item // self.row_parts), k.let("part", k.item % self.row_parts)
        self.unit = k.let("unit", block * units)
        first = k.let("first", self.size * part // self.row_parts)
        rows = k.let("rows", self.size * (part + 1) // self.row_parts - first)
        tiles = k.let("tiles", (rows + (self.most - 1)) // self.most)
        used = k.let("used", cast("i32", least(self.width - self.unit, units)))
        weights = self.starts["weights"] + block * self.depth * self.columns
        packed = k.pointer("packed", self.buffers["weights"], weights)
        self.sums = k.array("sums", self.type, self.most * self.columns)
        with k.loop("tile", 0, tiles) as tile:
            r0 = k.let("r0", first + rows * tile // tiles)
            here = k.let("here", first + rows * (tile + 1) // tiles - r0)
            with k.vectors("lane", 0, constant(INDEX, UNITS), self.lanes) as lane:
                for count in range(1, self.most + 1):
                    with k.when(here == count):
                        self._multiply(count, r0, packed, lane)
            with k.loop("r", r0, r0 + here) as r:
                self._declare_rows(r)
                with k.when(used == units):
                    self._gates(r - r0, constant("i32", units))
                with k.otherwise():
                    self._gates(r - r0, used)
        return k.source(group=1, contract=True)

    def _multiply(self, count: int, r0: Value, packed: KernelArray, lane: Value) -> None:
        """Compute the sums of ``count`` rows for the units of some lanes."""
        k, every = self.kernel, range(self.columns // UNITS)
        bounds = self.x_before, self.x_carried, self.depth
        factors = [self._entering(f"x{i}", "x", r0 + i, *bounds) for i in range(count)]
        cells = list(product(range(count), every))
        sums = {(i, v): k.variable(f"c{i}_{v}", constant(self.type, 0), self.lanes) for i, v in cells}
        with k.loop("k", 0, self.depth) as at:
            weights = [k.let(f"w{v}", packed[at * self.columns + v * UNITS + lane]) for v in every]
            x = [factor[at] for factor in factors]
            for i, v in cells:
                k.assign(sums[i, v], sums[i, v] + x[i] * weights[v])
        for i, v in cells:
            self.sums[(i * len(every) + v) * UNITS + lane] = sums[i, v]

    def _entering(
        self, name: str, array: str, r: Value, before: Value, carried: Value, columns: Value, at: Value | None = None
    ) -> KernelArray:
        """Declare a row of the step before, or one of the sequences that begin, from an element on."""
        k, column = self.kernel, constant(INDEX, 0) if at is None else at
        begin = f"{array}_begin"
        row = k.pointer(name, self.buffers[array], self.starts[array] + (before + r) * columns + column)
        with k.when(r >= carried):
            k.point(row, self.buffers[begin], self.starts[begin] + r * columns + column)
        return row

    def _declare_rows(self, r: Value) -> None:
        """Declare the row of each array from the first unit on."""
        k, self.rows = self.kernel, {}
        for a in self.step.arrays:
            name, columns = f"{a.name}_row", a.parts * self.width
            if a.rows == "entering":
                self.rows[a.name] = self._entering(name, a.name, r, self.before, self.carried, columns, self.unit)
                continue
            row = {"step": self.first_row + r, "state": r, "one": constant(INDEX, 0)}[a.rows]
            start = self.starts.get(a.name, constant(INDEX, 0))
            self.rows[a.name] = k.pointer(name, self.buffers[a.name], start + row * columns + self.unit)

    def _gates(self, row: Value, count: Value) -> None:
        """Compute what the step writes from the sums of a row of the tile, for some units."""
        step, width = self.step, self.width
        with self.kernel.loop("i", 0, count, independent=True) as i:
            unit = cast(INDEX, i)
            places: dict[str, list[Place]] = {
                a.name: [(self.rows[a.name], part * width + unit) for part in range(a.parts)] for a in step.arrays
            }
            places["sum"] = [(self.sums, row * self.columns + (part * self.units + unit)) for part in range(step.sums)]
            written = [place for a in step.arrays if a.written for place in places[a.name]]
            compute(self.kernel, step.name, step.function, places, written)


@lru_cache(None)
@built("recurrent weights")
def packing(d: dtype, units: int) -> Source:
    """Return the kernel that packs the weights of a block of units: ``[block][k][gate][unit]``, with zeros beyond."""
    k = KernelBuilder(f"pack_recurrent_{units}_{d.name}", wide=True)
    packed, weights = k.writes("packed", CTYPES[d].value), k.reads("weights", CTYPES[d].value)
    start, gates, gate_step, unit_step, depth_step, width, depth = k.numbers(
        "weights_at", "gates", "gate_step", "unit_step", "depth_step", "width", "depth"
    )
    with k.loop("g", 0, gates) as g, k.loop("j", 0, constant(INDEX, units)) as j:
        unit = k.let("unit", k.item * units + j)
        to = k.pointer("to", packed, (k.item * depth * gates + g) * units + j)
        of = k.pointer("of", weights, start + g * gate_step + unit * unit_step)
        with k.when(unit < width), k.loop("k", 0, depth) as at:
            to[at * gates * units] = of[at * depth_step]
        with k.otherwise(), k.loop("k", 0, depth) as at:
            to[at * gates * units] = 0
    return k.source(group=1)


# -- the steps --------------------------------------------------------------------------------------------------------
def _bias(bias: bool, gates: int) -> tuple[RowArray, ...]:
    return (RowArray("b", gates, "one"),) * bias


@lru_cache(None)
def rnn(bias: bool, relu: bool) -> Recurrence:
    """Return the step of a plain recurrent network."""

    def values(p: Value, sum: Value, b: Value | None = None) -> Value:
        s = plus(p, b) + sum
        return select(s < 0, 0, s) if relu else call("tanh", s)

    arrays = (RowArray("hidden", 1, written=True), RowArray("p", 1), *_bias(bias, 1))
    return Recurrence(f"rnn_sequence{'_bias' * bias}{'_relu' * relu}", 1, arrays, values)


@lru_cache(None)
def rnn_gradient(relu: bool) -> Recurrence:
    """Return the gradient of :func:`rnn`."""

    def gradients(y: Value, dy: Value, sum: Value) -> Value:
        return (dy + sum) * (select(y > 0, constant(y.type, 1), 0) if relu else 1 - y * y)

    arrays = (RowArray("ds", 1, written=True), RowArray("y", 1), RowArray("dy", 1))
    return Recurrence(f"rnn_sequence_backward{'_relu' * relu}", 1, arrays, gradients, gradient=True)


def _lstm(p: Values, last: Value, sum: Values, b: Values | None = None) -> Values:
    sums = zip(p, b or (None,) * 4, sum, strict=True)
    return lstm_values(tuple([plus(x, y) + z for x, y, z in sums]), last)


@lru_cache(None)
def lstm(bias: bool) -> Recurrence:
    """Return the step of an LSTM."""
    arrays = (
        RowArray("hidden", 1, written=True), RowArray("cell", 1, written=True), RowArray("gates", 4, written=True),
        RowArray("p", 4), RowArray("last", 1, "entering"), *_bias(bias, 4),
    )  # fmt: skip
    return Recurrence(f"lstm_sequence{'_bias' * bias}", 4, arrays, _lstm)


def _lstm_gradients(
    gates: Values, cell: Value, last: Value, carry: Value, sum: Value, dhidden: Value | None = None,
    dcells: Value | None = None, dgates: Values | None = None,
) -> Values:  # fmt: skip
    dh = plus(sum, dhidden)
    *ds, dlast = lstm_gradients(gates, cell, last, dh, plus(carry, dcells), dgates)
    return *ds, dh, dlast


@lru_cache(None)
def lstm_gradient(hidden: bool, cells: bool, gates: bool) -> Recurrence:
    """Return the gradient of :func:`lstm`: whether the hidden states, the cells and the gates have one of their own.

    ``carry`` is the gradient of the cell.
    """
    arrays = (
        RowArray("ds", 4, written=True), RowArray("total", 1, written=True), RowArray("carry", 1, "state", True),
        RowArray("gates", 4), RowArray("cell", 1), RowArray("last", 1, "entering"),
        *[RowArray("dhidden", 1)] * hidden, *[RowArray("dcells", 1)] * cells, *[RowArray("dgates", 4)] * gates,
    )  # fmt: skip
    name = f"lstm_sequence_backward_{hidden:d}{cells:d}{gates:d}"
    return Recurrence(name, 1, arrays, _lstm_gradients, gradient=True)


def _gru(p: Values, last: Value, sum: Values, b: Values | None = None) -> Values:
    return gru_values(p, tuple([plus(x, y) for x, y in zip(sum, b or (None,) * 3, strict=True)]), last)


@lru_cache(None)
def gru(bias: bool) -> Recurrence:
    """Return the step of a GRU."""
    arrays = (
        RowArray("hidden", 1, written=True), RowArray("gates", 4, written=True), RowArray("p", 3),
        RowArray("last", 1, "entering"), *_bias(bias, 3),
    )  # fmt: skip
    return Recurrence(f"gru_sequence{'_bias' * bias}", 3, arrays, _gru)


def _gru_gradients(
    gates: Values, last: Value, carry: Value, sum: Value, dhidden: Value | None = None, dgates: Values | None = None
) -> Values:
    return gru_gradients(gates, last, plus(sum + carry, dhidden), dgates)


@lru_cache(None)
def gru_gradient(hidden: bool, gates: bool) -> Recurrence:
    """Return the gradient of :func:`gru`. ``carry`` is the gradient of the state except that through the products."""
    arrays = (
        RowArray("dp", 3, written=True), RowArray("dq", 3, written=True), RowArray("carry", 1, "state", True),
        RowArray("gates", 4), RowArray("last", 1, "entering"),
        *[RowArray("dhidden", 1)] * hidden, *[RowArray("dgates", 4)] * gates,
    )  # fmt: skip
    name = f"gru_sequence_backward_{hidden:d}{gates:d}"
    return Recurrence(name, 1, arrays, _gru_gradients, gradient=True)
