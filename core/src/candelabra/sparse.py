"""Sparse tensors in coordinate format: products, sums and softmax over the stored elements.

:func:`candelabra.sparse_coo_tensor` and ``Tensor.to_sparse`` create sparse tensors, ``to_dense`` converts them back.
Matrix products (``@``, :func:`mm`), sums and products of elements, ``sum``, ``transpose``, ``index_select``, ``cat``,
and functions with f(0) = 0 take them. Other operators raise ``NotImplementedError``.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import Any, Final
from candelabra._sparse.construction import sparse_coo_tensor as sparse_coo_tensor
from candelabra._sparse.operators import addmm as _addmm
from candelabra._sparse.operators import group_softmax
from candelabra._sparse.products import multiplied
from candelabra._sparse.tensor import SparseTensor, like
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype, float32, float64, int32, int64

__all__ = [
    "DoubleTensor",
    "FloatTensor",
    "IntTensor",
    "LongTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sum",
]


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, of which one or both are sparse; of two sparse ones it is sparse."""
    if not isinstance(input, SparseTensor) and not isinstance(mat2, SparseTensor):
        return input.mm(mat2)
    return multiplied(input, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * mat + alpha * (mat1 @ mat2)`` for a sparse ``mat1``."""
    out: Tensor = _addmm(mat, mat1, mat2, beta, alpha)
    return out


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> SparseTensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` at the positions of the sparse matrix ``input``.

    Only the stored elements of the product are computed. Raises ``RuntimeError`` unless ``input`` is sparse.
    """
    own = _sparse("sampled_addmm", input).coalesce()
    rows, columns = own.indices().unbind(0)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return like(own, own.values() * beta + products * alpha)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: dtype | None = None) -> Tensor:
    """Return the sum over all dims as a dense tensor, or over the given ones; it is sparse if a sparse dim remains."""
    return _sparse("sum", input).sum(() if dim is None else dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> SparseTensor:
    """Return the softmax along a dim over the stored elements: those that are not stored count as -inf."""
    return group_softmax(_cast(_sparse("softmax", input), dtype), dim, log=False)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> SparseTensor:
    """Return the logarithm of :func:`softmax`."""
    return group_softmax(_cast(_sparse("log_softmax", input), dtype), dim, log=True)


def _sparse(name: str, input: Tensor) -> SparseTensor:
    if not isinstance(input, SparseTensor):
        raise RuntimeError(f"sparse.{name}(): the input must be a sparse tensor; use to_sparse()")
    return input


def _cast(input: SparseTensor, dtype: dtype | None) -> Any:
    return input if dtype is None else input.to(dtype)


class check_sparse_tensor_invariants:
    """A context manager for PyTorch's programs without effect: indices are always checked."""

    def __init__(self, enable: bool = True) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """Return True."""
        return True

    @staticmethod
    def enable() -> None:
        """Do nothing."""

    @staticmethod
    def disable() -> None:
        """Do nothing."""


class _Typed:
    """A constructor of sparse tensors of one dtype, the class ``sparse.FloatTensor`` of older programs."""

    def __init__(self, d: dtype) -> None:
        self.dtype = d

    def __call__(self, *args: Any) -> Tensor:
        """Return a sparse tensor of (indices, values, size), or one of a size without elements."""
        if len(args) < 2 or not isinstance(args[0], Tensor):
            return sparse_coo_tensor(args[0] if args and not isinstance(args[0], int) else args, dtype=self.dtype)
        return sparse_coo_tensor(*args, dtype=self.dtype)


FloatTensor: Final = _Typed(float32)
DoubleTensor: Final = _Typed(float64)
IntTensor: Final = _Typed(int32)
LongTensor: Final = _Typed(int64)


def __dir__() -> list[str]:
    return sorted(__all__)
