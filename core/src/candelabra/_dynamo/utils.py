"""PyTorch's helpers of its tracer."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._records.lookup import public_function
from candelabra._tensor import Tensor
from candelabra.compiler import counters
from candelabra.utils._pytree import tree_flatten


def same(ref: Any, res: Any, fp64_ref: Any = None, cos_similarity: bool = False, tol: float = 1e-4, **_: Any) -> bool:
    """Return whether two results, with tensors in containers, are equal within a tolerance."""
    allclose: Any = public_function("allclose")
    (left, shape), (right, other) = tree_flatten(ref), tree_flatten(res)
    if shape != other:
        return False
    for a, b in zip(left, right, strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            if not allclose(a, b, atol=tol, rtol=tol, equal_nan=True):
                return False
        elif a != b:
            return False
    return True


__all__ = ["counters", "same"]
