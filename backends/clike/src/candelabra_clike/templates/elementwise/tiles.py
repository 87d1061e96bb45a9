"""Elementwise kernels of serial devices in tiles of two dims, along which different arrays are contiguous."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.loops import TRANSPOSED, UNIT, LoopNest, stride_term

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
