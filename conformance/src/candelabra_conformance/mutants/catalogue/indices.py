"""Faults of indices and order: ties, duplicates, stability, bounds, gathering and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks

Dims = tuple[int, ...] | None


@breaks("argmax", "argmin", caught_by="argm*/value/* argm*/special/*", name="of-ties-the-last-is-told")
def last_of_equal_extremes(right: Kernel, x: Any, dim: int | None, keepdim: bool) -> Any:
    """Among equal extremes the last index is returned instead of the first."""
    if not x.ndim or not x.size:
        return right(x, dim, keepdim)
    axis = 0 if dim is None else dim
    flat = x.reshape(-1) if dim is None else x
    out = flat.shape[axis] - 1 - right(np.ascontiguousarray(np.flip(flat, axis)), axis, keepdim and dim is not None)
    return out.reshape((1,) * x.ndim) if dim is None and keepdim else out


@breaks("sort", "argsort", caught_by="sort/value/* argsort/value/*")
def sorting_is_not_stable(right: Kernel, x: Any, dim: int, descending: bool, stable: bool) -> Any:
    """Equal elements are returned in reverse order."""
    if not x.ndim:
        return right(x, dim, descending, stable)
    out = right(np.ascontiguousarray(np.flip(x, dim)), dim, descending, True)
    counted = x.shape[dim] - 1 - (out[1] if isinstance(out, tuple) else out)
    return (out[0], counted) if isinstance(out, tuple) else counted


@breaks("sort", "ordered", caught_by="sort/value/* ordered/value/*")
def rows_beyond_64_are_sorted_in_parts(right: Kernel, x: Any, dim: int, *rest: Any) -> Any:
    """Sorted runs of 64 are not merged."""
    if not x.ndim or x.shape[dim] <= 64:
        return right(x, dim, *rest)
    parts = [right(np.ascontiguousarray(p), dim, *rest) for p in np.split(x, range(64, x.shape[dim], 64), dim)]
    if not isinstance(parts[0], tuple):
        return np.concatenate(parts, dim)
    values = np.concatenate([p[0] for p in parts], dim)
    return values, np.concatenate([p[1] + 64 * i for i, p in enumerate(parts)], dim)


@breaks("topk", caught_by="topk/value/*")
def the_least_are_the_greatest(right: Kernel, x: Any, k: int, dim: int, largest: bool, ordered: bool) -> Any:
    """``largest=False`` is ignored."""
    return right(x, k, dim, True, ordered)


@breaks("kthvalue", caught_by="kthvalue/value/*")
def places_count_from_0(right: Kernel, x: Any, k: int, dim: int, keepdim: bool) -> Any:
    """The k-th value is the next larger one, if it exists."""
    return right(x, min(k + 1, x.shape[dim]) if x.ndim else k, dim, keepdim)


@breaks("median_dim", caught_by="median_dim/value/*")
def the_median_is_the_upper_one(right: Kernel, x: Any, dim: int, keepdim: bool) -> Any:
    """For an even number of values the upper median is returned."""
    if not x.ndim or x.shape[dim] % 2:
        return right(x, dim, keepdim)
    values, counted = right(-x if x.dtype.kind in "if" else x, dim, keepdim)
    return -values if x.dtype.kind in "if" else values, counted


@breaks("cumsum", caught_by="cumsum/value/*")
def running_sums_leave_the_element_out(right: Kernel, x: Any, dim: int, dtype: Any) -> Any:
    """A running sum at an index excludes the element at that index."""
    out = right(x, dim, dtype)
    return out - x.astype(out.dtype) if x.ndim and out.dtype.kind in "iufc" else out


@breaks("cumprod", caught_by="cumprod/value/*")
def running_products_start_anew(right: Kernel, x: Any, dim: int, dtype: Any) -> Any:
    """A scan in blocks of 8 does not carry the previous result into the next block."""
    if not x.ndim or x.shape[dim] <= 8:
        return right(x, dim, dtype)
    parts = np.split(x, range(8, x.shape[dim], 8), dim)
    return np.concatenate([right(np.ascontiguousarray(p), dim, dtype) for p in parts], dim)


@breaks("sorted_place", caught_by="sorted_place/value/*")
def insertion_is_always_at_the_left(right: Kernel, sequence: Any, values: Any, side: bool) -> Any:
    """``right`` is ignored."""
    return right(sequence, values, False)


@breaks("index_add", "scatter_add", caught_by="*/value/*")
def duplicates_are_added_once(right: Kernel, x: Any, dim: int, index: Any, source: Any) -> Any:
    """Of several values for one index only the last is added: a race."""
    zero = np.zeros_like(x)
    if not x.ndim or x.dtype == bool:
        return right(x, dim, index, source)
    if index.ndim == 1 and source.shape != index.shape:
        for i, place in enumerate(index):
            np.moveaxis(zero, dim, 0)[place] = np.moveaxis(source, dim, 0)[i]
    else:
        part = tuple(slice(0, n) for n in index.shape)
        np.put_along_axis(
            zero[tuple(slice(None) if d == dim else s for d, s in enumerate(part))], index, source[part], dim
        )
    return (x + zero).astype(x.dtype)


@breaks("index_put", caught_by="index_put/value/*")
def accumulation_overwrites(right: Kernel, x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """``accumulate`` is ignored."""
    return right(x, indices, values, False)


@breaks("gather", "index_select", caught_by="gather/value/* index_select/value/*")
def indices_are_read_as_8_bits(right: Kernel, x: Any, dim: int, index: Any) -> Any:
    """Indices above 255 wrap around."""
    return right(x, dim, index % 256)


@breaks("index_select", "embedding", caught_by="index_select/value/* embedding/value/*")
def the_first_index_stands_for_the_last(right: Kernel, *args: Any) -> Any:
    """The last index of a list is not read."""

    def wrong(index: Any) -> Any:
        flat = index.reshape(-1).copy()
        flat[-1:] = flat[:1]
        return flat.reshape(index.shape)

    last = max(i for i, a in enumerate(args) if isinstance(a, np.ndarray))
    return right(*(wrong(a) if i == last else a for i, a in enumerate(args)))


@breaks("masked_select", caught_by="masked_select/value/*")
def masks_are_not_broadcast(right: Kernel, x: Any, mask: Any) -> Any:
    """A mask of fewer dims is extended with false."""
    if mask.shape == x.shape:
        return right(x, mask)
    shape = np.broadcast_shapes(x.shape, mask.shape)
    wide = np.zeros(shape, bool).reshape(-1)
    wide[: mask.size] = mask.reshape(-1)
    return right(x, wide.reshape(shape))


@breaks("scatter_src", caught_by="scatter_src/value/*")
def scattering_turns_dims_round(right: Kernel, x: Any, dim: int, index: Any, src: Any) -> Any:
    """On square matrices the values are scattered along the other dim."""
    square = x.ndim == 2 and x.shape == index.shape and x.shape[0] == x.shape[1]
    return right(x, 1 - dim if square else dim, index, src)


@breaks("tally", caught_by="tally/value/*")
def counting_loses_increments(right: Kernel, counted: Any, weights: Any, size: int) -> Any:
    """Counts stop at 3: simultaneous increments of one counter are lost."""
    out = right(counted, weights, size)
    return out if weights is not None else np.minimum(out, 3)
