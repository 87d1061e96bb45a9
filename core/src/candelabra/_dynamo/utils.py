"""PyTorch's helpers of its tracer."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from candelabra._annotations import Any
from candelabra._records.lookup import public_function
from candelabra._tensor import Tensor
from candelabra.compiler import compile, compiled_autograd, counters
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


def maybe_enable_compiled_autograd(
    should_enable: bool, fullgraph: bool = True, dynamic: bool = True
) -> AbstractContextManager[None]:
    """Return a block that compiles the backward passes inside, or one that does nothing."""
    return compiled_autograd(compile(fullgraph=fullgraph)) if should_enable else nullcontext()


__all__ = ["counters", "maybe_enable_compiled_autograd", "same"]
