"""The bytes of an array seen as another dtype."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import dtype as DType

from candelabra_clike.array import StridedArray


def view_dtype(array: StridedArray, dtype: DType) -> StridedArray:
    """A view. Between widths the last dim grows or shrinks; ``ValueError`` where the bytes do not stand in a row, or do
    not divide.
    """
    old, new = array.dtype.itemsize, dtype.itemsize
    shape, steps, offset = array.shape, array.strides, array.offset
    if old == new:
        return array.restrided(shape, steps, offset, dtype)
    if not shape or steps[-1] != 1:
        raise ValueError(f"view_dtype: the bytes of {array!r} do not stand in a row")
    if old > new:
        ratio = old // new
        narrow = tuple([step * ratio for step in steps[:-1]])
        return array.restrided((*shape[:-1], shape[-1] * ratio), (*narrow, 1), offset * ratio, dtype)
    ratio = new // old
    if any(n % ratio for n in (shape[-1], offset, *steps[:-1])):
        raise ValueError(f"view_dtype: the bytes of {array!r} are no whole number of {dtype.name}")
    wide = tuple([step // ratio for step in steps[:-1]])
    return array.restrided((*shape[:-1], shape[-1] // ratio), (*wide, 1), offset // ratio, dtype)


KERNELS: dict[str, Any] = {"view_dtype": view_dtype}
