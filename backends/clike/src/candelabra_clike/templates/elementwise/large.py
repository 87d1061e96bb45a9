"""Elementwise kernels of serial devices for large arrays: in tiles, and with stores past the caches.

A work-item processes tiles of two dims along which different arrays are contiguous.

To write part of a cache line, a processor first reads the line: a quarter of all memory traffic of ``a + b``, and half
of it where much more is written than read, as in an outer product. Therefore a block of the result is computed in
private memory by the usual loop, and stored by whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.source import Source, number
from candelabra_clike.templates.elementwise.loops import TRANSPOSED, UNIT, LoopNest, stride_term

BLOCK_BYTES = 1024
"""The size of the block of results that a work-item buffers before non-temporal stores."""
LINE_BYTES = 64
"""The size of a non-temporal store: a cache line."""


def nontemporal(nest: LoopNest) -> Source:
    """Return the kernel for contiguous arrays on serial devices; the result is aligned."""
    targets = "".join(_target(nest, n, f"{n} + ({n}_at + first)") for n in nest.written)
    body = f"{nest.chunk(nest.read)}{targets}{_blocks(nest)}{_loop(nest, (UNIT,) * len(nest.names))}"
    return nest.source(f"{nest.name}_past_caches", (number("n"),), body, wide=True)


def nontemporal_rows(nest: LoopNest, rank: int, inner: Sequence[int]) -> Source:
    """Return the kernel of :meth:`LoopNest.rows` for results whose rows are contiguous and start at a cache line.

    No kind of stride in ``inner`` is ``STEP``.
    """
    starts = "".join(
        _target(nest, n, start) if n in nest.written else nest.pointer(n, start)
        for n, start in nest.row_starts(rank, inner).items()
    )
    row = starts + _loop(nest, inner, rank - 1)
    return nest.over_rows(f"{nest.name}_rows{rank}_past_caches", rank, row, before=_blocks(nest))


def _per_block(nest: LoopNest) -> int:
    return BLOCK_BYTES // max(d.itemsize for d in nest.outputs)


def _blocks(nest: LoopNest) -> str:
    """Return the definitions of the blocks of results in private memory."""
    lines = [
        f"union {{ {nest.memory[n]} each[{_per_block(nest)}]; "
        f"CACHE_LINE lines[{_per_block(nest) * d.itemsize // LINE_BYTES}]; }} block_{n};\n"
        f"{nest.memory[n]}* p{n} = block_{n}.each;\n"
        for n, d in zip(nest.written, nest.outputs)
    ]
    return "".join(lines)


def _target(nest: LoopNest, n: str, start: str) -> str:
    """Return the definition of the pointer to the memory of a result."""
    return f"GLOBAL {nest.memory[n]}* to_{n} = {start};\n"


def _loop(nest: LoopNest, inner: Sequence[int], last: int = 0) -> str:
    """Return the loop over ``m`` elements that stores them by cache lines. It moves the pointers."""
    stores = ""
    for n, d in zip(nest.written, nest.outputs):
        per_line = LINE_BYTES // d.itemsize
        stores += (
            f"{{\nconst u32 lines = many / {per_line}u;\nfor (u32 i = 0; i < lines; ++i) "
            f"STORE_NONTEMPORAL((GLOBAL CACHE_LINE*)to_{n} + i, block_{n}.lines[i]);\n"
            f"for (u32 i = lines * {per_line}u; i < many; ++i) to_{n}[i] = block_{n}.each[i];\n"
            f"to_{n} += many;\n}}\n"
        )
    ahead = "".join(f" p{n} += many;" for n, kind in zip(nest.names, inner) if n in nest.read and kind == UNIT)
    return (
        f"for (u32 from = 0; from < m; from += {_per_block(nest)}u) {{\n"
        f"const u32 left = m - from, many = left < {_per_block(nest)}u ? left : {_per_block(nest)}u;\n"
        f"{nest.loop('many', inner, last)}{stores}{ahead}\n}}\n"
    )


TILE_BYTES = 1 << 14
"""The most that a tile takes of one array. A tile is as many rows as columns of two dims along which different arrays
are contiguous.
"""


def tile_size(nest: LoopNest) -> int:
    """Return the rows and columns of a tile."""
    return 64 if 64 * 64 * max(d.itemsize for d in nest.dtypes.values()) <= TILE_BYTES else 32


def tiles(nest: LoopNest, rank: int, inner: Sequence[int]) -> Source:
    """Return the kernel for serial devices in which a work-item processes the tiles of a band of rows.

    A tile of an array whose kind is ``TRANSPOSED`` is first copied into private memory, row by row of the result.
    """
    last, across, tile = rank - 1, rank - 2, tile_size(nest)
    kinds = dict(zip(nest.names, inner, strict=True))
    transposed = [n for n, kind in kinds.items() if kind == TRANSPOSED]
    starts = "".join(
        f"const {nest.memory[n]}* p{n} = t{n} + i * {tile}u;\n"
        if kind == TRANSPOSED
        else nest.pointer(n, f"{n} + ({n}_row + (band + i) * {n}_s{across}{stride_term('left', n, last, kind)})")
        for n, kind in kinds.items()
    )
    copied = [UNIT if kind == TRANSPOSED else kind for kind in inner]
    body = (
        f"const INDEX bands = (n{across} + {tile - 1}u) / {tile}u, first = GLOBAL_ID / bands;\n"
        f"const INDEX band = GLOBAL_ID % bands * {tile}u, below = n{across} - band;\n"
        f"const u32 height = below < {tile}u ? (u32)below : {tile}u;\n"
        f"{nest.row_offsets(rank, 'first', across)}"
        f"{''.join(f'{nest.memory[n]} t{n}[{tile * tile}];' for n in transposed)}\n"
        f"for (INDEX left = 0; left < n{last}; left += {tile}u) {{\n"
        f"const INDEX beyond = n{last} - left;\nconst u32 m = beyond < {tile}u ? (u32)beyond : {tile}u;\n"
        f"{''.join(_transpose(nest, n, last) for n in transposed)}"
        f"for (u32 i = 0; i < height; ++i) {{\n{starts}{nest.loop('m', copied, last, 'j')}}}\n}}\n"
    )
    name = f"{nest.name}_tiles{rank}{'_transposed' if transposed else ''}"
    return nest.source(name, nest.dims(rank), body, wide=True)


def _transpose(nest: LoopNest, n: str, last: int) -> str:
    """Return statements that copy a tile of an array, transposed, by vectors of eight where the type has them."""
    type, tile = nest.memory[n], tile_size(nest)
    start = f"GLOBAL const {type}* f{n} = {n} + ({n}_row + band + left * {n}_s{last});\n"
    rest = (
        f"for (u32 j = 0; j < m; ++j) for (u32 i = j < wide ? high : 0; i < height; ++i) "
        f"t{n}[i * {tile}u + j] = f{n}[j * {n}_s{last} + i];\n}}\n"
    )
    if nest.dtypes[n].is_complex:
        return f"{{\nconst u32 high = 0, wide = 0;\n{start}{rest}"
    return (
        f"{{\nconst u32 high = height & ~7u, wide = m & ~7u;\n{start}"
        f"for (u32 j = 0; j < wide; j += 8) for (u32 i = 0; i < high; i += 8) {{\n{type}x8 v[8];\n"
        f"UNROLL for (u32 k = 0; k < 8; ++k) v[k] = LOAD_X8({type}, f{n} + (j + k) * {n}_s{last} + i);\n"
        f"TRANSPOSE_X8({type}, v)\n"
        f"UNROLL for (u32 k = 0; k < 8; ++k) PRIVATE_X8({type}, t{n} + (i + k) * {tile}u + j) = v[k];\n}}\n{rest}"
    )
