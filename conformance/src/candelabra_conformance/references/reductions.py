"""Reductions, scans, softmax and sorting by NumPy's functions, in 80 bits if values are rounded.

Sums of integers are those of int64. If a dtype is requested, the input is rounded to it and the sum is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.promoted import of_floats
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
Dims = int | tuple[int, ...] | list[int] | None


def recast(x: Array, dtype: DType | None) -> Array:
    """Return the values rounded to the dtype, in 80 bits if it is floating, so that nothing else is rounded."""
    if dtype is None:
        return x
    target = host_dtype(dtype)
    if x.dtype.kind == "c" and not dtype.is_complex:
        x = x.real
    rounded = x.astype(target)
    if dtype.is_floating_point:
        return rounded.astype(np.longdouble)
    return rounded.astype(np.clongdouble) if dtype.is_complex else rounded


def accumulated(x: Array, dtype: DType | None = None) -> Array:
    """Return the terms of a sum: integers and bools as int64, unless a dtype is requested."""
    if dtype is not None:
        return recast(x, dtype)
    return x.astype(np.int64) if x.dtype.kind in "biu" else x


def axes(x: Array, dim: Dims) -> tuple[int, ...]:
    """Return the axes: all for None and for no dims; a number has none."""
    if not x.ndim:
        return ()
    chosen = (dim,) if isinstance(dim, int) else tuple(dim or ())
    return tuple(d % x.ndim for d in chosen) or tuple(range(x.ndim))


def count(x: Array, dim: Dims) -> int:
    """Return the number of elements per result."""
    total = 1
    for axis in axes(x, dim):
        total *= x.shape[axis]
    return total


@reference("sum", extended=True)
def sum(x: Array, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """Sum integers in int64; for a requested dtype of bool, return whether any is True."""
    values = accumulated(x, dtype)
    return np.sum(values, axes(x, dim), keepdims=keepdim, dtype=values.dtype)


@reference("prod", extended=True)
def prod(x: Array, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """Multiply integers in int64; for a requested dtype of bool, return whether all are True."""
    values = accumulated(x, dtype)
    return np.prod(values, axes(x, dim), keepdims=keepdim, dtype=values.dtype)


@reference("mean", extended=True)
def mean(x: Array, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """Divide the sum by the count; 0 / 0 without elements."""
    total = np.asarray(np.sum(recast(x, dtype), axes(x, dim), keepdims=keepdim))
    return total / np.longdouble(count(x, dim))


@reference("var", extended=True)
def var(x: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Any:
    """Compute the definition: squared distances from the mean."""
    distance = np.abs(x - mean(x, dim, True))
    squares = np.asarray(np.sum(distance * distance, axes(x, dim), keepdims=keepdim))
    return squares / np.longdouble(max(count(x, dim) - correction, 0))


@reference("std", extended=True)
def std(x: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Any:
    """Return the root of the variance."""
    return np.sqrt(var(x, dim, correction, keepdim))


def _with_mean(deviation: Callable[..., Any]) -> Callable[..., Any]:
    def both(x: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> tuple[Any, Any]:
        return deviation(x, dim, correction, keepdim), mean(x, dim, keepdim)

    return both


MOMENTS = {"var": var, "std": std, "var_mean": _with_mean(var), "std_mean": _with_mean(std)}


def _unbiased(moment: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim, unbiased=True, keepdim=False: moment(x, dim, int(unbiased), keepdim)


def _of_all(moment: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, unbiased: moment(x, None, int(unbiased))


references({"var_mean": MOMENTS["var_mean"], "std_mean": MOMENTS["std_mean"]}, extended=True)
references({f"{name}_unbiased": _unbiased(moment) for name, moment in MOMENTS.items()}, extended=True)
references({f"{name}_of_all": _of_all(moment) for name, moment in MOMENTS.items()}, extended=True)


@reference("sum_to_size", extended=True)
def sum_to_size(x: Array, size: tuple[int, ...]) -> Any:
    """Sum over the missing dims, then over those of size 1."""
    lead = x.ndim - len(size)
    repeated = tuple(range(lead)) + tuple(lead + i for i, s in enumerate(size) if s == 1 != x.shape[lead + i])
    whole = accumulated(x) if repeated or not size else x
    return np.sum(whole, repeated, keepdims=True, dtype=whole.dtype).reshape(size)


def _truth(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: reduce(x != 0, dim, keepdims=keepdim)


references(
    {
        "amax": lambda x, dim=(), keepdim=False: np.max(x, axes(x, dim), keepdims=keepdim),
        "amin": lambda x, dim=(), keepdim=False: np.min(x, axes(x, dim), keepdims=keepdim),
        "all": _truth(np.all),
        "any": _truth(np.any),
    }
)


def _first(argument: Callable[..., Any], x: Array, dim: int | None, keepdim: bool) -> Array:
    if not x.ndim:
        return np.zeros((), np.int64)
    return np.asarray(argument(x, axis=dim, keepdims=keepdim))


def _with_values(argument: Callable[..., Any], x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if not x.ndim:
        return x, np.zeros((), np.int64)
    at = np.asarray(argument(x, axis=dim, keepdims=True))
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


references(
    {
        "argmax": lambda x, dim=None, keepdim=False: _first(np.argmax, x, dim, keepdim),
        "argmin": lambda x, dim=None, keepdim=False: _first(np.argmin, x, dim, keepdim),
        "max_dim": lambda x, dim, keepdim=False: _with_values(np.argmax, x, dim, keepdim),
        "min_dim": lambda x, dim, keepdim=False: _with_values(np.argmin, x, dim, keepdim),
    }
)


def _logsumexp(x: Array, dim: Dims, keepdim: bool = False) -> Any:
    # No shift is necessary: 80 bits represent exp of numbers up to 11,356, and no sample has larger ones.
    return np.log(np.sum(np.exp(x), axes(x, dim), keepdims=keepdim))


references({"logsumexp": of_floats(_logsumexp)}, extended=True)


def _shifted(x: Array, dim: int) -> Array:
    return x - np.max(x, axis=dim, keepdims=True) if x.size and x.ndim else x - x if x.size else x


def _totals(x: Array, dim: int) -> Any:
    return np.sum(x, axis=dim, keepdims=True) if x.ndim else x


@reference("softmax", extended=True)
def softmax(x: Array, dim: int) -> Any:
    """Divide the exponentials by their sum."""
    powers = np.exp(_shifted(x, dim))
    return powers / _totals(powers, dim)


@reference("log_softmax", extended=True)
def log_softmax(x: Array, dim: int) -> Any:
    """Subtract the logarithm of the sum."""
    shifted = _shifted(x, dim)
    return shifted - np.log(_totals(np.exp(shifted), dim))


@reference("softmax_in_dtype", extended=True)
def softmax_in_dtype(x: Array, dim: int, dtype: DType | None = None) -> Any:
    """Round the values to the dtype first."""
    return softmax(recast(x, dtype), dim)


@reference("log_softmax_in_dtype", extended=True)
def log_softmax_in_dtype(x: Array, dim: int, dtype: DType | None = None) -> Any:
    """Round the values to the dtype first."""
    return log_softmax(recast(x, dtype), dim)


@reference("softmax_backward", extended=True)
def softmax_backward(grad: Array, output: Array, dim: int) -> Any:
    """Multiply the Jacobian, diag(y) - y yᵀ, by the gradient."""
    return output * (grad - _totals(grad * output, dim))


@reference("log_softmax_backward", extended=True)
def log_softmax_backward(grad: Array, output: Array, dim: int) -> Any:
    """Multiply the transposed Jacobian, of 1 - 1 exp(y)ᵀ, by the gradient."""
    return grad - np.exp(output) * _totals(grad, dim)


@reference("log_softmax_along", extended=True)
def log_softmax_along(tangent: Array, output: Array, dim: int) -> Any:
    """Multiply the Jacobian, 1 - 1 exp(y)ᵀ, by the tangent."""
    return tangent - _totals(np.exp(output) * tangent, dim)


def _scan(function: Callable[..., Any], x: Array, dim: int, dtype: DType | None) -> Array:
    values = accumulated(x, dtype)
    return np.asarray(function(values, axis=dim, dtype=values.dtype) if x.ndim else values)


references(
    {
        "cumsum": lambda x, dim, dtype=None: _scan(np.cumsum, x, dim, dtype),
        "cumprod": lambda x, dim, dtype=None: _scan(np.cumprod, x, dim, dtype),
    },
    extended=True,
)


def _order(x: Array, dim: int, descending: bool) -> Array:
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # Flip, sort, and flip again: the largest elements are first and equal ones keep their order.
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.asarray(np.flip(x.shape[dim] - 1 - backwards, dim))


@reference("argsort")
def argsort(x: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the order of NumPy's stable sort, in which NaN is last."""
    return _order(x, dim, descending)


@reference("sort")
def sort(x: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the sorted values, and the order."""
    order = _order(x, dim, descending)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


@reference("msort")
def msort(x: Array) -> Any:
    """Call NumPy's sort, in which NaN is last."""
    return np.sort(x, 0) if x.ndim else x


@reference("matmul", extended=True)
def matmul(a: Array, b: Array) -> Any:
    """Sum products of broadcast rows and columns, by NumPy's loops if BLAS does not support the dtype."""
    return np.matmul(a, b)
