"""Whether all elements of an index array are in bounds: a pass before a kernel writes where they say."""

from __future__ import annotations

from functools import lru_cache

from candelabra_clike.array import StridedArray
from candelabra_clike.language import cast, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source

CHUNK = 1 << 14
"""Elements of a work-item."""


@lru_cache(1)
@built("index")
def source() -> Source:
    """Return the kernel: work-item ``g`` writes whether an element of its chunk plus ``shift`` is not below ``end``."""
    k = KernelBuilder("index_check", wide=True)
    out, index, (index_at, n) = k.writes("out", "u32"), k.reads("index", "i64"), k.numbers("index_at", "n")
    shift, end = k.number("shift", "u64"), k.number("end", "u64")
    first = k.let("first", k.item * CHUNK)
    part, wrong = k.pointer("part", index, index_at + first), k.variable("wrong", constant("u32", 0))
    with k.loop("i", 0, k.let("many", cast("u32", least(n - first, CHUNK))), independent=True) as i:
        k.assign(wrong, wrong | select(cast("u64", part[i]) + shift >= end, constant("u32", 0xFFFFFFFF), 0))
    out[k.item] = wrong
    return k.source()


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
