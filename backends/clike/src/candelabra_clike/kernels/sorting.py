"""Order along one dim: stable, NaN as the largest, the same on every device.

Every element becomes an unsigned integer of the same order, its *key*; the keys' order is found, and the values are
gathered in it: every bit arrives, that of -0 and those of NaN, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, int64, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.faults import OutOfBounds
from candelabra_clike.kernels.copying import clone, dense
from candelabra_clike.kernels.indexing import without
from candelabra_clike.kernels.scattering import zeros
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing import gathering
from candelabra_clike.templates.indexing.picking import Pick
from candelabra_clike.templates.indexing.ranking import order
from candelabra_clike.types import CTYPES

ORDERED = OutOfBounds("sort", RuntimeError, "sort(): place {index} of {size} along dimension {dim}")
"""Never said: the places are a permutation."""


@lru_cache(None)
def keys(d: dtype, descending: bool) -> Elementwise:
    """The keys of a dtype, as uint32 or uint64; those of the opposite order for ``descending``."""
    expression, source = key_of(d, descending)
    return Elementwise(f"keys_{'down' if descending else 'up'}_{d.name}", expression, (source,), key_dtype(d))


def key_of(d: dtype, descending: bool) -> tuple[str, dtype]:
    """The expression of a key, and the dtype as which elements are read for it."""
    source, function = d, CTYPES[d].memory
    if d.itemsize == 2 and d.is_floating_point:
        source, function = uint16, CTYPES[d].converts
    elif d.name == "bool":
        source = uint8
    expression = f"key_{function}({{a}})"
    if descending:
        word = CTYPES[key_dtype(d)].memory
        expression = f"(({word})0x{(1 << 8 * d.itemsize) - 1:X} ^ ({word}){expression})"
    return expression, source


def key_dtype(d: dtype) -> dtype:
    """The dtype of keys."""
    return uint64 if d.itemsize == 8 else uint32


def last(x: StridedArray, dim: int) -> StridedArray:
    """The array seen with a dim moved to the last place."""
    return x.restrided(moved(x.shape, dim), moved(x.strides, dim), x.offset, x.dtype)


def moved(values: Shape, dim: int) -> Shape:
    """The values with that of one dim moved to the last place."""
    return (*values[:dim], *values[dim + 1 :], values[dim])


def back(x: StridedArray, dim: int) -> StridedArray:
    """The opposite of :func:`last`, contiguous."""

    def inserted(values: Shape) -> Shape:
        return (*values[:dim], values[-1], *values[dim:-1])

    return dense(x.restrided(inserted(x.shape), inserted(x.strides), x.offset))


def argsort(x: StridedArray, dim: int, descending: bool, stable: bool) -> StridedArray:
    """The order alone."""
    if not x.shape:
        return zeros(x, (), int64)
    rows = last(x, dim)
    found = keys(x.dtype, descending)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    return back(order(found, 8 * x.dtype.itemsize), dim)


def sort(x: StridedArray, dim: int, descending: bool, stable: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices), NaN last (first when descending)."""
    indices = argsort(x, dim, descending, stable)
    return taken(x, dim, indices), indices


def taken(x: StridedArray, dim: int, indices: StridedArray) -> StridedArray:
    """The values at places along ``dim`` that are within bounds."""
    if not x.shape:
        return clone(x)
    out = x.engine.empty(indices.shape, x.dtype)
    pick = Pick(indices, indices.strides, dim, x.shape[dim], x.strides[dim])
    return gathering.gather(out, x, without(x.strides, dim), [pick], ORDERED)


def ordered(x: StridedArray, dim: int) -> StridedArray:
    """The values alone, ascending."""
    return sort(x, dim, False, True)[0]


KERNELS: dict[str, Any] = {"sort": sort, "argsort": argsort, "ordered": ordered}
