"""Products of matrices on a processor: a strip of rows times a panel of columns, whose sums stay in registers.

A work-item has a block of the result. It copies 8 or 16 columns of the right matrix, some hundred rows of them, into a
panel of its own that the first cache holds, and multiplies it by one strip of rows after the other. So every layout of
the right matrix costs the same, and the left one is read as it lies. (The scheme is that of K. Goto and R. van de
Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from candelabra_clike.types import CType

DEPTH = 256
"""Rows of a panel. The sums over so many products are added up: the error grows with this, and with their number."""


@dataclass(frozen=True)
class Strip:
    """Rows of sums in registers: ``rows`` times ``eights`` vectors of eight values of the type ``value``."""

    rows: int
    eights: int
    value: str

    @property
    def columns(self) -> int:
        return 8 * self.eights

    @property
    def thin(self) -> bool:
        """Whether a panel would be read once or twice only, so that a copy doesn't pay."""
        return self.rows <= 2

    def _cells(self) -> list[tuple[int, int]]:
        return [(i, v) for i in range(self.rows) for v in range(self.eights)]

    def zeros(self) -> str:
        """Declares the sums."""
        return f"{self.value}x8 " + ", ".join(f"c{i}_{v} = 0" for i, v in self._cells()) + ";\n"

    def step(self, left: Callable[[int], str], right: Callable[[int], str]) -> str:
        """Adds a column of the strip, ``left`` of each row, times a row of the panel, ``right`` of each vector."""
        lines = [f"const {self.value}x8 b{v} = {right(v)};" for v in range(self.eights)]
        for i in range(self.rows):
            sums = " ".join(f"c{i}_{v} += x * b{v};" for v in range(self.eights))
            lines.append(f"{{ const {self.value}x8 x = {left(i)}; {sums} }}")
        return "\n".join(lines) + "\n"

    def spill(self, tile: str) -> str:
        """Writes the sums into an array of the work-item's own, row by row."""
        cells = " ".join(f"{tile}[{i * self.eights + v}] = c{i}_{v};" for i, v in self._cells())
        return f"{self.value}x8 {tile}[{self.rows * self.eights}];\n{cells}\n"


def pack(columns: int, memory: CType, value: str, whole: bool) -> str:
    """Fills ``panel`` with ``kc`` rows of the ``width`` columns at ``b_here``; columns beyond are zeros.

    ``whole``: memory and value are the same type, so that vectors can be copied.
    """
    flat = f"{value}* const flat = ({value}*)panel;\n"
    if whole:
        copy = "\n".join(
            f"panel[k * {columns // 8}u + {v}u] = EIGHT({value}, p + {8 * v});" for v in range(columns // 8)
        )
    else:
        copy = f"UNROLL for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = ({value}){memory.load('p[j]')};"
    return f"""{flat}if (b_column == 1 && width == {columns}) {{
for (INDEX k = 0; k < kc; ++k) {{ GLOBAL const {memory.memory}* p = b_here + k * b_row; {copy} }}
}} else {{
for (INDEX j = 0; j < {columns}; ++j) {{
if (j < width) {{
GLOBAL const {memory.memory}* p = b_here + j * b_column;
for (INDEX k = 0; k < kc; ++k) flat[k * {columns}u + j] = ({value}){memory.load("p[k * b_row]")};
}} else for (INDEX k = 0; k < kc; ++k) flat[k * {columns}u + j] = 0;
}}
}}
"""


def multiply(strip: Strip, memory: CType, packed: bool, there: str = "") -> str:
    """The sums of the strip at ``a_here`` times the panel; rows from ``rows_here`` on repeat the one before.

    ``packed``: the strip is laid out column by column. ``there``: where row ``k`` lies that the panel is a copy of; it
    is read there if ``direct`` says so.
    """
    head, move = strip.zeros(), ""

    def left(i: int) -> str:
        element = f"a_here[k * {strip.rows}u + {i}u]" if packed else f"a{i}[at]"
        return f"({strip.value})" + memory.load(element)

    def loop(right: Callable[[int], str]) -> str:
        return f"for (INDEX k = 0; k < kc; ++k) {{\n{strip.step(left, right)}{move}}}\n"

    if not packed:
        pointer, move = f"GLOBAL const {memory.memory}*", "at += a_column;\n"
        lines = [f"{pointer} const a0 = a_here;"]
        lines += [
            f"{pointer} const a{i} = {i} < rows_here ? a{i - 1} + a_row : a{i - 1};" for i in range(1, strip.rows)
        ]
        head += "\n".join([*lines, "INDEX at = 0;\n"])
    copied = loop(lambda v: f"panel[k * {strip.eights}u + {v}u]")
    if not there:
        return head + copied
    return f"{head}if (direct) {loop(lambda v: f'EIGHT({strip.value}, {there} + {8 * v})')}else {copied}"


def store(strip: Strip, memory: CType, whole: bool, added: bool) -> str:
    """Writes the sums if they are ``fresh``, else adds them to those of the blocks before; ``added``: on a matrix."""
    columns, cells = strip.columns, ""
    if whole and not added:
        for i in range(strip.rows):
            row = f"GLOBAL {memory.memory}* r = o_here + {i}u * o_row;"
            first = " ".join(f"PUT_EIGHT({strip.value}, r + {8 * v}, c{i}_{v});" for v in range(strip.eights))
            more = " ".join(
                f"PUT_EIGHT({strip.value}, r + {8 * v}, c{i}_{v} + EIGHT({strip.value}, r + {8 * v}));"
                for v in range(strip.eights)
            )
            cells += f"if ({i} < rows_here) {{ {row} if (fresh) {{ {first} }} else {{ {more} }} }}\n"
    element = memory.load("r[j * o_column]")
    value = f"sums[i * {columns}u + j]"
    before = f"fresh ? ({strip.value})0 : ({strip.value}){element}"
    if added:
        start = memory.load("start[s_here + i * start_row + j * start_column]")
        begin = f"(beta == 0 ? ({strip.value})0 : ({strip.value})(beta * ({strip.value}){start}))"
        before = f"fresh ? {begin} : ({strip.value}){element}"
        value = f"({strip.value})(alpha * {value})"
    scalars = f"""{strip.spill("tile")}const {strip.value}* const sums = (const {strip.value}*)tile;
for (INDEX i = 0; i < rows_here; ++i) {{
GLOBAL {memory.memory}* r = o_here + i * o_row;
for (INDEX j = 0; j < width; ++j) {{
const {strip.value} before = {before};
r[j * o_column] = {memory.store(f"(before + {value})")};
}} }}
"""
    if cells:
        return f"if (o_column == 1 && width == {columns}) {{\n{cells}}} else {{\n{scalars}}}\n"
    return scalars


def body(strip: Strip, memory: CType, batch: str, added: bool, packed: bool) -> str:
    """The kernel: ``batch`` moves ``o_at``, ``a_at``, ``b_at`` (and ``start_at``) to a matrix of the batch.

    ``packed``: ``a`` is laid out in strips.
    """
    whole = memory.memory == strip.value
    columns = strip.columns
    a_here = f"m0 * depth + k0 * {strip.rows}u" if packed else "m0 * a_row + k0 * a_column"
    fill, sums = pack(columns, memory, strip.value, whole), multiply(strip, memory, packed)
    if strip.thin and whole:
        fill = f"const int direct = b_column == 1 && width == {columns};\nif (!direct) {{\n{fill}}}\n"
        sums = multiply(strip, memory, packed, "b_here + k * b_row")
    start = "const INDEX s_here = start_at + m0 * start_row + n0 * start_column;\n" if added else ""
    return f"""INDEX left = GLOBAL_ID;
const INDEX column_block = left % column_blocks; left /= column_blocks;
const INDEX row_block = left % row_blocks; left /= row_blocks;
{batch}const INDEX m_first = row_block * rows_per_item, n_first = column_block * columns_per_item;
const INDEX m_end = m - m_first < rows_per_item ? m : m_first + rows_per_item;
const INDEX n_end = n - n_first < columns_per_item ? n : n_first + columns_per_item;
{strip.value}x8 panel[{DEPTH * strip.eights}];
for (INDEX k0 = 0; k0 == 0 || k0 < depth; k0 += {DEPTH}u) {{
const INDEX kc = depth - k0 < {DEPTH}u ? depth - k0 : {DEPTH}u;
const int fresh = k0 == 0;
for (INDEX n0 = n_first; n0 < n_end; n0 += {columns}u) {{
const INDEX width = n_end - n0 < {columns}u ? n_end - n0 : {columns}u;
GLOBAL const {memory.memory}* const b_here = b + (b_at + k0 * b_row + n0 * b_column);
{fill}for (INDEX m0 = m_first; m0 < m_end; m0 += {strip.rows}u) {{
const INDEX rows_here = m_end - m0 < {strip.rows}u ? m_end - m0 : {strip.rows}u;
GLOBAL const {memory.memory}* const a_here = a + (a_at + {a_here});
{sums}GLOBAL {memory.memory}* const o_here = out + (o_at + m0 * o_row + n0 * o_column);
{start}{store(strip, memory, whole, added)}}} }} }}"""
