"""The k smallest keys of each row by insertion, and binary search in sorted rows."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
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
    word = CTYPES[key].memory
    at = "(i64)i" if fresh else "indices[row * n + i]"
    body = (
        f"const INDEX item = GLOBAL_ID;\nif (item < rows * parts) {{\n{word} best[{FEW}];\ni64 at[{FEW}];\n"
        "const INDEX row = item / parts, begin = item % parts * size;\n"
        "const INDEX end = n - begin < size ? n : begin + size;\nu32 have = 0;\n"
        f"{word} worst = ({word})~({word})0;\n"
        "for (INDEX i = begin; i < end; ++i) {\n"
        f"const {word} key = keys[row * n + i];\nif (have < k || key < worst) {{\n"
        "u32 j = have < k ? have++ : k - 1;\n"
        "for (; j > 0 && best[j - 1] > key; --j) { best[j] = best[j - 1]; at[j] = at[j - 1]; }\n"
        f"best[j] = key; at[j] = {at};\nworst = best[have - 1];\n}}\n}}\n"
        # The last part may have fewer than k elements. The padding sorts after all other elements of the row.
        f"for (; have < k; ++have) {{ best[have] = ({word})~({word})0; at[have] = 0; }}\n"
        "for (u32 j = 0; j < k; ++j) { smallest[item * k + j] = best[j]; out[item * k + j] = at[j]; }\n}"
    )
    head = (
        reads("keys", word), reads("indices", word if fresh else "i64"), writes("smallest", word), writes("out", "i64"),
        number("rows"), number("n"), number("parts"), number("size"), number("k", "u32"),
    )  # fmt: skip
    return engine.compile(Source(f"smallest_{word}_{'fresh' if fresh else 'again'}", head, body, wide=wide))


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
    c = CTYPES[d]
    body = (
        "const INDEX begin = GLOBAL_ID * per_item, rest = total - begin;\n"
        "const INDEX end = begin + (rest < per_item ? rest : per_item);\n"
        "for (INDEX e = begin; e < end; ++e) {\n"
        f"const {c.value} v = {c.load('values[values_at + e]')};\n"
        "const INDEX row = sequence_at + e / each * n;\nINDEX low = 0, high = n;\n"
        "while (low < high) {\nconst INDEX middle = low + (high - low) / 2;\n"
        f"const {c.value} s = {c.load('sequence[row + middle]')};\n"
        "if (v != v || s < v || (right && s == v)) low = middle + 1; else high = middle;\n}\n"
        "out[e] = (i64)low;\n}"
    )
    head = (
        reads("sequence", c.memory), reads("values", c.memory), writes("out", "i64"), number("sequence_at"),
        number("values_at"), number("total"), number("per_item"), number("n"), number("each"), number("right", "u32"),
    )  # fmt: skip
    return engine.compile(Source(f"insertion_indices_{d.name}", head, body, wide=wide))
