"""Elementwise kernels of serial devices that write their results past the caches.

To write part of a cache line, a processor first reads the line: a quarter of all memory traffic of ``a + b``, and half
of it where much more is written than read, as in an outer product. Therefore a block of the result is computed in
private memory by the usual loop, and stored by whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.source import Source, number
from candelabra_clike.templates.elementwise.loops import UNIT, LoopNest

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
