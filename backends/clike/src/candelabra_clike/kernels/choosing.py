"""Elements that are chosen by a mask, or for not being 0; copies turned round, and triangles."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, bool_, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copying import dense
from candelabra_clike.layouts import aligned, broadcast
from candelabra_clike.templates.copies import turning
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing import compacting


@lru_cache(None)
def not_zero(d: dtype) -> Elementwise:
    """Whether an element is not 0; NaN is not."""
    expression = "({a}.x != 0 || {a}.y != 0)" if d.category == COMPLEX else "{a} != 0"
    return Elementwise(f"not_zero_{d.name}", expression, (d,), bool_)


def nonzero(x: StridedArray) -> StridedArray:
    """The indices of elements that are not 0, in C order."""
    mask = dense(x) if x.dtype is bool_ else not_zero(x.dtype)(x, out=x.engine.empty(x.shape, bool_))
    return compacting.places(compacting.counted(mask), x.shape)


def masked_select(x: StridedArray, mask: StridedArray) -> StridedArray:
    """The elements where the mask holds, in C order."""
    shape = broadcast([x.shape, mask.shape])
    x, mask = (dense(a.restrided(shape, aligned(a, shape), a.offset)) for a in (x, mask))
    return compacting.values(compacting.counted(mask), x)


def flip(x: StridedArray, dims: tuple[int, ...] | None) -> StridedArray:
    """The order along ``dims`` (None: all) reversed."""
    dims = tuple(range(len(x.shape))) if dims is None or not x.shape else dims
    return turning.flipped(x.engine.empty(x.shape, x.dtype), x, dims)


def _triangle(which: str, inplace: bool) -> Any:
    def kernel(x: StridedArray, diagonal: int) -> StridedArray:
        if len(x.shape) < 2:
            raise ValueError("a triangle takes two dims")
        out = x if inplace else x.engine.empty(x.shape, x.dtype)
        return turning.triangle(out, x, diagonal, which)

    return kernel


KERNELS: dict[str, Any] = {
    "nonzero": nonzero, "masked_select": masked_select, "flip": flip,
    "tril": _triangle(turning.LOWER, False), "tril_": _triangle(turning.LOWER, True),
    "triu": _triangle(turning.UPPER, False), "triu_": _triangle(turning.UPPER, True),
}  # fmt: skip
