"""Concatenation, and assignment to basic indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra.backend import indexed_geometry

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.copies import clone, copy_into
from candelabra_clike.kernels.scattering import zeros


def cat(tensors: Sequence[StridedArray], dim: int) -> StridedArray:
    """Concatenate tensors along ``dim``."""
    first = tensors[0]
    front, back = first.shape[:dim], first.shape[dim + 1 :]
    total = 0
    for tensor in tensors:
        if not tensor.shape or tensor.shape[:dim] != front or tensor.shape[dim + 1 :] != back:
            raise ValueError(f"cat() expects equal sizes except along dim {dim}, got {first.shape} and {tensor.shape}")
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
    return _assign(zeros(x, shape, x.dtype), x, index)


def basic_index_scatter(x: StridedArray, src: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """A copy with ``src`` at ``[index]``."""
    return _assign(clone(x), src, index)


def _assign(out: StridedArray, part: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """Write ``part``, which broadcasts, to ``out[index]`` and return ``out``."""
    copy_into(out.restrided(*indexed_geometry(out.shape, out.strides, out.offset, index)), part)
    return out


KERNELS: dict[str, Any] = {
    "cat": cat, "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
}  # fmt: skip
