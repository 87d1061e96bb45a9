"""Views of the bytes of an array as another dtype."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import dtype as DType

from candelabra_clike.array import StridedArray


def view_dtype(array: StridedArray, dtype: DType) -> StridedArray:
    """Return a view as another dtype. The last dim grows or shrinks with the item size.

    Raises ``ValueError`` if the last dim is not contiguous or its size is not divisible.
    """
    old, new = array.dtype.itemsize, dtype.itemsize
    shape, steps, offset = array.shape, array.strides, array.offset
    if old == new:
        return array.restrided(shape, steps, offset, dtype)
    if not shape or steps[-1] != 1:
        raise ValueError(f"view_dtype: expected a last dim with stride 1, got {array!r} with strides {steps}")
    if old > new:
        ratio = old // new
        narrow = tuple([step * ratio for step in steps[:-1]])
        return array.restrided((*shape[:-1], shape[-1] * ratio), (*narrow, 1), offset * ratio, dtype)
    ratio = new // old
    if any(n % ratio for n in (shape[-1], offset, *steps[:-1])):
        raise ValueError(
            f"view_dtype: the size, offset or strides of {array!r} are not divisible by {ratio} for {dtype.name}"
        )
    wide = tuple([step // ratio for step in steps[:-1]])
    return array.restrided((*shape[:-1], shape[-1] // ratio), (*wide, 1), offset // ratio, dtype)


KERNELS: dict[str, Any] = {"view_dtype": view_dtype}
