"""Elementwise kernels of serial devices that write past the caches."""

from __future__ import annotations

from candelabra_clike.source import Source, number
from candelabra_clike.templates.elementwise.loops import UNIT, LoopNest

BLOCK_BYTES = 1024
"""The size of the block of results that a work-item buffers before non-temporal stores."""
LINE_BYTES = 64
"""The size of a non-temporal store: a cache line."""


def nontemporal(nest: LoopNest) -> Source:
    """Return the kernel for contiguous arrays on serial devices that writes the result, which is aligned, past the
    caches.

    To write part of a cache line, a processor first reads the line: a quarter of all memory traffic of ``a + b``.
    Therefore a block of the result is computed in private memory by the usual loop, and stored by whole lines.
    """
    per_block = BLOCK_BYTES // max(d.itemsize for d in nest.outputs)
    blocks, stores = "", ""
    for n, d in zip(nest.written, nest.outputs):
        type, per_line = nest.memory[n], LINE_BYTES // d.itemsize
        blocks += (
            f"GLOBAL {type}* to_{n} = {n} + ({n}_at + first);\n"
            f"union {{ {type} each[{per_block}]; CACHE_LINE lines[{per_block // per_line}]; }} block_{n};\n"
            f"{type}* p{n} = block_{n}.each;\n"
        )
        stores += (
            f"{{\nconst u32 lines = many / {per_line}u;\nfor (u32 i = 0; i < lines; ++i) "
            f"STORE_NONTEMPORAL((GLOBAL CACHE_LINE*)to_{n} + i, block_{n}.lines[i]);\n"
            f"for (u32 i = lines * {per_line}u; i < many; ++i) to_{n}[i] = block_{n}.each[i];\n"
            f"to_{n} += many;\n}}\n"
        )
    ahead = "".join(f" p{n} += many;" for n in nest.read)
    body = (
        f"{nest.chunk(nest.read)}{blocks}"
        f"for (u32 from = 0; from < m; from += {per_block}u) {{\n"
        f"const u32 left = m - from, many = left < {per_block}u ? left : {per_block}u;\n"
        f"{nest.loop('many', (UNIT,) * len(nest.names))}{stores}{ahead}\n}}\n"
    )
    return nest.source(f"{nest.name}_past_caches", (number("n"),), body, wide=True)
