"""The stable argsort of rows of unsigned integers.

Serial devices use insertion sort for short rows, otherwise an LSD radix sort (H. H. Seward, 1954) with one row per
work-item, or with blocks of rows if there are fewer rows than processors. Other devices use a merge sort in which every
element finds its position in the adjacent run by binary search, so that all elements move in parallel.
"""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int64, uint32, uint64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import cast
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.elementwise.elementwise import CHUNK, Elementwise
from candelabra_clike.types import CTYPES

SHORT = 32
"""The maximum row size for insertion sort."""
LONG = 1 << 15
"""Rows of more elements are divided into blocks if there are few rows."""
RUN = 32
"""The size of the runs that are sorted before merging."""
DIGITS = 256


def argsort(keys: StridedArray, bits: int) -> StridedArray:
    """Return the indices (int64) that sort each row of contiguous ``keys``, which are overwritten.

    All keys are less than ``2 ** bits``.
    """
    engine, n = keys.engine, keys.shape[-1]
    out = engine.empty(keys.shape, int64)
    if not out.size:
        return out
    rows = out.size // n
    if not engine.traits.serial:
        return _merge_sort(keys, rows, n)
    if n <= SHORT:
        wide = out.size >= WIDE
        rows_per_item = max(1, CHUNK // SHORT)
        launch = compiled(engine, "insertion", keys.dtype, 0, wide)
        launch(-(-rows // rows_per_item), keys.buffer, out.buffer, rows, rows_per_item, n)
    elif rows < engine.traits.compute_units and n >= LONG:
        return _radix_sort_blocks(keys, rows, n, bits)
    else:
        spare, first, second = (engine.empty((out.size,), d) for d in (keys.dtype, index_dtype(out), index_dtype(out)))
        launch = compiled(engine, "radix", keys.dtype, bits // 8, out.size >= WIDE)
        launch(rows, keys.buffer, spare.buffer, first.buffer, second.buffer, out.buffer, rows, n)
    return out


def index_dtype(like: StridedArray) -> dtype:
    """Return the dtype of indices before they are converted to int64."""
    return uint64 if like.size >= WIDE else uint32


def _radix_sort_blocks(keys: StridedArray, rows: int, n: int, bits: int) -> StridedArray:
    """Sort by one pass per byte: every block counts its digits, then moves its elements to their positions."""
    engine, d = keys.engine, index_dtype(keys)
    blocks = 2 * engine.traits.compute_units
    counts = engine.empty((rows * blocks * DIGITS,), d)
    spare_keys, indices, spare_indices = (engine.empty(keys.shape, e) for e in (keys.dtype, d, d))
    wide = d is uint64
    count, scatter = (compiled(engine, name, keys.dtype, 0, wide) for name in ("digits", "scatter_digits"))
    at, to = (keys, indices), (spare_keys, spare_indices)
    for shift in range(0, bits, 8):
        count(rows * blocks, at[0].buffer, counts.buffer, rows, blocks, n, shift)
        scatter(
            rows * blocks, at[0].buffer, at[1].buffer, to[0].buffer, to[1].buffer, counts.buffer,
            rows, blocks, n, shift,
        )  # fmt: skip
        at, to = to, at
    return _widen(at[1])


def _merge_sort(keys: StridedArray, rows: int, n: int) -> StridedArray:
    engine, d = keys.engine, index_dtype(keys)
    spare_keys, indices, spare_indices = (engine.empty(keys.shape, e) for e in (keys.dtype, d, d))
    runs, merge = (compiled(engine, name, keys.dtype, 0, d is uint64) for name in ("runs", "merging"))
    runs(keys.size, keys.buffer, spare_keys.buffer, indices.buffer, keys.size, n)
    at, to = (spare_keys, indices), (keys, spare_indices)
    width = RUN
    while width < n:
        merge(
            keys.size, at[0].buffer, at[1].buffer, to[0].buffer, to[1].buffer, keys.size, n, width
        )  # fmt: skip
        at, to = to, at
        width *= 2
    return _widen(at[1])


@lru_cache(2)
def widen_kernel(d: dtype) -> Elementwise:
    """Return the kernel that converts indices to int64."""
    return Elementwise.of(f"widen_{d.name}", lambda a: cast("i64", a), (d,), int64)


def _widen(indices: StridedArray) -> StridedArray:
    out: StridedArray = widen_kernel(indices.dtype)(indices)
    return out


@lru_cache(None)
def compiled(engine: Engine, name: str, key: dtype, passes: int, wide: bool) -> Launch:
    """Return the compiled kernel of this name."""
    return engine.compile(SOURCES[name](CTYPES[key].memory, passes, wide))


def insertion(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel that sorts several short rows per work-item in private arrays."""
    body = (
        f"{key} k[{SHORT}];\nu32 o[{SHORT}];\n"
        "const INDEX first = GLOBAL_ID * rows_per_item, rest = rows - first;\n"
        "const INDEX end = first + (rest < rows_per_item ? rest : rows_per_item);\n"
        "for (INDEX row = first; row < end; ++row) {\n"
        "for (u32 i = 0; i < (u32)n; ++i) {\n"
        f"const {key} mine = keys[row * n + i];\nu32 j = i;\n"
        "for (; j > 0 && k[j - 1] > mine; --j) { k[j] = k[j - 1]; o[j] = o[j - 1]; }\n"
        "k[j] = mine;\no[j] = i;\n}\n"
        "for (u32 i = 0; i < (u32)n; ++i) out[row * n + i] = (i64)o[i];\n}"
    )
    head = (reads("keys", key), writes("out", "i64"), number("rows"), number("rows_per_item"), number("n"))
    return Source(f"insertion_{key}", head, body, wide=wide)


def radix(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel that sorts a row per work-item. All digits are counted at once; passes with equal digits are
    skipped.
    """
    body = (
        "const INDEX row = GLOBAL_ID;\nif (row < rows) {\n"
        f"INDEX counts[{passes * DIGITS}];\n"
        f"for (u32 c = 0; c < {passes * DIGITS}u; ++c) counts[c] = 0;\n"
        f"GLOBAL {key} *k = keys + row * n, *k2 = spare + row * n;\n"
        "GLOBAL INDEX *o = order + row * n, *o2 = other + row * n;\n"
        f"for (INDEX i = 0; i < n; ++i) {{\nconst {key} key = k[i];\n"
        + "".join(f"++counts[{p * DIGITS} + ((key >> {8 * p}) & 255u)];\n" for p in range(passes))
        + "}\nu32 fresh = 1;\n"
        f"for (u32 pass = 0; pass < {passes}u; ++pass) {{\n"
        f"const u32 shift = pass * 8u, at = pass * {DIGITS}u;\n"
        "if (counts[at + ((k[0] >> shift) & 255u)] == n) continue;\n"
        f"INDEX sum = 0;\nfor (u32 c = at; c < at + {DIGITS}u; ++c) "
        "{ const INDEX many = counts[c]; counts[c] = sum; sum += many; }\n"
        "for (INDEX i = 0; i < n; ++i) {\n"
        f"const {key} key = k[i];\nconst INDEX to = counts[at + ((key >> shift) & 255u)]++;\n"
        "k2[to] = key;\no2[to] = fresh ? i : o[i];\n}\n"
        f"GLOBAL {key}* const kt = k; k = k2; k2 = kt;\nGLOBAL INDEX* const ot = o; o = o2; o2 = ot;\nfresh = 0;\n}}\n"
        "for (INDEX i = 0; i < n; ++i) out[row * n + i] = (i64)(fresh ? i : o[i]);\n}"
    )
    head = (
        writes("keys", key), writes("spare", key), writes("order", "INDEX"), writes("other", "INDEX"),
        writes("out", "i64"), number("rows"), number("n"),
    )  # fmt: skip
    return Source(f"radix_{key}_{passes}", head, body, wide=wide)


BLOCK = (
    "const INDEX item = GLOBAL_ID;\nif (item < rows * blocks) {\n"
    "const INDEX row = item / blocks, block = item % blocks, size = (n + blocks - 1) / blocks;\n"
    "const INDEX begin = block * size < n ? block * size : n, end = n - begin < size ? n : begin + size;\n"
)
"""Statements for the part of a row that a work-item processes."""


def digits(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel that counts the digits of each block."""
    body = (
        f"{BLOCK}INDEX mine[{DIGITS}];\nfor (u32 c = 0; c < {DIGITS}u; ++c) mine[c] = 0;\n"
        "for (INDEX i = begin; i < end; ++i) ++mine[(keys[row * n + i] >> shift) & 255u];\n"
        f"for (u32 c = 0; c < {DIGITS}u; ++c) counts[item * {DIGITS}u + c] = mine[c];\n}}"
    )
    head = (
        reads("keys", key), writes("counts", "INDEX"), number("rows"), number("blocks"), number("n"),
        number("shift", "u32"),
    )  # fmt: skip
    return Source(f"digits_{key}", head, body, wide=wide)


def scatter_digits(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel that moves the elements of each block to the positions of their digits."""
    body = (
        f"{BLOCK}INDEX to[{DIGITS}];\nINDEX sum = 0;\n"
        f"for (u32 c = 0; c < {DIGITS}u; ++c) {{\nto[c] = sum;\n"
        "for (INDEX b = 0; b < blocks; ++b) {\n"
        f"const INDEX many = counts[(row * blocks + b) * {DIGITS}u + c];\n"
        "sum += many;\nto[c] += b < block ? many : 0;\n}\n}\n"
        "for (INDEX i = begin; i < end; ++i) {\n"
        f"const {key} key = keys[row * n + i];\nconst INDEX there = row * n + to[(key >> shift) & 255u]++;\n"
        "spare[there] = key;\nother[there] = shift ? order[row * n + i] : i;\n}\n}"
    )
    head = (
        reads("keys", key), reads("order", "INDEX"), writes("spare", key), writes("other", "INDEX"),
        reads("counts", "INDEX"), number("rows"), number("blocks"), number("n"), number("shift", "u32"),
    )  # fmt: skip
    return Source(f"placing_{key}", head, body, wide=wide)


def runs(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel in which every element finds its rank within its run."""
    body = (
        "const INDEX e = GLOBAL_ID;\nif (e < total) {\n"
        f"const INDEX j = e % n, row = e - j, start = j - j % {RUN}u;\n"
        f"const INDEX end = n - start < {RUN}u ? n : start + {RUN}u;\n"
        f"const {key} mine = keys[e];\nINDEX rank = 0;\n"
        "for (INDEX q = start; q < end; ++q) {\n"
        f"const {key} key = keys[row + q];\nrank += key < mine || (key == mine && q < j) ? 1 : 0;\n}}\n"
        "spare[row + start + rank] = mine;\norder[row + start + rank] = j;\n}"
    )
    head = (reads("keys", key), writes("spare", key), writes("order", "INDEX"), number("total"), number("n"))
    return Source(f"runs_{key}", head, body, wide=wide)


def merging(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel in which every element finds its rank in the adjacent run; equal keys of the left run come
    first.
    """
    body = (
        "const INDEX e = GLOBAL_ID;\nif (e < total) {\n"
        "const INDEX j = e % n, row = e - j, pair = j / width / 2 * 2 * width;\n"
        "const INDEX middle = n - pair < width ? n : pair + width;\n"
        "const INDEX end = n - middle < width ? n : middle + width;\n"
        f"const u32 left = j < middle;\nconst {key} mine = keys[e];\n"
        "INDEX low = left ? middle : pair, high = left ? end : middle;\nconst INDEX first = low;\n"
        "while (low < high) {\n"
        f"const INDEX centre = low + (high - low) / 2;\nconst {key} key = keys[row + centre];\n"
        "if (left ? key < mine : key <= mine) low = centre + 1; else high = centre;\n}\n"
        "const INDEX to = row + (low - first) + (left ? j : j - middle + pair);\n"
        "spare[to] = mine;\nother[to] = order[e];\n}"
    )
    head = (
        reads("keys", key), reads("order", "INDEX"), writes("spare", key), writes("other", "INDEX"),
        number("total"), number("n"), number("width"),
    )  # fmt: skip
    return Source(f"merging_{key}", head, body, wide=wide)


SOURCES = {
    "insertion": insertion, "radix": radix, "digits": digits, "scatter_digits": scatter_digits, "runs": runs,
    "merging": merging,
}  # fmt: skip
