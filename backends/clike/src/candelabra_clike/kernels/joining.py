"""Tensors put together, and parts put into others: copies to where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra.backend import indexed_geometry

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.copying import clone, copy_into
from candelabra_clike.kernels.scattering import zeros


def cat(tensors: Sequence[StridedArray], dim: int) -> StridedArray:
    """One after another along ``dim``."""
    first = tensors[0]
    front, back = first.shape[:dim], first.shape[dim + 1 :]
    total = 0
    for tensor in tensors:
        if not tensor.shape or tensor.shape[:dim] != front or tensor.shape[dim + 1 :] != back:
            raise ValueError("the tensors do not fit together")
        total += tensor.shape[dim]
    out = first.engine.empty((*front, total, *back), first.dtype)
    at, step = 0, out.strides[dim]
    for tensor in tensors:
        if tensor.size:
            copy_into(out.restrided(tensor.shape, out.strides, at), tensor)
        at += tensor.shape[dim] * step
    return out


def basic_index_adjoint(x: StridedArray, shape: Shape, index: tuple[Any, ...]) -> StridedArray:
    """Zeros with ``x`` at ``[index]``."""
    return _placed(zeros(x, shape, x.dtype), x, index)


def basic_index_scatter(x: StridedArray, src: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """A copy with ``src`` at ``[index]``."""
    return _placed(clone(x), src, index)


def _placed(out: StridedArray, part: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """``out``, after ``part`` (of a shape that broadcasts) was written to ``out[index]``."""
    copy_into(out.restrided(*indexed_geometry(out.shape, out.strides, out.offset, index)), part)
    return out


KERNELS: dict[str, Any] = {
    "cat": cat, "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
}  # fmt: skip
