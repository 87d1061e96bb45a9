"""QR factorizations and Householder reflections as products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.elimination import Array, adjoint, stacked
from candelabra_conformance.references.registry import reference


def _reflector(x: Array) -> tuple[Any, Array]:
    """Return ``(tau, v)`` with ``(1 - conj(tau) v vᴴ) x`` real and zero below its first element, and ``v[0]`` 1."""
    norm, first = np.sqrt((np.abs(x) ** 2).sum()), x[0]
    if norm == np.abs(first) and first.imag == 0:
        return x.dtype.type(0), np.concatenate([np.ones(1, x.dtype), x[1:] * 0])
    beta = -np.copysign(norm, first.real)
    return (beta - first) / beta, np.concatenate([np.ones(1, x.dtype), x[1:] / (first - beta)])


def _packed(A: Array) -> tuple[Array, Array]:
    """Return R on and above the diagonal, the reflections' vectors below, and their factors."""
    a, k = A.copy(), min(A.shape)
    factors = np.zeros(k, A.dtype)
    for j in range(k):
        factors[j], v = _reflector(a[j:, j])
        a[j:, j:] = a[j:, j:] - np.conj(factors[j]) * np.outer(v, np.conj(v) @ a[j:, j:])
        a[j + 1 :, j] = v[1:]
    return a, factors


def _product(a: Array, tau: Array) -> Array:
    """Return the square product of the reflections, the first one leftmost."""
    m = len(a)
    whole = np.eye(m, dtype=a.dtype)
    for j, factor in enumerate(tau):
        v = np.concatenate([np.zeros(j, a.dtype), np.ones(1, a.dtype), a[j + 1 :, j]])
        whole = whole @ (np.eye(m) - factor * np.outer(v, np.conj(v)))
    return whole


@reference("linalg_geqrf", extended=True)
def geqrf(input: Array) -> tuple[Array, ...]:
    """Factorize reflection by reflection."""
    return stacked(_packed, input)


def _qr(A: Array, mode: str) -> tuple[Array, Array]:
    a, tau = _packed(A)
    Q, R = _product(a, tau), np.triu(a)
    k = len(Q) if mode == "complete" else min(A.shape)
    return Q[:, :k], R[:k]


@reference("linalg_qr", extended=True)
def qr(A: Array, mode: str) -> tuple[Array, ...]:
    """Multiply the reflections; mode "r" returns no Q."""
    Q, R = stacked(lambda a: _qr(a, mode), A)
    return (np.empty(0, A.dtype) if mode == "r" else Q), R


def _of_each(function: Any, a: Array, tau: Array, *rest: Array) -> Array:
    """Apply ``function`` to each matrix of one batch, whose factors have one dim less."""
    parts = stacked(lambda m, t, *others: (function(m, t[0], *others),), a, tau[..., None, :], *rest)
    return parts[0]


@reference("linalg_householder_product", extended=True)
def householder_product(input: Array, tau: Array) -> Array:
    """Return the first columns of the product."""
    return _of_each(lambda a, t: _product(a, t)[:, : a.shape[1]], input, tau)


@reference("linalg_ormqr", extended=True)
def ormqr(input: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """Multiply the matrix by the full product, or by its adjoint."""

    def applied(a: Array, t: Array, x: Array) -> Array:
        Q = _product(a, t)
        Q = adjoint(Q) if transpose else Q
        return Q @ x if left else x @ Q

    return _of_each(applied, input, tau, other)
