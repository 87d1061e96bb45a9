"""Products of vectors and matrices, their ``add*`` forms, contractions and vector norms, as sums by definition."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]

SUMS: Final = {
    "mm": "ik,kj->ij", "bmm": "bik,bkj->bij", "mv": "ik,k->i", "dot": "k,k->", "outer": "i,j->ij",
    "addmm": "ik,kj->ij", "addmv": "ik,k->i", "addr": "i,j->ij", "addbmm": "bik,bkj->ij", "baddbmm": "bik,bkj->bij",
}  # fmt: skip
"""Each product as a sum over repeated letters."""


def _summed(equation: str, a: Array, b: Array) -> Array:
    """Call NumPy's ``einsum``; return zeros for an empty operand: NumPy 2.4 writes past the end of an empty outer
    product."""
    if a.size and b.size:
        return np.asarray(np.einsum(equation, a, b))
    terms, out = equation.split("->")
    operands = zip(terms.split(","), (a, b), strict=True)
    sizes = {k: n for labels, x in operands for k, n in zip(labels, x.shape, strict=True)}
    return np.zeros([sizes[k] for k in out], np.result_type(a, b))


def _plain(equation: str) -> Any:
    return lambda a, b: _summed(equation, a, b)


def _added(equation: str) -> Any:
    def added(input: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Any:
        product = _summed(equation, a, b)
        if product.dtype.kind == "b":
            return (product & bool(alpha)) | (input & bool(beta))
        whole = product * _as(product, alpha)
        return np.asarray(whole if beta == 0 else whole + input * _as(product, beta))

    return added


def _as(like: Array, factor: Any) -> Any:
    """Return a factor in the dtype of the product, since NumPy would use Python's."""
    return like.dtype.type(factor)


references(
    {name: (_added if name.startswith(("add", "badd")) else _plain)(sums) for name, sums in SUMS.items()}, extended=True
)


@reference("vdot", extended=True)
def vdot(input: Array, other: Array) -> Array:
    """Conjugate the first vector."""
    return _summed("k,k->", np.conj(input), other)


@reference("inner", extended=True)
def inner(input: Array, other: Array) -> Array:
    """Sum along the last dims; with a number, multiply."""
    if not input.ndim or not other.ndim:
        return np.asarray(input * other)
    first = input.reshape(input.shape[:-1] + (1,) * (other.ndim - 1) + input.shape[-1:])
    return np.asarray((first * other).sum(-1, dtype=input.dtype))


@reference("kron", extended=True)
def kron(input: Array, other: Array) -> Array:
    """Multiply each element of the first by all of the second."""
    rank = max(input.ndim, other.ndim)
    a = input.reshape((1,) * (rank - input.ndim) + input.shape)
    b = other.reshape((1,) * (rank - other.ndim) + other.shape)
    out = np.zeros([m * n for m, n in zip(a.shape, b.shape, strict=True)], np.result_type(a, b))
    for place in np.ndindex(*a.shape):
        out[tuple(slice(i * n, (i + 1) * n) for i, n in zip(place, b.shape, strict=True))] = a[place] * b
    return out


@reference("tensordot", extended=True)
def tensordot(input: Array, other: Array, dims: Any) -> Array:
    """Sum over pairs of dims; a dim of size 1 is repeated."""
    if isinstance(dims, int):
        dims = list(range(input.ndim - dims, input.ndim)), list(range(dims))
    first, second = ([d % x.ndim for d in found] for x, found in zip((input, other), dims, strict=True))
    right = list(range(input.ndim, input.ndim + other.ndim))
    for i, j in zip(first, second, strict=True):
        right[j] = i
        size = max(input.shape[i], other.shape[j])
        if size > 1 and input.shape[i] != other.shape[j]:
            input, other = _repeated(input, i, size), _repeated(other, j, size)
    left = list(range(input.ndim))
    kept = [k for k in left if k not in first] + [k for k in right if k >= input.ndim]
    letters = ["".join(chr(ord("a") + k) for k in labels) for labels in (left, right, kept)]
    return _summed(f"{letters[0]},{letters[1]}->{letters[2]}", input, other)


def _repeated(x: Array, dim: int, size: int) -> Array:
    return np.broadcast_to(x, (*x.shape[:dim], size, *x.shape[dim + 1 :]))


# -- vectors ----------------------------------------------------------------------------------------------------------
@reference("linalg_cross", "cross_product", "cross", extended=True)
def cross(input: Array, other: Array, dim: int | None) -> Array:
    """Return the three determinants; by default along the first dim of size 3."""
    dim = input.shape.index(3) if dim is None else dim
    a, b = np.broadcast_arrays(input, other)
    a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return np.moveaxis(np.stack(parts), 0, dim)


@reference("linalg_vecdot", extended=True)
def vecdot(x: Array, y: Array, dim: int) -> Array:
    """Conjugate the first vectors."""
    product = (np.conj(x) if x.dtype.kind == "c" else x) * y
    return np.asarray(product.sum(dim, dtype=product.dtype))


@reference("linalg_vector_norm", extended=True)
def vector_norm(input: Array, order: float, dim: Any, keepdim: bool) -> Array:
    """Return ``sum(abs(x)**order)**(1/order)``; for order 0 the number of nonzero elements, for infinite orders the
    extremes."""
    size = np.abs(input)
    axis = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdim}
    if order == 0:
        return np.asarray((size != 0).sum(**options), size.dtype)
    if np.isinf(order):
        extreme = np.max if order > 0 else np.min
        return np.asarray(extreme(size, **options) if size.size else size.sum(**options))
    with np.errstate(divide="ignore"):
        return np.asarray((size**order).sum(**options) ** (size.dtype.type(1) / size.dtype.type(order)))
