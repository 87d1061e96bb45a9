"""Products added to a tensor in proportion, in few calls, and the cross product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_cpu.halves import widened
from candelabra_cpu.quiet import quiet
from candelabra_cpu.reductions import matmul

LONGEST: Final = 1024
"""Terms that BLAS may add up one after the other, if they come from several matrices."""


def _added(rank: int, product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``beta * x + alpha * product(a, b)`` for arguments of these ranks; raises for others, and the rule says why."""

    def kernel(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        if a.ndim != rank or x.dtype != a.dtype or a.dtype != b.dtype:
            raise ValueError("the ranks or the dtypes do not fit")
        if x.dtype.kind in "iu":
            beta, alpha = int(beta), int(alpha)
        out = np.asarray(product(a, b))
        if alpha != 1:
            out *= alpha
        if beta == 0:
            if np.broadcast_shapes(x.shape, out.shape) != out.shape:
                raise ValueError("the input does not broadcast")
        else:
            out += x if beta == 1 else x * beta
        return out

    return quiet(widened(kernel))


def _mm(a: Any, b: Any) -> Any:
    if b.ndim != 2:
        raise ValueError("not a matrix")
    return matmul(a, b)


def _mv(a: Any, b: Any) -> Any:
    if b.ndim != 1:
        raise ValueError("not a vector")
    return matmul(a, b)


def _bmm(a: Any, b: Any) -> Any:
    if b.ndim != 3 or len(a) != len(b):
        raise ValueError("not as many matrices")
    return matmul(a, b)


def _summed(a: Any, b: Any) -> Any:
    if b.ndim != 3 or a.shape[::2] != b.shape[:2]:
        raise ValueError("not as many matrices")
    return _pairwise(a, b)


def _pairwise(a: Any, b: Any) -> Any:
    """The sum of the products of matrices: of few in one product, of more in halves.

    BLAS adds up one product after the other. With AVX-512, sums of 7,161 were 42 units in the last place off.
    """
    count, rows, inner = a.shape
    if count > 1 and count * inner > LONGEST:
        half = count // 2
        return _pairwise(a[:half], b[:half]) + _pairwise(a[half:], b[half:])
    return matmul(a.swapaxes(0, 1).reshape(rows, count * inner), b.reshape(count * inner, b.shape[2]))


def cross_product(x: Any, y: Any, dim: int) -> Any:
    """The cross product along an axis of size 3."""
    if x.ndim != y.ndim or x.shape[dim] != 3 or y.shape[dim] != 3:
        raise ValueError("the vectors have three elements")
    out = np.empty(x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape), x.dtype)
    a, b, c = x.swapaxes(0, dim), y.swapaxes(0, dim), out.swapaxes(0, dim)
    for k, i, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        part = c[k, ...]
        np.multiply(a[i], b[j], out=part)
        part -= a[j] * b[i]
    return out


KERNELS: dict[str, Any] = {
    "addmm": _added(2, _mm), "addmv": _added(2, _mv), "baddbmm": _added(3, _bmm), "addbmm": _added(3, _summed),
    "cross_product": quiet(widened(cross_product)),
}  # fmt: skip
