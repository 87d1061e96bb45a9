"""Kernels over bags of rows of a table: sums, maxima, and the gradients of the table and of the scales.

On serial devices a work-item computes some bags, or for the gradient of the table some of its rows. On others there is
one for each element of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

COLUMNS, BLOCK, LANES = 64, 64, 16
"""The columns that a work-item computes at a time on serial devices, the rows that are added to one partial sum, and
the columns after the last of these blocks, which are also the partial sums of a dot product."""

BOUNDS = """const i64 begins = starts[starts_at + bag], from = begins < 0 ? 0 : begins;
const i64 next = bag + 1 < bags ? starts[starts_at + bag + 1] : (i64)n;
const i64 to = next < (i64)n ? next : (i64)n;
if ((bag == 0 && begins != 0) || (bag + 1 == bags && begins > (i64)n)) { unfit = 1; start = begins; }
"""
"""The positions of a bag, within the indices whatever the starts are."""
ROW = """const i64 chosen = index[index_at + (INDEX)p];
if ((u64)chosen >= (u64)rows) { wrong = 1; value = chosen; continue; }
"""
DECLARED = "u32 wrong = 0, unfit = 0; i64 value = 0, start = 0;\n"
REPORTED = (
    "if (wrong) report_error(errors, ticket, value, 0, (i64)rows);\n"
    "if (unfit) report_error(errors, start_ticket, start, 0, (i64)n);\n"
)
EACH_BAG = (
    "const INDEX first = GLOBAL_ID * per_item, end = bags - first < per_item ? bags : first + per_item;\n"
    "for (INDEX bag = first; bag < end; ++bag) {\n"
)
EACH_BLOCK = (
    f"for (INDEX column = 0; column < width; column += {COLUMNS}u) {{\n"
    f"const int m = width - column < {COLUMNS}u ? (int)(width - column) : {COLUMNS};\n"
)
ELEMENT = "if (GLOBAL_ID < bags * width) {\nconst INDEX bag = GLOBAL_ID / width, column = GLOBAL_ID % width;\n"


class BagForm(NamedTuple):
    """The properties that a kernel is compiled for. ``kind`` is ``sums``, ``maxima``, the ``gradient`` of either
    (``sums_gradient``, ``maxima_gradient``), or ``dots``.
    """

    kind: str
    dtype: dtype
    scaled: bool = False
    mean: bool = False

    def source(self, serial: bool, wide: bool) -> Source:
        """Return the kernel. Parameters are the results, the arrays, the record of errors, offsets, and numbers."""
        c = CTYPES[self.dtype]
        results = [writes("out", c.memory), *([writes("at", "i64")] if self.kind == "maxima" else [])]
        floats = {"sums": ["x"], "maxima": ["x"], "dots": ["g", "x"]}.get(self.kind, ["g"])
        integers = ["rows_of"] if self.kind == "maxima_gradient" else ["index", "starts"]
        scales = ["scales"] if self.scaled else []
        parameters = (
            *results, *[reads(n, c.memory) for n in floats], *[reads(n, "i64") for n in integers],
            *[reads(n, c.memory) for n in scales], writes("errors", "i64"), number("ticket", "u32"),
            number("start_ticket", "u32"), *[number(f"{n}_at") for n in (*floats, *integers, *scales)],
            *map(number, ("per_item", "bags", "n", "rows", "width")),
        )  # fmt: skip
        bodies: dict[str, Callable[[], str]] = {
            "sums": self._sums if serial else self._sum, "dots": self._dots,
            "sums_gradient": self._sums_gradient, "maxima_gradient": self._maxima_gradient,
            "maxima": (lambda: self._maxima(wide)) if serial else self._maximum,
        }  # fmt: skip
        body = DECLARED + bodies[self.kind]() + REPORTED
        name = f"bag_{self.kind}_{self.dtype.name}{'_scaled' * self.scaled}{'_mean' * self.mean}"
        return Source(name, parameters, body, 1 if serial else None, wide)

    def _divided(self, total: str) -> str:
        """Return the text of a sum, or of a mean."""
        return f"({total} / (to > from ? ({CTYPES[self.dtype].value})(to - from) : 1))" if self.mean else total

    @property
    def _scale(self) -> str:
        """Declare the factor of an index, if there is one."""
        c = CTYPES[self.dtype]
        return f"const {c.value} scale = {c.load('scales[scales_at + (INDEX)p]')};\n" if self.scaled else ""

    # -- sums ---------------------------------------------------------------------------------------------------------
    def _sums(self) -> str:
        """Return the body for some bags: blocks of columns whose sums are in registers, and the columns after them."""
        wide, narrow = (
            f"if (width - column >= {columns}u) {{\n{self._block(columns, columns)}column += {columns}u;\n}}\nelse "
            for columns in (COLUMNS, LANES)
        )
        rest = f"{{\nconst int m = (int)(width - column);\n{self._block(LANES, 'm')}column = width;\n}}\n"
        return f"{EACH_BAG}{BOUNDS}for (INDEX column = 0; column < width;) {{\n{wide}{narrow}{rest}}}\n}}\n"

    def _block(self, columns: int, used: int | str) -> str:
        """Return statements that sum the columns from ``column`` on, of which some are used."""
        c = CTYPES[self.dtype]
        product = c.load("row[j]") + (" * scale" if self.scaled else "")
        every, each = f"for (int j = 0; j < {columns}; ++j)", f"for (int j = 0; j < {used}; ++j)"
        return (
            f"{c.value} total[{columns}];\n{every} total[j] = 0;\n"
            f"for (i64 begin = from; begin < to; begin += {BLOCK}) {{\n"
            f"const i64 stop = begin + {BLOCK} < to ? begin + {BLOCK} : to;\n"
            f"{c.value} part[{columns}];\n{every} part[j] = 0;\n"
            f"for (i64 p = begin; p < stop; ++p) {{\n{ROW}{self._scale}"
            f"GLOBAL const {c.memory}* const row = x + (x_at + (INDEX)chosen * width + column);\n"
            f"INDEPENDENT\n{each} part[j] += {product};\n}}\n{every} total[j] += part[j];\n}}\n"
            f"GLOBAL {c.memory}* const o = out + (bag * width + column);\n"
            f"{each} o[j] = {c.store(self._divided('total[j]'))};\n"
        )

    def _sum(self) -> str:
        c = CTYPES[self.dtype]
        product = c.load("x[x_at + (INDEX)chosen * width + column]") + (" * scale" if self.scaled else "")
        return (
            f"{ELEMENT}{BOUNDS}{c.value} total = 0;\nfor (i64 begin = from; begin < to; begin += {BLOCK}) {{\n"
            f"const i64 stop = begin + {BLOCK} < to ? begin + {BLOCK} : to;\n{c.value} part = 0;\n"
            f"for (i64 p = begin; p < stop; ++p) {{\n{ROW}{self._scale}part += {product};\n}}\ntotal += part;\n}}\n"
            f"out[GLOBAL_ID] = {c.store(self._divided('total'))};\n}}\n"
        )

    # -- maxima -------------------------------------------------------------------------------------------------------
    def _maxima(self, wide: bool) -> str:
        c = CTYPES[self.dtype]
        place = "i64" if wide or c.value == "f64" else "i32"  # as wide as values, for vectors
        return (
            f"{EACH_BAG}{BOUNDS}{EACH_BLOCK}{c.value} best[{COLUMNS}]; {place} found[{COLUMNS}];\n"
            f"for (int j = 0; j < {COLUMNS}; ++j) {{ best[j] = 0; found[j] = -1; }}\n"
            f"for (i64 p = from; p < to; ++p) {{\n{ROW}"
            f"GLOBAL const {c.memory}* const row = x + (x_at + (INDEX)chosen * width + column);\n"
            f"const {place} here = ({place})chosen;\nINDEPENDENT\nfor (int j = 0; j < m; ++j) {{\n"
            f"const {c.value} v = {c.load('row[j]')}, b = best[j];\nconst {place} f = found[j];\n"
            "const u32 better = (f < 0) | (v > b) | ((v != v) & (b == b));\n"
            "best[j] = better ? v : b; found[j] = better ? here : f;\n}\n}\n"
            f"GLOBAL {c.memory}* const o = out + (bag * width + column);\n"
            "GLOBAL i64* const q = at + (bag * width + column);\n"
            f"for (int j = 0; j < m; ++j) {{ o[j] = {c.store('best[j]')}; q[j] = found[j]; }}\n}}\n}}\n"
        )

    def _maximum(self) -> str:
        c = CTYPES[self.dtype]
        return (
            f"{ELEMENT}{BOUNDS}{c.value} best = 0; i64 found = -1;\nfor (i64 p = from; p < to; ++p) {{\n{ROW}"
            f"const {c.value} v = {c.load('x[x_at + (INDEX)chosen * width + column]')};\n"
            "if (found < 0 || v > best || (v != v && best == best)) { best = v; found = chosen; }\n}\n"
            f"out[GLOBAL_ID] = {c.store('best')}; at[GLOBAL_ID] = found;\n}}\n"
        )

    # -- gradients, on serial devices ---------------------------------------------------------------------------------
    def _own_rows(self) -> str:
        """Return statements that clear some rows of the table's gradient. Whatever is added is read for each part."""
        return (
            "const INDEX first = GLOBAL_ID * per_item, end = rows - first < per_item ? rows : first + per_item;\n"
            f"GLOBAL {CTYPES[self.dtype].value}* const own = out + first * width;\n"
            "const i64 size = (i64)((end - first) * width);\nfor (i64 j = 0; j < size; ++j) own[j] = 0;\n"
        )

    def _maxima_gradient(self) -> str:
        return (
            f"{self._own_rows()}for (INDEX bag = 0; bag < bags; ++bag) for (INDEX j = 0; j < width; ++j) {{\n"
            "const i64 row = rows_of[rows_of_at + bag * width + j];\n"
            "if (row >= (i64)first && row < (i64)end) out[(INDEX)row * width + j] += g[g_at + bag * width + j];\n}\n"
        )

    def _sums_gradient(self) -> str:
        type = CTYPES[self.dtype].value
        scale = self._divided("scale" if self.scaled else f"({type})1")
        return (
            f"{self._own_rows()}const int m = (int)width;\nfor (INDEX bag = 0; bag < bags; ++bag) {{\n{BOUNDS}"
            f"GLOBAL const {type}* const gradient = g + (g_at + bag * width);\n"
            f"for (i64 p = from; p < to; ++p) {{\n{ROW}"
            f"if ((INDEX)chosen < first || (INDEX)chosen >= end) continue;\n{self._scale}"
            f"const {type} factor = {scale};\nGLOBAL {type}* const row = out + (INDEX)chosen * width;\n"
            "INDEPENDENT\nfor (int j = 0; j < m; ++j) row[j] += gradient[j] * factor;\n}\n}\n"
        )

    def _dots(self) -> str:
        type = CTYPES[self.dtype].value
        return (
            f"{EACH_BAG}{BOUNDS}GLOBAL const {type}* const gradient = g + (g_at + bag * width);\n"
            f"for (i64 p = from; p < to; ++p) {{\n{ROW}"
            f"GLOBAL const {type}* const row = x + (x_at + (INDEX)chosen * width);\n"
            f"{type} part[{LANES}];\nfor (int l = 0; l < {LANES}; ++l) part[l] = 0;\nINDEX j = 0;\n"
            f"for (; j + {LANES}u <= width; j += {LANES}u) {{\nINDEPENDENT\n"
            f"for (int l = 0; l < {LANES}; ++l) part[l] += row[j + (INDEX)l] * gradient[j + (INDEX)l];\n}}\n"
            f"for (INDEX l = 0; j < width; ++j, ++l) part[l] += row[j] * gradient[j];\n"
            f"for (int h = {LANES // 2}; h > 0; h /= 2) for (int l = 0; l < h; ++l) part[l] += part[l + h];\n"
            f"out[p] = {self._divided('part[0]')};\n}}\n}}\n"
        )
