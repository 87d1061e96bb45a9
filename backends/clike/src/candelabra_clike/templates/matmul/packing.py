"""Packing of the left matrix into panels of several rows, stored column by column.

A product then reads the left matrix sequentially, whatever its strides were, and rows at a distance of a power of two
do not evict each other from the cache.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.engine import Buffer, Engine, compiled
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.index_walker import advance

BITS = 1 << 64
COLUMNS = 16
"""The columns that are packed for one panel after another where rows are adjacent in memory. They stay in the
first-level cache."""


class StridedRows(NamedTuple):
    """The rows of ``matrices`` matrices: strides, which may be negative, from the element at offset ``first``.

    ``sizes`` and ``steps`` are those of a row, along one or more dims.
    """

    first: int
    matrices: int
    matrix_step: int
    rows: int
    row_step: int
    sizes: Shape
    steps: Shape


class PanelPacking:
    """Packs the rows of matrices into panels of ``rows``; the last panel repeats the last row."""

    def __init__(self, memory: str, rows: int, rank: int) -> None:
        self.memory = memory
        self.rows = rows
        self.rank = rank

    def __call__(self, engine: Engine, x: Buffer, source: StridedRows, itemsize: int) -> Buffer:
        """Return a new buffer with dims (matrix, panel, column, row of the panel)."""
        launch = compiled(engine, self.source)
        panels, depth = -(-source.rows // self.rows), 1
        for size in source.sizes:
            depth *= size
        out = engine.allocate(max(1, source.matrices * panels * self.rows * depth * itemsize))
        if depth:
            steps = []
            for step in source.steps:
                steps.append(step % BITS)
            launch(
                source.matrices * panels, out, x, source.first, panels, depth, source.rows, source.matrix_step % BITS,
                source.row_step % BITS, *source.sizes, *steps,
            )  # fmt: skip
        return out

    def source(self) -> Source:
        """Return the kernel for serial devices.

        A work-item packs one panel, or, where rows are closer in memory than the elements along dim 0, some of these
        elements of all rows, so that it reads adjacent memory.
        """
        names = ("x_from", "panels", "depth", "m", "s_matrix", "s_row")
        each = [f"{n}{d}" for n in "ns" for d in range(self.rank)]
        head = (writes("out", self.memory), reads("x", self.memory), *[number(n) for n in (*names, *each)])
        body = f"""const int across = (i64)s0 > (i64)s_row;
const INDEX item = GLOBAL_ID % panels, matrix = GLOBAL_ID / panels;
const INDEX first = across ? n0 * item / panels : 0, end = across ? n0 * (item + 1) / panels : n0;
const INDEX panel_first = across ? 0 : item, panel_end = across ? panels : item + 1;
GLOBAL const {self.memory}* const x_here = x + (x_from + matrix * s_matrix);
GLOBAL {self.memory}* const out_here = out + matrix * panels * depth * {self.rows}u;
{self._matrix() if self.rank == 1 else self._planes()}"""
        return Source(f"panels{self.rows}_{self.memory}_{self.rank}", head, body, wide=True)

    def _panel(self, element: str, column: str) -> str:
        """Return declarations: the first row ``m0`` of a panel, pointers to an element of each row, and the column."""
        rows = [f"(m0 + {i}u < m ? m0 + {i}u : m - 1)" for i in range(self.rows)]
        pointers = " ".join(
            f"GLOBAL const {self.memory}* const p{i} = x_here + ({row} * s_row + {element});"
            for i, row in enumerate(rows)
        )
        return f"""const INDEX m0 = panel * {self.rows}u;
{pointers}
GLOBAL {self.memory}* o = out_here + (panel * depth + {column}) * {self.rows}u;
"""

    def _matrix(self) -> str:
        """Return the statements for rows of one dim."""
        scalars = " ".join(f"o[{i}] = p{i}[at];" for i in range(self.rows))
        across = f"for (INDEX k = k0; k < k_end; ++k) {{ {scalars} o += {self.rows}; at += s0; }}"
        if self.rows >= 8:
            vectors = " ".join(
                f"STORE_X8({self.memory}, o + {b}, LOAD_X8({self.memory}, q + {b}));" for b in self._vectors()
            )
            whole = f"GLOBAL const {self.memory}* q = p0;\nfor (INDEX k = k0; k < k_end; ++k) {{ {vectors}"
            across = (
                f"if (s_row == 1 && m0 + {self.rows}u <= m) {{ {whole} q += s0; o += {self.rows}; }} }} else {across}"
            )
        return f"""if (across) {{
for (INDEX k0 = first; k0 < end; k0 += {COLUMNS}u) for (INDEX panel = 0; panel < panels; ++panel) {{
const INDEX k_end = end - k0 < {COLUMNS}u ? end : k0 + {COLUMNS}u;
{self._panel("k0 * s0", "k0")}INDEX at = 0;
{across}
}} }} else {{
const INDEX panel = item;
{self._panel("0", "0")}INDEX at = 0;
{self._row()}}}"""

    def _planes(self) -> str:
        """Return the statements for rows of several dims."""
        last = self.rank - 1
        counters = " ".join(f"INDEX q{d} = 0;" for d in range(1, last))
        step = advance("q", last, "n", first=1)
        offset = " + ".join(["0", *[f"q{d} * s{d}" for d in range(1, last)]])
        return f"""const INDEX inner = depth / n0;
for (INDEX q0 = first; q0 < end; ++q0) for (INDEX panel = panel_first; panel < panel_end; ++panel) {{
{self._panel("q0 * s0", "q0 * inner")}{counters}
for (INDEX row = inner / n{last}; row != 0; --row) {{
INDEX at = {offset};
{self._row()}{step} }} }}"""

    def _vectors(self) -> tuple[int, ...]:
        """Return the first rows of the vectors of eight that cover a panel. Two of them may overlap."""
        return (0,) if self.rows == 8 else (0, self.rows - 8)

    def _row(self) -> str:
        """Return statements that copy the elements along the last dim, eight at a time if they are adjacent."""
        memory, rows, last = self.memory, self.rows, self.rank - 1
        scalars = f"{' '.join(f'o[{i}] = p{i}[at];' for i in range(rows))} o += {rows}; at += s{last};"
        plain = f"for (; q{last} < n{last}; ++q{last}) {{ {scalars} }}\n"
        start = f"INDEX q{last} = 0;\n"
        if rows < 8:
            return start + plain
        blocks = "".join(
            f"{{ {memory}x8 v[8] = {{ {', '.join(f'LOAD_X8({memory}, p{b + i} + at)' for i in range(8))} }};\n"
            f"TRANSPOSE_X8({memory}, v)\n"
            f"UNROLL for (int i = 0; i < 8; ++i) STORE_X8({memory}, o + (i * {rows} + {b}), v[i]); }}\n"
            for b in self._vectors()
        )
        return f"""{start}if (s{last} == 1) for (; q{last} + 8 <= n{last}; q{last} += 8) {{
{blocks}o += {8 * rows}; at += 8; }}
{plain}"""


@lru_cache(64)
def panel_packing(memory: str, rows: int, rank: int) -> PanelPacking:
    """Return the packing of elements of a type."""
    return PanelPacking(memory, rows, rank)


def pack_panels(engine: Engine, x: Buffer, source: StridedRows, memory: str, itemsize: int, rows: int) -> Buffer:
    """Pack rows into panels of ``rows``."""
    return panel_packing(memory, rows, len(source.sizes))(engine, x, source, itemsize)
