"""Packing of the left matrix into panels of several rows, stored column by column.

A product then reads the left matrix sequentially, whatever its strides were, and rows at a distance of a power of two
do not evict each other from the cache.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.source import Source, number, reads, writes

BITS = 1 << 64


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
        self._launches: dict[Engine, Launch] = {}

    def __call__(self, engine: Engine, x: Buffer, source: StridedRows, itemsize: int) -> Buffer:
        """Return a new buffer with dims (matrix, panel, column, row of the panel)."""
        launch = self._launches.get(engine)
        if launch is None:
            launch = self._launches[engine] = engine.compile(self.source())
        panels, depth = -(-source.rows // self.rows), 1
        for size in source.sizes:
            depth *= size
        out = engine.allocate(max(1, source.matrices * panels * self.rows * depth * itemsize))
        if depth:
            launch(
                source.matrices * panels, out, x, source.first, panels, depth, source.rows, source.matrix_step % BITS,
                source.row_step % BITS, *source.sizes, *[step % BITS for step in source.steps],
            )  # fmt: skip
        return out

    def source(self) -> Source:
        """Return the kernel for serial devices: a work-item packs one panel."""
        rank, last = self.rank, self.rank - 1
        starts = " ".join(
            f"GLOBAL const {self.memory}* p{i} = x + (base + (m0 + {i}u < m ? m0 + {i}u : m - 1) * s_row);"
            for i in range(self.rows)
        )
        counters = " ".join(f"INDEX q{d} = 0;" for d in range(last))
        if rank == 1:
            copy_loop = f"INDEX at = 0;\n{self._row()}"
        else:
            step = "".join(f"if (++q{d} == n{d}) {{ q{d} = 0; " for d in range(last - 1, -1, -1)) + "}" * last
            offset = " + ".join(f"q{d} * s{d}" for d in range(last))
            copy_loop = f"""{counters}
for (INDEX row = depth / n{last}; row != 0; --row) {{ INDEX at = {offset};
{self._row()}{step} }}"""
        body = f"""const INDEX panel = GLOBAL_ID % panels, m0 = panel * {self.rows}u;
const INDEX base = x_from + GLOBAL_ID / panels * s_matrix;
GLOBAL {self.memory}* o = out + GLOBAL_ID * depth * {self.rows}u;
{starts}
{copy_loop}"""
        names = ("x_from", "panels", "depth", "m", "s_matrix", "s_row")
        each = [f"{n}{d}" for n in "ns" for d in range(rank)]
        head = (writes("out", self.memory), reads("x", self.memory), *[number(n) for n in (*names, *each)])
        return Source(f"panels{self.rows}_{self.memory}_{rank}", head, body, wide=True)

    def _row(self) -> str:
        """Return statements that copy the elements along the last dim: vectors where rows or elements are adjacent."""
        memory, rows, last = self.memory, self.rows, self.rank - 1
        scalars = f"{' '.join(f'o[{i}] = p{i}[at];' for i in range(rows))} o += {rows}; at += s{last};"
        plain = f"for (; q{last} < n{last}; ++q{last}) {{ {scalars} }}\n"
        start = f"INDEX q{last} = 0;\n"
        if rows < 8:
            return start + plain
        begins = (0,) if rows == 8 else (0, rows - 8)  # two vectors overlap
        adjacent = " ".join(f"STORE_X8({memory}, o + {b}, LOAD_X8({memory}, p0 + (at + {b}u)));" for b in begins)
        blocks = "".join(
            f"{{ {memory}x8 v[8] = {{ {', '.join(f'LOAD_X8({memory}, p{b + i} + at)' for i in range(8))} }};\n"
            f"TRANSPOSE_X8({memory}, v)\n"
            f"UNROLL for (int i = 0; i < 8; ++i) STORE_X8({memory}, o + (i * {rows} + {b}), v[i]); }}\n"
            for b in begins
        )
        return f"""{start}if (s_row == 1 && m0 + {rows}u <= m) {{
for (; q{last} < n{last}; ++q{last}) {{ {adjacent} o += {rows}; at += s{last}; }}
}} else if (s{last} == 1) {{
for (; q{last} + 8 <= n{last}; q{last} += 8) {{
{blocks}o += {8 * rows}; at += 8; }}
}}
{plain}"""


@lru_cache(64)
def panel_packing(memory: str, rows: int, rank: int) -> PanelPacking:
    """Return the packing of elements of a type."""
    return PanelPacking(memory, rows, rank)


def pack_panels(engine: Engine, x: Buffer, source: StridedRows, memory: str, itemsize: int, rows: int) -> Buffer:
    """Pack rows into panels of ``rows``."""
    return panel_packing(memory, rows, len(source.sizes))(engine, x, source, itemsize)
