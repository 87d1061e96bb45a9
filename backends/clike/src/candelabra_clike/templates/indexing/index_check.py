"""Whether all elements of an index array are in bounds: a pass before a kernel writes where they say."""

from __future__ import annotations

from functools import lru_cache

from candelabra_clike.array import StridedArray
from candelabra_clike.source import Source, number, reads, writes

CHUNK = 1 << 14
"""Elements of a work-item."""


@lru_cache(1)
def source() -> Source:
    """Return the kernel: work-item ``g`` writes whether an element of its chunk plus ``shift`` is not below ``end``."""
    head = (writes("out", "u32"), reads("index", "i64"), *map(number, ("index_at", "n")))
    body = (
        f"const INDEX first = GLOBAL_ID * {CHUNK}u, rest = n - first;\n"
        f"const u32 m = rest < {CHUNK}u ? (u32)rest : {CHUNK}u;\n"
        "GLOBAL const i64* p = index + (index_at + first);\nu32 wrong = 0;\n"
        "INDEPENDENT\nfor (u32 i = 0; i < m; ++i) wrong |= (u64)p[i] + shift >= end ? ~0u : 0u;\n"
        "out[GLOBAL_ID] = wrong;\n"
    )
    return Source("index_check", (*head, number("shift", "u64"), number("end", "u64")), body, wide=True)


def is_in_bounds(index: StridedArray, size: int, wraps: bool) -> bool:
    """Return whether all elements are from 0, or with ``wraps`` from ``-size``, to ``size - 1``."""
    from candelabra_clike.kernels.copies import contiguous

    if not index.size:
        return True
    engine, flat, items = index.engine, contiguous(index), -(-index.size // CHUNK)
    out = engine.allocate(4 * items)
    shift = size if wraps else 0
    engine.compile(source())(items, out, flat.buffer, flat.offset, flat.size, shift, size + shift)
    return not any(engine.read(out, 0, 4 * items))
