"""Copies and casts: what moves elements without computing with them."""

from __future__ import annotations

from typing import Any

from candelabra_clike.array import StridedArray
from candelabra_clike.layouts import overlapping
from candelabra_clike.templates.elementwise import identity


def copy_into(destination: StridedArray, source: StridedArray) -> StridedArray:
    """Write the elements of ``source`` (same dtype, a shape that broadcasts) into ``destination``; they may overlap."""
    if not destination.size:
        return destination
    if destination.contiguous and source.contiguous and source.shape == destination.shape:
        if overlapping(destination, source):
            if source.offset == destination.offset:
                return destination
            source = clone(source)
        size = destination.dtype.itemsize
        destination.engine.copy(
            destination.buffer, destination.offset * size, source.buffer, source.offset * size, source.size * size
        )
        return destination
    result: StridedArray = identity(destination.dtype)(source, out=destination)
    return result


def clone(array: StridedArray) -> StridedArray:
    """A contiguous copy."""
    copy = array.engine.empty(array.shape, array.dtype)
    return copy_into(copy, array)


def dense(array: StridedArray) -> StridedArray:
    """The array itself where it is contiguous, else a copy."""
    return array if array.contiguous else clone(array)


KERNELS: dict[str, Any] = {"clone": clone}
