"""Selection by masks, nonzero elements, flips and triangles."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import bool_, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.conversions import converted
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.layouts import broadcast, broadcast_strides
from candelabra_clike.templates.copies import flip_triangle
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing import compaction


@lru_cache(None)
def nonzero_kernel(d: dtype) -> Elementwise:
    """Return the kernel that tests whether elements are not 0; NaN is not."""
    return Elementwise.of(f"not_zero_{d.name}", lambda a: converted(a, d, bool_), (d,), bool_)


def nonzero(x: StridedArray) -> StridedArray:
    """The indices of the nonzero elements, in C order."""
    mask = contiguous(x) if x.dtype is bool_ else nonzero_kernel(x.dtype)(x, out=x.engine.empty(x.shape, bool_))
    return compaction.select_indices(compaction.count_mask(mask), x.shape)


def masked_select(x: StridedArray, mask: StridedArray) -> StridedArray:
    """The elements where the mask is true, in C order."""
    shape = broadcast([x.shape, mask.shape])
    x, mask = (contiguous(a.restrided(shape, broadcast_strides(a, shape), a.offset)) for a in (x, mask))
    return compaction.select_values(compaction.count_mask(mask), x)


def flip(x: StridedArray, dims: tuple[int, ...] | None) -> StridedArray:
    """Reverse the order along ``dims`` (None: all)."""
    dims = tuple(range(len(x.shape))) if dims is None or not x.shape else dims
    return flip_triangle.flip(x.engine.empty(x.shape, x.dtype), x, dims)


def _triangle(side: str, inplace: bool) -> Any:
    def kernel(x: StridedArray, diagonal: int) -> StridedArray:
        if len(x.shape) < 2:
            raise ValueError(f"a triangle needs at least 2 dims, got shape {x.shape}")
        out = x if inplace else x.engine.empty(x.shape, x.dtype)
        return flip_triangle.triangle(out, x, diagonal, side)

    return kernel


KERNELS: dict[str, Any] = {
    "nonzero": nonzero, "masked_select": masked_select, "flip": flip,
    "tril": _triangle(flip_triangle.LOWER, False), "tril_": _triangle(flip_triangle.LOWER, True),
    "triu": _triangle(flip_triangle.UPPER, False), "triu_": _triangle(flip_triangle.UPPER, True),
}  # fmt: skip
