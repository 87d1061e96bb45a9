"""One step of a recurrent network on a processor: the product with the state before it, and the gates, in one kernel.

A work-item computes 16 or 32 units of the state for some rows. It keeps the sums of all gates of a few rows in
registers, while it reads the weights of its units, which are packed once for all steps, and applies the gates to the
sums while they are in the cache. Rows and gates are in the order of :mod:`candelabra.nn._operators.recurrent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.language import Value, call, constant, select
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.gate_steps import (
    TYPES,
    Values,
    gru_gradients,
    gru_values,
    lstm_gradients,
    lstm_values,
    plus,
    statements,
)
from candelabra_clike.types import CTYPES

UNITS = 16
"""The units that the kernel treats together: one vector of the widest registers, or several."""
SUMS = {True: 24, False: 12}
"""The vectors of sums in registers, of 32 registers of 64 bytes and of 16 of 32 bytes. The other registers hold the
weights and an element of the state."""
MOST_ROWS = 12
VECTORIZED = f'_Pragma("clang loop vectorize(assume_safety) vectorize_width({UNITS})")'
"""Before the loop over units, in place of ``INDEPENDENT``, which leaves half of a register of 64 bytes unused."""


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
    written arrays, see :func:`~candelabra_clike.templates.gate_steps.statements`. ``optional`` are the arrays that it
    knows and that the step may not have.

    Raises ``ExpressionError``.
    """

    name: str
    sums: int
    arrays: tuple[RowArray, ...]
    function: Callable[..., Any]
    optional: tuple[str, ...] = ()
    gradient: bool = False
    """Whether the factor of the products are gradients, which are summed over all gates."""

    def __post_init__(self) -> None:
        for type in TYPES:
            self._statements(type)

    def _statements(self, type: str) -> str:
        """Return the statements for a unit ``i``."""

        def element(array: str, part: int) -> str:
            if array == "sum":
                return f"sums_row[{part} * {self.units} + i]"
            return f"{array}_row[{part}u * width + i]"

        every = [(a.name, a.parts) for a in self.arrays]
        written = [(a.name, a.parts) for a in self.arrays if a.written]
        return statements(self.name, self.function, type, [*every, ("sum", self.sums)], written, self.optional, element)

    @property
    def units(self) -> int:
        """The units of a work-item, whose weights are adjacent. One sum alone has few products per element read."""
        return UNITS if self.sums > 1 else 2 * UNITS

    def source(self, d: dtype) -> Source:
        """Return the kernel. A work-item is a block of units times one of ``row_parts`` parts of the rows.

        Parameters are the arrays (an ``entering`` one is followed by the rows of sequences that begin), the same for
        the factor of the products, the packed weights, the offsets of the arrays that are not written, and numbers.
        ``before`` is the first row of the step before in the recurrence, of which ``carried`` rows go on; ``x_before``
        and ``x_carried`` say the same for the factor, whose step before is the later one in gradients.
        """
        type = CTYPES[d].value
        buffers = [(a.name, a.written) for a in self.arrays]
        for a in reversed(self.arrays):
            if a.rows == "entering":
                buffers.insert([name for name, _ in buffers].index(a.name) + 1, (f"{a.name}_begin", False))
        buffers += [("x", False), ("x_begin", False), ("weights", False)]
        head = (
            *[writes(name, type) if written else reads(name, type) for name, written in buffers],
            *[number(f"{name}_at") for name, written in buffers if not written],
            *[
                number(n)
                for n in (
                    "width",
                    "depth",
                    "row_parts",
                    "start",
                    "size",
                    "before",
                    "carried",
                    "x_before",
                    "x_carried",
                )
            ],
        )
        pointers = ""
        for a in self.arrays:
            at = "" if a.written else f" + {a.name}_at"
            row = {"step": "start + r", "state": "r", "one": "0", "entering": "before + r"}[a.rows]
            address = f"{a.name}{at} + ({row}) * {a.parts}u * width + unit"
            if a.rows == "entering":
                address = (
                    f"(r < carried ? {address} : {a.name}_begin + {a.name}_begin_at + r * {a.parts}u * width + unit)"
                )
            pointers += f"GLOBAL {'' if a.written else 'const '}{type}* const {a.name}_row = {address};\n"
        body = self._body(type, pointers, self._statements(type))
        return Source(f"{self.name}_{d.name}", head, body, wide=True, contract=True)

    def _body(self, type: str, pointers: str, text: str) -> str:
        columns = self.sums * self.units
        most = {wide: min(sums * UNITS // columns, MOST_ROWS) for wide, sums in SUMS.items()}
        cases = "".join(
            (f"#ifdef __AVX512F__\n{case}#endif\n" if rows > most[False] else case)
            for rows in range(1, most[True] + 1)
            for case in [self._products(rows, type)]
        )
        full, partial = (f"{VECTORIZED}\nfor (int i = 0; i < {n}; ++i) {{\n{text}}}\n" for n in (self.units, "count"))
        return f"""#ifdef __AVX512F__
enum {{ LANES = 64 / sizeof({type}), ROWS = {most[True]} }};
#else
enum {{ LANES = 32 / sizeof({type}), ROWS = {most[False]} }};
#endif
typedef {type} vector __attribute__((ext_vector_type(LANES)));
typedef vector vector_at __attribute__((aligned(sizeof({type}))));
const INDEX block = GLOBAL_ID / row_parts, part = GLOBAL_ID % row_parts, unit = block * {self.units}u;
const INDEX first = size * part / row_parts, rows = size * (part + 1) / row_parts - first;
const INDEX tiles = (rows + ROWS - 1) / ROWS;
const int count = width - unit < {self.units}u ? (int)(width - unit) : {self.units};
GLOBAL const {type}* const packed = weights + weights_at + block * depth * {columns}u;
{type} sums[ROWS * {columns}];
for (INDEX tile = 0; tile < tiles; ++tile) {{
const INDEX r0 = first + rows * tile / tiles, here = first + rows * (tile + 1) / tiles - r0;
for (int lane = 0; lane < {UNITS}; lane += LANES) {{
switch (here) {{
{cases}}} }}
for (INDEX r = r0; r < r0 + here; ++r) {{
const {type}* const sums_row = sums + (r - r0) * {columns}u;
{pointers}if (count == {self.units}) {{
{full}}} else {{
{partial}}} }} }}
"""

    def _products(self, rows: int, type: str) -> str:
        """Return the case of a tile of a number of rows: their products with the weights of a vector of units."""
        every, vectors = range(rows), range(self.sums * self.units // UNITS)
        lines = [
            f"GLOBAL const {type}* const x{i} = r0 + {i}u < x_carried ? x + x_at + (x_before + r0 + {i}u) * depth"
            f" : x_begin + x_begin_at + (r0 + {i}u) * depth;"
            for i in every
        ]
        lines.append("vector " + ", ".join(f"c{i}_{v} = 0" for i in every for v in vectors) + ";")
        lines.append(f"GLOBAL const {type}* w = packed + lane;")
        lines.append(f"for (INDEX k = 0; k < depth; ++k, w += {len(vectors) * UNITS}) {{")
        lines += [f"const vector w{v} = *(GLOBAL const vector_at*)(w + {v * UNITS});" for v in vectors]
        for i in every:
            lines.append(f"{{ const vector x = x{i}[k]; " + " ".join(f"c{i}_{v} += x * w{v};" for v in vectors) + " }")
        lines.append("}")
        for i in every:
            lines += [f"*(vector_at*)(sums + {(i * len(vectors) + v) * UNITS} + lane) = c{i}_{v};" for v in vectors]
        return f"case {rows}: {{\n" + "\n".join(lines) + "\n} break;\n"


@lru_cache(None)
def packing(d: dtype, units: int) -> Source:
    """Return the kernel that packs the weights of a block of units: ``[block][k][gate][unit]``, with zeros beyond."""
    type = CTYPES[d].value
    head = (
        writes("packed", type), reads("weights", type),
        *[number(n) for n in ("weights_at", "gates", "gate_step", "unit_step", "depth_step", "width", "depth")],
    )  # fmt: skip
    body = f"""const INDEX unit = GLOBAL_ID * {units}u;
GLOBAL {type}* const to = packed + GLOBAL_ID * depth * gates * {units}u;
for (INDEX g = 0; g < gates; ++g) for (INDEX j = 0; j < {units}u; ++j) {{
GLOBAL const {type}* const from = weights + weights_at + g * gate_step + (unit + j) * unit_step;
if (unit + j < width) for (INDEX k = 0; k < depth; ++k) to[(k * gates + g) * {units}u + j] = from[k * depth_step];
else for (INDEX k = 0; k < depth; ++k) to[(k * gates + g) * {units}u + j] = 0;
}}"""
    return Source(f"pack_recurrent_{units}_{d.name}", head, body, wide=True)


# -- the steps --------------------------------------------------------------------------------------------------------
def _bias(bias: bool, gates: int) -> tuple[RowArray, ...]:
    return (RowArray("b", gates, "one"),) * bias


@lru_cache(None)
def rnn(bias: bool, relu: bool) -> Recurrence:
    """Return the step of a plain recurrent network."""

    def values(p: Value, b: Value | None, sum: Value) -> Value:
        s = plus(p, b) + sum
        return select(s < 0, 0, s) if relu else call("tanh", s)

    arrays = (RowArray("hidden", 1, written=True), RowArray("p", 1), *_bias(bias, 1))
    return Recurrence(f"rnn_sequence{'_bias' * bias}{'_relu' * relu}", 1, arrays, values, ("b",))


@lru_cache(None)
def rnn_gradient(relu: bool) -> Recurrence:
    """Return the gradient of :func:`rnn`."""

    def gradients(y: Value, dy: Value, sum: Value) -> Value:
        return (dy + sum) * (select(y > 0, constant(y.type, 1), 0) if relu else 1 - y * y)

    arrays = (RowArray("ds", 1, written=True), RowArray("y", 1), RowArray("dy", 1))
    return Recurrence(f"rnn_sequence_backward{'_relu' * relu}", 1, arrays, gradients, gradient=True)


def _lstm(p: Values, b: Values | None, last: Value, sum: Values) -> Values:
    sums = zip(p, b or (None,) * 4, sum, strict=True)
    return lstm_values(tuple([plus(x, y) + z for x, y, z in sums]), last)


@lru_cache(None)
def lstm(bias: bool) -> Recurrence:
    """Return the step of an LSTM."""
    arrays = (
        RowArray("hidden", 1, written=True), RowArray("cell", 1, written=True), RowArray("gates", 4, written=True),
        RowArray("p", 4), RowArray("last", 1, "entering"), *_bias(bias, 4),
    )  # fmt: skip
    return Recurrence(f"lstm_sequence{'_bias' * bias}", 4, arrays, _lstm, ("b",))


def _lstm_gradients(
    gates: Values, cell: Value, last: Value, carry: Value, dhidden: Value | None, dcells: Value | None,
    dgates: Values | None, sum: Value,
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
    name, optional = f"lstm_sequence_backward_{hidden:d}{cells:d}{gates:d}", ("dhidden", "dcells", "dgates")
    return Recurrence(name, 1, arrays, _lstm_gradients, optional, gradient=True)


def _gru(p: Values, b: Values | None, last: Value, sum: Values) -> Values:
    return gru_values(p, tuple([plus(x, y) for x, y in zip(sum, b or (None,) * 3, strict=True)]), last)


@lru_cache(None)
def gru(bias: bool) -> Recurrence:
    """Return the step of a GRU."""
    arrays = (
        RowArray("hidden", 1, written=True), RowArray("gates", 4, written=True), RowArray("p", 3),
        RowArray("last", 1, "entering"), *_bias(bias, 3),
    )  # fmt: skip
    return Recurrence(f"gru_sequence{'_bias' * bias}", 3, arrays, _gru, ("b",))


def _gru_gradients(
    gates: Values, last: Value, carry: Value, dhidden: Value | None, dgates: Values | None, sum: Value
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
    return Recurrence(name, 1, arrays, _gru_gradients, ("dhidden", "dgates"), gradient=True)
