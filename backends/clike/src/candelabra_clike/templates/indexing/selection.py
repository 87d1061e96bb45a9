"""The k smallest keys of each row by insertion, and binary search in sorted rows."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, and_then, cast, constant, highest, or_else
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import CHUNK
from candelabra_clike.templates.indexing.argsort import LONG
from candelabra_clike.types import CTYPES

FEW = 32
"""The maximum k for selection by insertion."""
PART = 512
"""Elements of a row that justify another lane."""


def smallest_k(keys: StridedArray, k: int) -> StridedArray:
    """Return the indices (int64) of the ``k`` smallest keys of each row, in order. The first of equal keys wins.

    A long row is divided into parts, and the selection is repeated on their results. ``keys`` is contiguous. ``k`` is
    at most :data:`FEW` and at most the row size.
    """
    engine, n = keys.engine, keys.shape[-1]
    rows = keys.size // n
    parts = 1
    if not engine.traits.serial:
        parts = max(1, n // max(PART, 4 * k))
    elif rows < engine.traits.compute_units and n >= LONG:
        parts = 2 * engine.traits.compute_units
    size = -(-n // parts)
    parts = -(-n // size)
    smallest, indices = _select(keys, keys, rows, n, parts, size, k)
    if parts > 1:
        _, indices = _select(smallest, indices, rows, parts * k, 1, parts * k, k)
    return indices.reshaped((*keys.shape[:-1], k))


def _select(
    keys: StridedArray, indices: StridedArray, rows: int, n: int, row_parts: int, size: int, k: int
) -> tuple[StridedArray, StridedArray]:
    """Return the smallest keys of each part of a row, and their elements of ``indices``.

    If ``indices`` is ``keys``, their column numbers are returned instead.
    """
    engine = keys.engine
    shape = (rows, row_parts * k)
    smallest, out = engine.empty(shape, keys.dtype), engine.empty(shape, int64)
    fresh = indices is keys
    compiled_selection(engine, keys.dtype, fresh, keys.size >= WIDE)(
        rows * row_parts, keys.buffer, indices.buffer, smallest.buffer, out.buffer, rows, n, row_parts, size, k
    )
    return smallest, out


@lru_cache(None)
def compiled_selection(engine: Engine, key: dtype, fresh: bool, wide: bool) -> Launch:
    """Return the compiled kernel. With ``fresh``, indices are column numbers."""
    return engine.compile(selection_source(CTYPES[key].memory, fresh, wide))


@built("topk")
def selection_source(word: str, fresh: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item finds the smallest keys of a part of a row, by insertion."""
    kernel = KernelBuilder(f"smallest_{word}_{'fresh' if fresh else 'again'}", wide)
    keys, indices = kernel.reads("keys", word), kernel.reads("indices", word if fresh else "i64")
    smallest, out = kernel.writes("smallest", word), kernel.writes("out", "i64")
    (rows, n, parts, size), k = kernel.numbers("rows", "n", "parts", "size"), kernel.number("k", "u32")
    largest = constant(word, highest(word))
    with kernel.when(kernel.item < rows * parts):
        best, at = kernel.array("best", word, FEW), kernel.array("at", "i64", FEW)
        row, begin = kernel.let("row", kernel.item // parts), kernel.let("begin", kernel.item % parts * size)
        have, worst = kernel.variable("have", constant("u32", 0)), kernel.variable("worst", largest)
        with kernel.loop("i", begin, kernel.let("end", begin + least(n - begin, size))) as i:
            key = kernel.let("key", keys[row * n + i])
            with kernel.when(or_else(have < k, key < worst)):
                j = kernel.variable("j", least(have, k - 1))
                kernel.assign(have, least(have + 1, k))
                with kernel.repeat(and_then(j > 0, best[j - 1] > key)):
                    best[j] = best[j - 1]
                    at[j] = at[j - 1]
                    kernel.assign(j, j - 1)
                best[j] = key
                at[j] = cast("i64", i) if fresh else indices[row * n + i]
                kernel.assign(worst, best[have - 1])
        # The last part may have fewer than k elements. The padding sorts after all other elements of the row.
        with kernel.loop("j", have, k) as j:
            best[j] = largest
            at[j] = 0
        with kernel.loop("j", constant("u32", 0), k) as j:
            smallest[kernel.item * k + j] = best[j]
            out[kernel.item * k + j] = at[j]
    return kernel.source()


# -- binary search ----------------------------------------------------------------------------------------------------
def insertion_indices(sequence: StridedArray, values: StridedArray, right: bool) -> StridedArray:
    """Return the number of elements of a sorted row that are less than each value, or with ``right`` not greater.

    NaN is greater than all elements. Both arrays are contiguous. A 1-d sequence is searched for all values, otherwise
    each row for its own values.
    """
    engine = values.engine
    out = engine.empty(values.shape, int64)
    if not out.size:
        return out
    n = sequence.shape[-1]
    each = out.size if len(sequence.shape) == 1 else values.shape[-1]
    per_item = CHUNK // 16 if engine.traits.serial else 1
    wide = max(array.offset + array.size for array in (sequence, values)) >= WIDE
    compiled_search(engine, values.dtype, wide)(
        -(-out.size // per_item), sequence.buffer, values.buffer, out.buffer, sequence.offset, values.offset, out.size,
        per_item, n, each, int(right),
    )  # fmt: skip
    return out


@lru_cache(None)
def compiled_search(engine: Engine, d: dtype, wide: bool) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(search_source(d, wide))


@built("sorted_place")
def search_source(d: dtype, wide: bool) -> Source:
    """Return the kernel in which a work-item searches for some values."""
    k = KernelBuilder(f"insertion_indices_{d.name}", wide)
    sequence, values, out = k.reads("sequence", d), k.reads("values", d), k.writes("out", "i64")
    sequence_at, values_at, total = k.numbers("sequence_at", "values_at", "total")
    (per_item, n, each), right = k.numbers("per_item", "n", "each"), k.number("right", "u32")
    with k.share("e", total, per_item) as e:
        value = k.let("value", values[values_at + e])
        row = k.let("row", sequence_at + e // each * n)
        low, high = k.variable("low", constant(INDEX, 0)), k.variable("high", n)
        with k.repeat(low < high):
            middle = k.let("middle", low + (high - low) // 2)
            found = k.let("found", sequence[row + middle])
            is_before = or_else(value != value, found < value, and_then(right != 0, found == value))
            with k.when(is_before):
                k.assign(low, middle + 1)
            with k.otherwise():
                k.assign(high, middle)
        out[e] = cast("i64", low)
    return k.source()
