"""Elements from places that index arrays name: ``out[p] = source[p · strides + index[p] · step + …]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.faults import OutOfBounds
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import walking
from candelabra_clike.templates.elementwise.elementwise import CHUNK, identity
from candelabra_clike.templates.indexing import picking
from candelabra_clike.templates.indexing.picking import Pick
from candelabra_clike.types import CTYPES


def gather(
    out: StridedArray, source: StridedArray, strides: Shape, picks: Sequence[Pick], words: OutOfBounds
) -> StridedArray:
    """Fill ``out``. ``strides`` are those of the source along out's dims, 0 along those that only indices decide.

    At wrong indices, which are complained about, anything may come out. Raises ``IndexError`` where there is nothing
    to pick from.
    """
    if not out.size:
        return out
    if any(not pick.size for pick in picks):
        raise IndexError("a dim has no elements to be picked")
    engine = out.engine
    dims, rows = collapsed(out.shape, (out.strides, strides, *[pick.strides for pick in picks]))
    wide = is_wide(out, source, *[pick.array for pick in picks])
    inner = tuple([min(row[-1], 2) for row in rows])
    launch = compiled(engine, bits(source.dtype), len(dims), inner, words.wraps, wide)
    faults, ticket = engine.faults.expect(words, [pick.indexed for pick in picks])
    total, per_item = out.size // dims[-1], max(1, CHUNK // dims[-1])
    launch(
        -(-total // per_item) if engine.traits.serial else out.size,
        out.buffer, source.buffer, *[pick.array.buffer for pick in picks], faults, ticket,
        out.offset, source.offset, *[pick.array.offset for pick in picks],
        total, per_item, *dims, *[step for row in rows for step in row], *picking.extents_of(picks),
    )  # fmt: skip
    return out


def bits(d: dtype) -> dtype:
    """The dtype in which elements are moved as they are."""
    return identity(d).output


@lru_cache(None)
def compiled(engine: Engine, d: dtype, rank: int, inner: Shape, wraps: bool, wide: bool) -> Launch:
    """The kernel; ``inner`` is the last stride of out, source and each index where that is 0 or 1, 2 for all others."""
    return engine.compile(text(engine.traits.serial, d, rank, inner, wraps, wide))


def text(serial: bool, d: dtype, rank: int, inner: Shape, wraps: bool, wide: bool) -> Source:
    """A row of the last dim at a time, each row's place looked up once where no index varies along it."""
    count, last = len(inner) - 2, rank - 1
    arrays = ("out", "x", *picking.names(count))
    memory = CTYPES[d].memory
    head = (
        writes("out", memory), reads("x", memory), *picking.buffers(count), *walking.offsets(arrays),
        number("rows"), number("rows_per_item"), *walking.sizes(rank), *walking.strides(arrays, rank),
        *picking.extents(count),
    )  # fmt: skip
    at = {n: ("", " + i", f" + i * {n}_s{last}")[kind] for n, kind in zip(arrays, inner, strict=True)}
    along = any(inner[2:])
    found = picking.looked_up(count, [f"{n}_row{at[n] if along else ''}" for n in arrays[2:]], wraps)
    move = f"out[out_row{at['out']}] = x[x_row + to{at['x']}];\n"
    if serial:
        loop = f"for (INDEX i = 0; i < n{last}; ++i) "
        apart = [f"{'i' if kind == 1 else '0' if kind == 0 else f'i * {n}_s{last}'}" for n, kind in zip(arrays, inner)]
        row = f"{loop}{{\n{found}{move}}}\n"
        if not along:  # what no index decides is a loop that every driver's compiler puts into vectors
            row = (
                f"{found}GLOBAL {memory}* const o = out + out_row;\n"
                f"GLOBAL const {memory}* const s = x + (x_row + to);\n"
                f"INDEPENDENT\n{loop}o[{apart[0]}] = s[{apart[1]}];\n"
            )
        body = (
            "const INDEX first = GLOBAL_ID * rows_per_item, rest = rows - first;\n"
            "const INDEX end = first + (rest < rows_per_item ? rest : rows_per_item);\n"
            f"{picking.noted()}for (INDEX row = first; row < end; ++row) {{\n"
            f"{walking.starts(arrays, last)}{row}}}\n{picking.complaint(count)}"
        )
    else:
        body = (
            "const INDEX element = GLOBAL_ID;\n"
            f"if (element < rows * n{last}) {{\nconst INDEX row = element / n{last}, i = element % n{last};\n"
            f"{picking.noted()}{walking.starts(arrays, last)}{found}{move}{picking.complaint(count)}}}"
        )
    return Source(f"gather_{memory}_{count}_{rank}d", head, body, wide=wide)
