"""The stable argsort of rows of unsigned integers.

Serial devices use insertion sort for short rows, otherwise an LSD radix sort (H. H. Seward, 1954) with one row per
work-item, or with blocks of rows if there are fewer rows than processors. Other devices use a merge sort in which every
element finds its position in the adjacent run by binary search, so that all elements move in parallel.
"""

from __future__ import annotations

from typing import NamedTuple

from candelabra.dtypes import dtype, int64, uint32, uint64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.language import INDEX, Value, and_then, cast, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import CHUNK, cast_kernel
from candelabra_clike.types import CTYPES

SHORT = 32
"""The maximum row size for insertion sort."""
LONG = 1 << 15
"""Rows of more elements are divided into blocks if there are few rows."""
RUN = 32
"""The size of the runs that are sorted before merging."""
DIGITS = 256
"""The values of a digit of a key, which has 8 bits."""


def argsort(keys: StridedArray, bits: int) -> StridedArray:
    """Return the indices (int64) that sort each row of contiguous ``keys``, which are overwritten.

    All keys are less than ``2 ** bits``.
    """
    engine, n = keys.engine, keys.shape[-1]
    out = engine.empty(keys.shape, int64)
    if not out.size:
        return out
    rows, key = out.size // n, CTYPES[keys.dtype].memory
    if not engine.traits.serial:
        return _merge_sort(keys, rows, n)
    if n <= SHORT:
        rows_per_item = max(1, CHUNK // SHORT)
        launch = compiled(engine, insertion, key, out.size >= WIDE)
        launch(-(-rows // rows_per_item), keys.buffer, out.buffer, rows, rows_per_item, n)
    elif rows < engine.traits.compute_units and n >= LONG:
        return _radix_sort_blocks(keys, rows, n, bits)
    else:
        spare, first, second = (engine.empty((out.size,), d) for d in (keys.dtype, index_dtype(out), index_dtype(out)))
        launch = compiled(engine, radix, key, bits // 8, out.size >= WIDE)
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
    key = CTYPES[keys.dtype].memory
    count, scatter = (compiled(engine, source, key, d is uint64) for source in (digits, scatter_digits))
    at, to = (keys, indices), (spare_keys, spare_indices)
    for shift in range(0, bits, 8):
        count(rows * blocks, at[0].buffer, counts.buffer, rows, blocks, n, shift)
        scatter(
            rows * blocks, at[0].buffer, at[1].buffer, to[0].buffer, to[1].buffer, counts.buffer,
            rows, blocks, n, shift,
        )  # fmt: skip
        at, to = to, at
    return cast_kernel(d, int64)(at[1])  # type: ignore[no-any-return]


def _merge_sort(keys: StridedArray, rows: int, n: int) -> StridedArray:
    engine, d = keys.engine, index_dtype(keys)
    spare_keys, indices, spare_indices = (engine.empty(keys.shape, e) for e in (keys.dtype, d, d))
    key = CTYPES[keys.dtype].memory
    first, merge = (compiled(engine, source, key, d is uint64) for source in (runs, merging))
    first(keys.size, keys.buffer, spare_keys.buffer, indices.buffer, keys.size, n)
    at, to = (spare_keys, indices), (keys, spare_indices)
    width = RUN
    while width < n:
        merge(
            keys.size, at[0].buffer, at[1].buffer, to[0].buffer, to[1].buffer, keys.size, n, width
        )  # fmt: skip
        at, to = to, at
        width *= 2
    return cast_kernel(d, int64)(at[1])  # type: ignore[no-any-return]


@built("sort")
def insertion(key: str, wide: bool) -> Source:
    """Return the kernel that sorts several short rows per work-item in private arrays."""
    k = KernelBuilder(f"insertion_{key}", wide)
    keys, out = k.reads("keys", key), k.writes("out", "i64")
    rows, rows_per_item, n = k.numbers("rows", "rows_per_item", "n")
    ordered, order = k.array("ordered", key, SHORT), k.array("order", "u32", SHORT)
    with k.share("row", rows, rows_per_item) as row:
        with k.loop("i", constant("u32", 0), cast("u32", n)) as i:
            mine, j = k.let("mine", keys[row * n + i]), k.variable("j", i)
            with k.repeat(and_then(j > 0, ordered[j - 1] > mine)):
                ordered[j] = ordered[j - 1]
                order[j] = order[j - 1]
                k.assign(j, j - 1)
            ordered[j] = mine
            order[j] = i
        with k.loop("i", constant("u32", 0), cast("u32", n)) as i:
            out[row * n + i] = cast("i64", order[i])
    return k.source()


def _digit(key: Value, shift: Value | int) -> Value:
    """Return a digit of a key."""
    return (key >> shift) & constant(key.type, DIGITS - 1)


def _count(counts: KernelArray, digit: Value) -> None:
    counts[digit] = counts[digit] + 1


@built("sort")
def radix(key: str, passes: int, wide: bool) -> Source:
    """Return the kernel that sorts a row per work-item. All digits are counted at once; passes with equal digits are
    skipped.
    """
    k = KernelBuilder(f"radix_{key}_{passes}", wide)
    keys, spare = k.writes("keys", key), k.writes("spare", key)
    order, other = k.writes("order", INDEX), k.writes("other", INDEX)
    out, (rows, n) = k.writes("out", "i64"), k.numbers("rows", "n")
    with k.when(k.item < rows):
        row = k.let("row", k.item * n)
        counts = k.fill(k.array("counts", INDEX, passes * DIGITS), passes * DIGITS)
        from_keys, to_keys = k.pointer("from_keys", keys, row), k.pointer("to_keys", spare, row)
        from_order, to_order = k.pointer("from_order", order, row), k.pointer("to_order", other, row)
        with k.loop("i", 0, n) as i:
            each = k.let("each", from_keys[i])
            for p in range(passes):
                _count(counts, _digit(each, 8 * p) + constant(key, p * DIGITS))
        fresh = k.variable("fresh", constant("bool", 1))
        with k.loop("pass", constant("u32", 0), passes) as digit_pass:
            shift, at = k.let("shift", digit_pass * 8), k.let("at", cast(key, digit_pass) * DIGITS)
            with k.when(counts[at + _digit(from_keys[0], shift)] == n):
                k.next()
            before = k.variable("before", constant(INDEX, 0))
            with k.loop("c", at, at + DIGITS) as c:
                many = k.let("many", counts[c])
                counts[c] = before
                k.assign(before, before + many)
            with k.loop("i", 0, n) as i:
                each = k.let("each", from_keys[i])
                digit = k.let("digit", at + _digit(each, shift))
                to = k.let("to", counts[digit])
                counts[digit] = to + 1
                to_keys[to] = each
                to_order[to] = select(fresh, i, from_order[i])
            k.swap(from_keys, to_keys)
            k.swap(from_order, to_order)
            k.assign(fresh, 0)
        with k.loop("i", 0, n) as i:
            out[row + i] = cast("i64", select(fresh, i, from_order[i]))
    return k.source()


class Blocks(NamedTuple):
    """The parameters of a kernel in which a work-item processes a block of a row."""

    rows: Value
    blocks: Value
    n: Value
    shift: Value

    @classmethod
    def of(cls, k: KernelBuilder) -> Blocks:
        """Add the parameters to a kernel."""
        rows, blocks, n = k.numbers("rows", "blocks", "n")
        return cls(rows, blocks, n, k.number("shift", "u32"))

    def block(self, k: KernelBuilder) -> tuple[Value, Value, Value, Value]:
        """Declare the row and block of a work-item, and where in the row the block begins and ends."""
        row, block = k.let("row", k.item // self.blocks), k.let("block", k.item % self.blocks)
        size = k.let("size", (self.n + self.blocks - 1) // self.blocks)
        begin = k.let("begin", least(block * size, self.n))
        return row, block, begin, k.let("end", begin + least(self.n - begin, size))


@built("sort")
def digits(key: str, wide: bool) -> Source:
    """Return the kernel that counts the digits of each block."""
    k = KernelBuilder(f"digits_{key}", wide)
    keys, counts, parts = k.reads("keys", key), k.writes("counts", INDEX), Blocks.of(k)
    with k.when(k.item < parts.rows * parts.blocks):
        row, _, begin, end = parts.block(k)
        mine = k.fill(k.array("mine", INDEX, DIGITS), DIGITS)
        with k.loop("i", begin, end) as i:
            _count(mine, _digit(keys[row * parts.n + i], parts.shift))
        with k.loop("c", constant("u32", 0), DIGITS) as c:
            counts[k.item * DIGITS + c] = mine[c]
    return k.source()


@built("sort")
def scatter_digits(key: str, wide: bool) -> Source:
    """Return the kernel that moves the elements of each block to the positions of their digits."""
    k = KernelBuilder(f"placing_{key}", wide)
    keys, order = k.reads("keys", key), k.reads("order", INDEX)
    spare, other = k.writes("spare", key), k.writes("other", INDEX)
    counts, parts = k.reads("counts", INDEX), Blocks.of(k)
    with k.when(k.item < parts.rows * parts.blocks):
        row, block, begin, end = parts.block(k)
        to, before = k.array("to", INDEX, DIGITS), k.variable("before", constant(INDEX, 0))
        with k.loop("c", constant("u32", 0), DIGITS) as c:
            to[c] = before
            with k.loop("b", 0, parts.blocks) as b:
                many = k.let("many", counts[(row * parts.blocks + b) * DIGITS + c])
                k.assign(before, before + many)
                to[c] = to[c] + select(b < block, many, 0)
        with k.loop("i", begin, end) as i:
            each = k.let("each", keys[row * parts.n + i])
            digit = k.let("digit", _digit(each, parts.shift))
            there = k.let("there", row * parts.n + to[digit])
            _count(to, digit)
            spare[there] = each
            other[there] = select(parts.shift, order[row * parts.n + i], i)
    return k.source()


@built("sort")
def runs(key: str, wide: bool) -> Source:
    """Return the kernel in which every element finds its rank within its run."""
    k = KernelBuilder(f"runs_{key}", wide)
    keys, spare, order = k.reads("keys", key), k.writes("spare", key), k.writes("order", INDEX)
    total, n = k.numbers("total", "n")
    with k.when(k.item < total):
        j = k.let("j", k.item % n)
        row, start = k.let("row", k.item - j), k.let("start", j - j % RUN)
        end = k.let("end", least(start + RUN, n))
        mine, rank = k.let("mine", keys[k.item]), k.variable("rank", constant(INDEX, 0))
        with k.loop("q", start, end) as q:
            each = k.let("each", keys[row + q])
            k.assign(rank, rank + select((each < mine) | ((each == mine) & (q < j)), constant(INDEX, 1), 0))
        spare[row + start + rank] = mine
        order[row + start + rank] = j
    return k.source()


@built("sort")
def merging(key: str, wide: bool) -> Source:
    """Return the kernel in which every element finds its rank in the adjacent run; equal keys of the left run come
    first.
    """
    k = KernelBuilder(f"merging_{key}", wide)
    keys, order = k.reads("keys", key), k.reads("order", INDEX)
    spare, other = k.writes("spare", key), k.writes("other", INDEX)
    total, n, width = k.numbers("total", "n", "width")
    with k.when(k.item < total):
        j = k.let("j", k.item % n)
        row, pair = k.let("row", k.item - j), k.let("pair", j // width // 2 * 2 * width)
        middle = k.let("middle", pair + least(n - pair, width))
        end = k.let("end", middle + least(n - middle, width))
        is_left, mine = k.let("is_left", j < middle), k.let("mine", keys[k.item])
        first = k.let("first", select(is_left, middle, pair))
        low, high = k.variable("low", first), k.variable("high", select(is_left, end, middle))
        with k.repeat(low < high):
            centre = k.let("centre", low + (high - low) // 2)
            each = k.let("each", keys[row + centre])
            with k.when(select(is_left, each < mine, each <= mine)):
                k.assign(low, centre + 1)
            with k.otherwise():
                k.assign(high, centre)
        to = k.let("to", row + (low - first) + select(is_left, j, j - middle + pair))
        spare[to] = mine
        other[to] = order[k.item]
    return k.source()
