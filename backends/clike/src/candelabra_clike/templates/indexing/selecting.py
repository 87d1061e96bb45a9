"""The few smallest of each row of keys, by insertion, and places in sorted rows, by bisection."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.elementwise.elementwise import CHUNK
from candelabra_clike.templates.indexing.ranking import LONG
from candelabra_clike.types import CTYPES

FEW = 32
"""No more are selected by insertion."""
PART = 512
"""Elements of a row that are worth a lane of their own."""


def smallest(keys: StridedArray, k: int) -> StridedArray:
    """The indices (int64) of the ``k`` smallest in each row of contiguous ``keys``, in order; of equal ones the first.

    A long row is looked through in parts, whose smallest are looked through again. ``k`` is :data:`FEW` at most, and
    no more than there are elements in a row.
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
    found, places = _selected(keys, keys, rows, n, parts, size, k)
    if parts > 1:
        _, places = _selected(found, places, rows, parts * k, 1, parts * k, k)
    return places.reshaped((*keys.shape[:-1], k))


def _selected(
    keys: StridedArray, places: StridedArray, rows: int, n: int, parts: int, size: int, k: int
) -> tuple[StridedArray, StridedArray]:
    """The smallest keys of each part with their places: those of ``places``, or the numbers of the columns."""
    engine = keys.engine
    found, out = engine.empty((rows, parts * k), keys.dtype), engine.empty((rows, parts * k), int64)
    fresh = places is keys
    selecting(engine, keys.dtype, fresh, keys.size >= WIDE)(
        rows * parts, keys.buffer, places.buffer, found.buffer, out.buffer, rows, n, parts, size, k
    )
    return found, out


@lru_cache(None)
def selecting(engine: Engine, key: dtype, fresh: bool, wide: bool) -> Launch:
    """The kernel on a device; ``fresh``: places are the numbers of the columns."""
    word = CTYPES[key].memory
    at = "(i64)i" if fresh else "places[row * n + i]"
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
        # A last part may have less than k elements: what fills it up comes after all others of the row.
        f"for (; have < k; ++have) {{ best[have] = ({word})~({word})0; at[have] = 0; }}\n"
        "for (u32 j = 0; j < k; ++j) { found[item * k + j] = best[j]; out[item * k + j] = at[j]; }\n}"
    )
    head = (
        reads("keys", word), reads("places", word if fresh else "i64"), writes("found", word), writes("out", "i64"),
        number("rows"), number("n"), number("parts"), number("size"), number("k", "u32"),
    )  # fmt: skip
    return engine.compile(Source(f"smallest_{word}_{'fresh' if fresh else 'again'}", head, body, wide=wide))


# -- bisection --------------------------------------------------------------------------------------------------------
def places(sequence: StridedArray, values: StridedArray, right: bool) -> StridedArray:
    """How many elements of a sorted row are less than a value, or with ``right`` not greater; all for NaN.

    Both are contiguous; a 1-d sequence serves all values, else each row those of its own.
    """
    engine = values.engine
    out = engine.empty(values.shape, int64)
    if not out.size:
        return out
    n = sequence.shape[-1]
    each = out.size if len(sequence.shape) == 1 else values.shape[-1]
    together = CHUNK // 16 if engine.traits.serial else 1
    wide = max(array.offset + array.size for array in (sequence, values)) >= WIDE
    bisecting(engine, values.dtype, wide)(
        -(-out.size // together), sequence.buffer, values.buffer, out.buffer, sequence.offset, values.offset, out.size,
        together, n, each, int(right),
    )  # fmt: skip
    return out


@lru_cache(None)
def bisecting(engine: Engine, d: dtype, wide: bool) -> Launch:
    """The kernel on a device."""
    c = CTYPES[d]
    body = (
        "const INDEX begin = GLOBAL_ID * together, rest = total - begin;\n"
        "const INDEX end = begin + (rest < together ? rest : together);\n"
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
        number("values_at"), number("total"), number("together"), number("n"), number("each"), number("right", "u32"),
    )  # fmt: skip
    return engine.compile(Source(f"places_{d.name}", head, body, wide=wide))
