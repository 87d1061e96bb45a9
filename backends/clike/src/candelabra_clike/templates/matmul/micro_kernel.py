"""Matrix products on processors: a micro kernel multiplies rows by a panel of columns and keeps the sums in registers.

A work-item computes a block of the result. It copies 8 to 32 columns of the right matrix, up to :data:`DEPTH` rows,
into a panel that fits in the first-level cache, and multiplies the panel by one group of rows after another. The layout
of the right matrix does not affect the speed. The left matrix is read in place. Source: K. Goto and R. van de Geijn,
"Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from candelabra_clike.language import INDEX, Value, Variable, text
from candelabra_clike.types import CType

DEPTH = 256
"""Rows of a panel. The rounding error grows with the number of products summed in a panel, and with the number of
panels.
"""
AHEAD = 16
"""The distance in columns at which packed rows are prefetched into the first-level cache."""
FETCHING_ROWS = 8
"""The rows of a tile from which it prefetches those of the next tile. The loop over fewer rows has no time for it."""


@dataclass(frozen=True)
class MicroTile:
    """A tile of sums in registers: ``rows`` times ``vectors`` vectors of ``lanes`` values of type ``value``."""

    rows: int
    vectors: int
    value: str
    lanes: int = 8

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors

    @property
    def vector(self) -> str:
        """The type of a vector."""
        return f"{self.value}x{self.lanes}"

    def load(self, address: str) -> str:
        """Return the expression of a vector in device memory."""
        return f"LOAD_X{self.lanes}({self.value}, {address})"

    def store(self, address: str, vector: str) -> str:
        """Return the statement that stores a vector in device memory."""
        return f"STORE_X{self.lanes}({self.value}, {address}, {vector});"

    @property
    def reads_panel_rarely(self) -> bool:
        """Whether a panel would be read at most twice, so that copying it is not worthwhile."""
        return self.rows <= 2

    def _cells(self) -> list[tuple[int, int]]:
        return [(i, v) for i in range(self.rows) for v in range(self.vectors)]

    def zeros(self) -> str:
        """Return the declaration of the sums."""
        return f"{self.vector} " + ", ".join(f"c{i}_{v} = 0" for i, v in self._cells()) + ";\n"

    def step(self, left: Callable[[int], str], right: Callable[[int], str]) -> str:
        """Return statements that add the product of a column of ``left`` (one value per row) and a row of ``right``
        (vectors).
        """
        lines = [f"const {self.vector} b{v} = {right(v)};" for v in range(self.vectors)]
        for i in range(self.rows):
            sums = " ".join(f"c{i}_{v} += x * b{v};" for v in range(self.vectors))
            lines.append(f"{{ const {self.vector} x = {left(i)}; {sums} }}")
        return "\n".join(lines) + "\n"

    def panel_row(self, address: str) -> str:
        """Return statements that load row ``k`` of the panel from adjacent elements."""
        return " ".join(
            f"panel[k * {self.vectors}u + {v}u] = {self.load(f'{address} + {self.lanes * v}')};"
            for v in range(self.vectors)
        )

    def spill(self, array: str) -> str:
        """Return statements that store the sums in a private array, row by row."""
        cells = " ".join(f"{array}[{i * self.vectors + v}] = c{i}_{v};" for i, v in self._cells())
        return f"{self.vector} {array}[{self.rows * self.vectors}];\n{cells}\n"


def pack(tile: MicroTile, memory: CType, same_type: bool) -> str:
    """Return statements that fill ``panel`` with ``kc`` rows of the ``width`` columns at ``b_here``.

    Columns beyond ``width`` are zeros or copies of others: nothing of them is stored, but denormal numbers would be
    slow. ``same_type`` is true if memory and value types are equal, so that vectors can be copied. A matrix that is
    contiguous along its columns is transposed in registers, eight columns and eight rows at a time.
    """
    columns, value = tile.columns, tile.value
    pointer = f"GLOBAL const {memory.memory}*"
    element = f"({value}){memory.load('p[{}]')}"
    if same_type:
        copy = tile.panel_row("p")
    else:
        copy = f"UNROLL for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = {element.format('j')};"
    turned = f"""else if (b_row == 1) {{
for (INDEX j = 0; j < width; j += 8) {{
{_column_pointers(pointer)}
INDEX k = 0;
for (; k + 8 <= kc; k += 8) {{
{value}x8 v[8] = {{ {", ".join(f"LOAD_X8({value}, p{i} + k)" for i in range(8))} }};
TRANSPOSE_X8({value}, v)
UNROLL for (int i = 0; i < 8; ++i) PRIVATE_X8({value}, flat + (k + i) * {columns}u + j) = v[i];
}}
for (; k < kc; ++k) {{ {" ".join(f"flat[k * {columns}u + j + {i}u] = p{i}[k];" for i in range(8))} }}
}}
for (INDEX j = (width + 7u) / 8u * 8u; j < {columns}u; j += 8)
for (INDEX k = 0; k < kc; ++k) PRIVATE_X8({value}, flat + k * {columns}u + j) = 0;
}} """
    return f"""{value}* const flat = ({value}*)panel;
if (b_column == 1 && width == {columns}) {{
for (INDEX k = 0; k < kc; ++k) {{ {pointer} p = b_here + k * b_row; {copy} }}
}} {turned if same_type else ""}else for (INDEX k = 0; k < kc; ++k) {{
{pointer} p = b_here + k * b_row;
for (INDEX j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = j < width ? {element.format("j * b_column")} : 0;
}}
"""


def _column_pointers(pointer: str) -> str:
    """Return the declarations of pointers to eight columns from ``j`` on. The last column replaces those beyond
    it.
    """
    lines = [f"{pointer} const p0 = b_here + j * b_column;"]
    lines += [f"{pointer} const p{i} = j + {i}u < width ? p{i - 1} + b_column : p{i - 1};" for i in range(1, 8)]
    return "\n".join(lines)


def multiply(
    tile: MicroTile, memory: CType, packed: bool, direct_address: str = "", first: str = "0", end: str = "kc"
) -> str:
    """Return statements that multiply the rows at ``a_here`` by the panel, from column ``first`` to ``end``.

    With ``packed``, the rows are packed column by column. Otherwise there are pointers to every fourth row only: one
    for each row would not fit in the registers of the processor. ``direct_address`` is the address of row ``k`` of the
    matrix, which is read instead of the panel if ``direct`` is true at run time.
    """
    head, move = tile.zeros(), ""
    ahead = f"PREFETCH(a_here + (k + {AHEAD}u) * {tile.rows}u);\n" if packed else ""

    def left(i: int) -> str:
        element = f"a_here[k * {tile.rows}u + {i}u]" if packed else f"a{i // 4}[{i % 4}u * a_row]"
        return f"({tile.value})" + memory.load(element)

    def loop(right: Callable[[int], str]) -> str:
        return f"for (INDEX k = {first}; k < {end}; ++k) {{\n{ahead}{tile.step(left, right)}{move}}}\n"

    if not packed:
        pointers = range(-(-tile.rows // 4))
        skipped = "" if first == "0" else f" + {first} * a_column"
        head += "".join(f"GLOBAL const {memory.memory}* a{i} = a_here + {4 * i}u * a_row{skipped};\n" for i in pointers)
        if tile.rows >= FETCHING_ROWS:
            head += _next_rows_start(tile, memory)
            ahead = _next_rows(memory)
        move = " ".join(f"a{i} += a_column;" for i in pointers) + "\n"
    copied = loop(lambda v: f"panel[k * {tile.vectors}u + {v}u]")
    if not direct_address:
        return head + copied
    return f"{head}if (direct) {loop(lambda v: tile.load(f'{direct_address} + {tile.lanes * v}'))}else {copied}"


def per_line(memory: CType) -> int:
    """Return the elements of a cache line."""
    return 512 // int(memory.memory[1:])


def _next_rows_start(tile: MicroTile, memory: CType) -> str:
    """Return the declarations of what :func:`_next_rows` uses."""
    line, rows = per_line(memory), tile.rows
    return f"""const int in_rows = a_column == 1;
GLOBAL const {memory.memory}* next_a = a_here + (in_rows ? {rows}u : {2 * rows - 1}u) * a_row;
const INDEX next_step = in_rows ? a_row : a_column, next_line = in_rows ? {line}u - {line}u * a_row : 0;
"""


def _next_rows(memory: CType) -> str:
    """Return statements that prefetch a part of the next rows at each column: they come from memory, or from the
    second-level cache, and the loads of a tile alone would not be early enough.

    Where rows are contiguous, as many columns as a cache line has elements fetch that line of as many rows, one by one.
    Otherwise each column fetches its part of the next rows, of which the first ones mostly are in a line that was used.
    """
    line = per_line(memory)
    return f"PREFETCH(next_a); next_a += next_step; if ((k & {line - 1}u) == {line - 1}u) next_a += next_line;\n"


def store(tile: MicroTile, memory: CType, same_type: bool, added: bool, skipping: bool = False) -> str:
    """Return statements that store the sums if they are ``fresh``, or else add them to the sums of earlier panels.

    With ``added``, the result is added to a matrix. Only the first ``rows_here`` rows are stored, or with ``skipping``
    all but the first ``skip``.
    """
    columns, cells = tile.columns, ""
    begin, end = ("skip", f"{tile.rows}u") if skipping else ("0", "rows_here")
    if same_type:
        for i in range(tile.rows):
            row = f"GLOBAL {memory.memory}* r = o_here + {i}u * o_row;"
            if added:
                row += f" GLOBAL const {memory.memory}* s = start + (s_here + {i}u * start_row);"
            places = [f"r + {tile.lanes * v}" for v in range(tile.vectors)]
            sums = [f"alpha * c{i}_{v}" if added else f"c{i}_{v}" for v in range(tile.vectors)]
            first = sums
            if added:
                starts = [tile.load(f"s + {tile.lanes * v}") for v in range(tile.vectors)]
                first = [f"beta == 0 ? {c} : beta * {start} + {c}" for start, c in zip(starts, sums)]
            begin_with = " ".join(tile.store(place, c) for place, c in zip(places, first))
            add = " ".join(tile.store(place, f"{c} + {tile.load(place)}") for place, c in zip(places, sums))
            here = f"{i} >= skip" if skipping else f"{i} < rows_here"
            cells += f"if ({here}) {{ {row} if (fresh) {{ {begin_with} }} else {{ {add} }} }}\n"
    element = memory.load("r[j * o_column]")
    value = f"sums[i * {columns}u + j]"
    before = f"fresh ? ({tile.value})0 : ({tile.value}){element}"
    if added:
        start = memory.load("start[s_here + i * start_row + j * start_column]")
        started = f"(beta == 0 ? ({tile.value})0 : ({tile.value})(beta * ({tile.value}){start}))"
        before = f"fresh ? {started} : ({tile.value}){element}"
        value = f"({tile.value})(alpha * {value})"
    scalars = f"""{tile.spill("tile")}const {tile.value}* const sums = (const {tile.value}*)tile;
for (INDEX i = {begin}; i < {end}; ++i) {{
GLOBAL {memory.memory}* r = o_here + i * o_row;
for (INDEX j = 0; j < width; ++j) {{
const {tile.value} before = {before};
r[j * o_column] = {memory.store(f"(before + {value})")};
}} }}
"""
    if cells:
        contiguous = "o_column == 1 && start_column == 1" if added else "o_column == 1"
        return f"if ({contiguous} && width == {columns}) {{\n{cells}}} else {{\n{scalars}}}\n"
    return scalars


COLUMN, ROW = Variable(INDEX, "n0"), Variable(INDEX, "m_here")
"""Where a panel of columns and a tile of rows begin."""
PRODUCT, PRODUCTS = Variable(INDEX, "k0"), Variable(INDEX, "kc")
"""Where a panel begins along the sum, and the number of its rows."""


class Bounds(NamedTuple):
    """The part of a product that is computed, for matrices with zeros, or results that are not needed. Without a value,
    it is the whole product.
    """

    first_row: Value = Variable(INDEX, "m_first")
    """The first row for the columns from :data:`COLUMN` on."""
    first: Value | None = None
    """For a tile of rows from :data:`ROW` on, the first product that is summed, counted from :data:`PRODUCT`."""
    end: Value | None = None
    """The product after the last one, counted alike."""
    fresh: Value = PRODUCT == 0
    """Whether the sums are stored, and not added to the result."""
    padded: bool = False
    """Whether the rows of the result have space for whole panels of columns."""

    def for_tile(self) -> str:
        """Return the declarations for a tile of rows."""
        named = {"k_first": self.first, "k_end": self.end}
        return "".join(f"const INDEX {n} = {text(v)};\n" for n, v in named.items() if v is not None)

    @property
    def products(self) -> tuple[str, str]:
        """The first product and the end for a tile."""
        return "0" if self.first is None else "k_first", "kc" if self.end is None else "k_end"


WHOLE: Final = Bounds()
"""The whole product."""


def product(
    tile: MicroTile,
    memory: CType,
    added: bool,
    packed: bool,
    epilogue: str = "",
    bounds: Bounds = WHOLE,
    fetch: str = "",
) -> str:
    """Return statements that compute the rows from ``m_first`` to ``m_end`` and the columns from ``n_first`` to
    ``n_end`` of a product, whose matrices begin at ``a_at``, ``b_at`` and ``o_at``.

    ``epilogue`` are statements that run when the sums of a tile are complete, for the rows from ``row_first`` to
    ``row_end`` and ``width`` columns from ``n0`` on. The first-level cache has them then: those of a whole panel would
    displace each other where rows are a power of two apart. ``fetch`` are statements that prefetch what the epilogue
    reads for row ``m_here + i``.

    With ``packed``, ``a`` is packed, and the last panel of rows is padded. Otherwise a panel with fewer rows begins
    before them: the matrix has at least ``tile.rows`` rows, and the results of the first ``skip`` are discarded.
    """
    same_type = memory.memory == tile.value
    columns, pointer = tile.columns, f"GLOBAL const {memory.memory}*"
    a_here = f"m0 * depth + k0 * {tile.rows}u" if packed else "m_here * a_row + k0 * a_column"
    fill, sums = pack(tile, memory, same_type), multiply(tile, memory, packed, "", *bounds.products)
    if tile.reads_panel_rarely and same_type:
        fill = f"const int direct = b_column == 1 && width == {columns};\nif (!direct) {{\n{fill}}}\n"
        sums = multiply(tile, memory, packed, "b_here + k * b_row", *bounds.products)
    lines = " ".join(f"PREFETCH(r + {tile.lanes * v});" for v in range(tile.vectors))
    # The lines that are stored to are loaded first, which takes longer than a short product if it begins at its end.
    prefetch = f"for (INDEX i = 0; i < rows_here; ++i) {{ {pointer} const r = o_here + i * o_row; {lines}{fetch} }}\n"
    start = "const INDEX s_here = start_at + m_here * start_row + n0 * start_column;\n" if added else ""
    rows = f"m_end - m0 < {tile.rows}u ? m_end - m0 : {tile.rows}u"
    if epilogue:
        rows_stored = f"row_first = m_here{'' if packed else ' + skip'}, row_end = m_here + rows_here"
        epilogue = f"if (depth - k0 <= {DEPTH}u) {{\nconst INDEX {rows_stored};\n{epilogue}}}\n"
    if packed:
        place = f"const INDEX m_here = m0, rows_here = {rows};"
    else:
        place = f"const INDEX rows_here = {tile.rows}u, skip = rows_here - ({rows}), m_here = m0 - skip;"
    place += f"\n{bounds.for_tile()}" + (f"const INDEX width = {columns}u;\n" if bounds.padded else "")
    return f"""{tile.vector} panel[{DEPTH * tile.vectors}];
for (INDEX k0 = 0; k0 == 0 || k0 < depth; k0 += {DEPTH}u) {{
const INDEX kc = depth - k0 < {DEPTH}u ? depth - k0 : {DEPTH}u;
const int fresh = {text(bounds.fresh)};
for (INDEX n0 = n_first; n0 < n_end; n0 += {columns}u) {{
const INDEX width = n_end - n0 < {columns}u ? n_end - n0 : {columns}u;
GLOBAL const {memory.memory}* const b_here = b + (b_at + k0 * b_row + n0 * b_column);
{fill}for (INDEX m0 = {text(bounds.first_row)}; m0 < m_end; m0 += {tile.rows}u) {{
{place}GLOBAL const {memory.memory}* const a_here = a + (a_at + {a_here});
GLOBAL {memory.memory}* const o_here = out + (o_at + m_here * o_row + n0 * o_column);
{prefetch}{sums}{start}{store(tile, memory, same_type, added, not packed)}{epilogue}}} }} }}"""


def body(
    tile: MicroTile, memory: CType, batch: str, added: bool, packed: bool, epilogue: str = "", fetch: str = ""
) -> str:
    """Return the kernel whose work-items compute the blocks of a :func:`product`. ``batch`` are statements that move
    ``o_at``, ``a_at``, ``b_at`` (and ``start_at``) to a matrix.
    """
    return f"""INDEX left = GLOBAL_ID;
const INDEX column_block = left % column_blocks; left /= column_blocks;
const INDEX row_block = left % row_blocks; left /= row_blocks;
{batch}const INDEX m_first = row_block * rows_per_item, n_first = column_block * columns_per_item;
const INDEX m_end = m - m_first < rows_per_item ? m : m_first + rows_per_item;
const INDEX n_end = n - n_first < columns_per_item ? n : n_first + columns_per_item;
{product(tile, memory, added, packed, epilogue, fetch=fetch)}"""
