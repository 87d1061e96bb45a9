"""Sorting along a dim: stable, with NaN as the largest element, with the same result on every device. Top-k selection,
and binary search in sorted sequences.

Every element is mapped to an unsigned integer of the same order, its *key*. The keys are sorted, and the values are
gathered in that order, so that all bits are preserved, including those of -0 and NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, int64, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import clone, contiguous, zeros
from candelabra_clike.kernels.indexing import zero_stride
from candelabra_clike.language import INDEX, Value, and_then, call, cast, constant, highest, or_else
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE, check_dims
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import CHUNK, Elementwise
from candelabra_clike.templates.indexing import gather
from candelabra_clike.templates.indexing.argsort import LONG
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.types import CTYPES

PERMUTATION = IndexOutOfBounds("sort", RuntimeError, "sort(): place {index} of {size} along dimension {dim}")
"""Never raised: the indices are a permutation."""


@lru_cache(None)
def keys(d: dtype, descending: bool) -> Elementwise:
    """Return the kernel that computes the keys of a dtype, uint32 or uint64, in ascending or descending order."""
    source, function = d, CTYPES[d].memory
    if d.is_half:
        source, function = uint16, CTYPES[d].converts
    elif d.name == "bool":
        source = uint8
    word = CTYPES[key_dtype(d)].memory

    def key(a: Value) -> Value:
        ascending = call(f"key_{function}", a)
        return cast(word, ascending) ^ ((1 << 8 * d.itemsize) - 1) if descending else ascending

    return Elementwise.of(f"keys_{'down' if descending else 'up'}_{d.name}", key, (source,), key_dtype(d))


def key_dtype(d: dtype) -> dtype:
    """Return the dtype of keys."""
    return uint64 if d.itemsize == 8 else uint32


def move_to_last(x: StridedArray, dim: int) -> StridedArray:
    """View an array with a dim moved to the end."""
    check_dims(x.shape, (dim,))
    return x.restrided(moved_to_last(x.shape, dim), moved_to_last(x.strides, dim), x.offset, x.dtype)


def moved_to_last(values: Shape, dim: int) -> Shape:
    """Return the values with that of one dim moved to the end."""
    return (*values[:dim], *values[dim + 1 :], values[dim])


def restore_dim(x: StridedArray, dim: int) -> StridedArray:
    """Undo :func:`move_to_last`; the result is contiguous."""

    def inserted(values: Shape) -> Shape:
        return (*values[:dim], values[-1], *values[dim:-1])

    return contiguous(x.restrided(inserted(x.shape), inserted(x.strides), x.offset))


def argsort(x: StridedArray, dim: int, descending: bool, stable: bool) -> StridedArray:
    """The indices of :func:`sort`."""
    if not x.shape:
        return zeros(x, (), int64)
    rows = move_to_last(x, dim)
    sort_keys = keys(x.dtype, descending)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    return restore_dim(argsort_keys(sort_keys, 8 * x.dtype.itemsize), dim)


def sort(x: StridedArray, dim: int, descending: bool, stable: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices), stable, NaN last (first if descending)."""
    indices = argsort(x, dim, descending, stable)
    return take_along(x, dim, indices), indices


def take_along(x: StridedArray, dim: int, indices: StridedArray) -> StridedArray:
    """Return the elements at valid indices along ``dim``."""
    if not x.shape:
        return clone(x)
    out = x.engine.empty(indices.shape, x.dtype)
    indexed = (IndexedDim(indices.strides, dim, x.shape[dim], x.strides[dim]),)
    return gather.gather(out, x, zero_stride(x.strides, dim), [indices], indexed, PERMUTATION)


def ordered(x: StridedArray, dim: int) -> StridedArray:
    """The values in ascending order."""
    return sort(x, dim, False, True)[0]


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
    compiled(engine, selection_source, CTYPES[keys.dtype].memory, fresh, keys.size >= WIDE)(
        rows * row_parts, keys.buffer, indices.buffer, smallest.buffer, out.buffer, rows, n, row_parts, size, k
    )
    return smallest, out


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
    compiled(engine, search_source, values.dtype, wide)(
        -(-out.size // per_item), sequence.buffer, values.buffer, out.buffer, sequence.offset, values.offset, out.size,
        per_item, n, each, int(right),
    )  # fmt: skip
    return out


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


def topk(x: StridedArray, k: int, dim: int, largest: bool, sorted: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices) of the ``k`` largest or smallest elements, in order. The first of equal elements wins."""
    size = x.shape[dim] if x.shape else 1
    if not 0 <= k <= size:
        raise ValueError(f"topk() expects k in 0 to {size}, got {k}")
    if not x.shape:
        return clone(x), zeros(x, (), int64)
    if not k or not x.size:
        shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
        return x.engine.empty(shape, x.dtype), x.engine.empty(shape, int64)
    rows = move_to_last(x, dim)
    sort_keys = keys(x.dtype, largest)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    if k <= FEW and 4 * k <= size:
        indices = restore_dim(smallest_k(sort_keys, k), dim)
    else:
        whole = argsort_keys(sort_keys, 8 * x.dtype.itemsize)
        indices = clone(restore_dim(whole.restrided((*whole.shape[:-1], k), whole.strides, 0), dim))
    return take_along(x, dim, indices), indices


def sorted_place(sequence: StridedArray, values: StridedArray, right: bool) -> StridedArray:
    """The insertion indices of ``values`` in a sequence that is sorted along its last dim."""
    if len(sequence.shape) > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"batches of shapes {sequence.shape} and {values.shape} do not match")
    return insertion_indices(contiguous(sequence), contiguous(values), right)


KERNELS: dict[str, Any] = {f.__name__: f for f in (sort, argsort, ordered, topk, sorted_place)}
