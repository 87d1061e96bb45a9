"""The left matrix of a product laid out in strips: so many rows side by side, from column to column.

A product reads it from one end to the other then, whatever the strides were, and the rows of a matrix whose rows lie a
power of two apart don't drive each other out of the cache.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.source import Source, number, reads, writes

BITS = 1 << 64


class Rows(NamedTuple):
    """Where the rows of ``matrices`` matrices lie: steps of elements, which may be negative, from the first element on.

    ``sizes`` and ``steps`` are those of a row, along as many dims as it takes.
    """

    first: int
    matrices: int
    matrix_step: int
    rows: int
    row_step: int
    sizes: Shape
    steps: Shape


class Strips:
    """Packs the rows of matrices into strips of ``rows``; the last strip repeats the last row."""

    def __init__(self, memory: str, rows: int, rank: int) -> None:
        self.memory = memory
        self.rows = rows
        self.rank = rank
        self._launches: dict[Engine, Launch] = {}

    def __call__(self, engine: Engine, x: Buffer, found: Rows, itemsize: int) -> Buffer:
        """A new buffer: (matrix, strip, place in the row, row of the strip)."""
        launch = self._launches.get(engine)
        if launch is None:
            launch = self._launches[engine] = engine.compile(self.source())
        strips, depth = -(-found.rows // self.rows), 1
        for size in found.sizes:
            depth *= size
        out = engine.allocate(max(1, found.matrices * strips * self.rows * depth * itemsize))
        if depth:
            launch(
                found.matrices * strips, out, x, found.first, strips, depth, found.rows, found.matrix_step % BITS,
                found.row_step % BITS, *found.sizes, *[step % BITS for step in found.steps],
            )  # fmt: skip
        return out

    def source(self) -> Source:
        """The kernel, for devices whose work-items are loops: a work-item is a strip."""
        rank, last = self.rank, self.rank - 1
        rows = range(self.rows)
        starts = " ".join(
            f"GLOBAL const {self.memory}* p{i} = x + (base + (m0 + {i}u < m ? m0 + {i}u : m - 1) * s_row);"
            for i in rows
        )
        copies = " ".join(f"o[{i}] = p{i}[at];" for i in rows)
        counters = " ".join(f"INDEX q{d} = 0;" for d in range(last))
        loop = f"for (INDEX q{last} = 0; q{last} < n{last}; ++q{last}) {{ {copies} o += {self.rows}; at += s{last}; }}"
        if rank == 1:
            walk = f"INDEX at = 0;\n{loop}"
        else:
            step = "".join(f"if (++q{d} == n{d}) {{ q{d} = 0; " for d in range(last - 1, -1, -1)) + "}" * last
            place = " + ".join(f"q{d} * s{d}" for d in range(last))
            walk = f"""{counters}
for (INDEX row = depth / n{last}; row != 0; --row) {{ INDEX at = {place};
{loop}
{step} }}"""
        body = f"""const INDEX strip = GLOBAL_ID % strips, m0 = strip * {self.rows}u;
const INDEX base = x_from + GLOBAL_ID / strips * s_matrix;
GLOBAL {self.memory}* o = out + GLOBAL_ID * depth * {self.rows}u;
{starts}
{walk}"""
        names = ("x_from", "strips", "depth", "m", "s_matrix", "s_row")
        each = [f"{n}{d}" for n in "ns" for d in range(rank)]
        head = (writes("out", self.memory), reads("x", self.memory), *[number(n) for n in (*names, *each)])
        return Source(f"strips{self.rows}_{self.memory}_{rank}", head, body, wide=True)


@lru_cache(64)
def strips(memory: str, rows: int, rank: int) -> Strips:
    """The packing of elements of a type in memory."""
    return Strips(memory, rows, rank)


def packed(engine: Engine, x: Buffer, found: Rows, memory: str, itemsize: int, rows: int) -> Buffer:
    """The rows in strips of ``rows``."""
    return strips(memory, rows, len(found.sizes))(engine, x, found, itemsize)
