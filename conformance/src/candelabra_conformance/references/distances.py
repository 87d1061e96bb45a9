"""Distances between points, and cosines of angles, by NumPy, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _differences(x1: Array, x2: Array) -> Any:
    return x1[..., :, None, :] - x2[..., None, :, :]


def _norm(d: Array, p: float) -> Any:
    size = np.abs(d)
    if not d.shape[-1]:
        return size.sum(-1)
    if p == 0:
        return (size != 0).sum(-1).astype(size.dtype)
    return size.max(-1) if np.isinf(p) else (size**p).sum(-1) ** (1 / size.dtype.type(p))


@reference("distances", extended=True)
def distances(x1: Array, x2: Array, p: float) -> Array:
    """Return the norms of all differences."""
    return np.asarray(_norm(_differences(x1, x2), p))


@reference("euclidean_distances", extended=True)
def euclidean(x1: Array, x2: Array) -> Array:
    """Return the roots of the sums of squared differences, without a matrix product, which loses digits."""
    return np.asarray(_norm(_differences(x1, x2), 2))


@reference("distances_backward", extended=True)
def distances_backward(grad: Array, x1: Array, x2: Array, out: Array, p: float) -> Array:
    """Multiply the derivative of each norm by the gradients, and sum over the second points."""
    d = _differences(x1, x2)
    return np.asarray((grad[..., None] * _slope(d, _norm(d, p)[..., None], p)).sum(-2))


def _slope(d: Array, length: Array, p: float) -> Any:
    """Return the derivative of the norm of a vector for each coordinate; 0 if the vector is 0."""
    size = np.abs(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        if p == 0:
            slope = np.zeros_like(d)
        elif np.isinf(p):
            slope = np.sign(d) * (size == length)
        else:
            slope = np.sign(d) * (size / length) ** (p - 1)
    return np.where(length == 0, 0, slope)


@reference("pdist", extended=True)
def pdist(input: Array, p: float) -> Array:
    """Return the distances of the pairs above the diagonal, row by row."""
    rows, columns = np.triu_indices(len(input), 1)
    return np.asarray(_norm(input[rows] - input[columns], p))


@reference("pdist_backward", extended=True)
def pdist_backward(grad: Array, input: Array, out: Array, p: float) -> Array:
    """Add the slope of every pair to the earlier point, and subtract it from the later one."""
    rows, columns = np.triu_indices(len(input), 1)
    d = input[rows] - input[columns]
    slopes = grad[:, None] * _slope(d, _norm(d, p)[..., None], p)
    total = np.zeros(input.shape, slopes.dtype)
    np.add.at(total, rows, slopes)
    np.subtract.at(total, columns, slopes)
    return total


@reference("cdist", extended=True)
def cdist(x1: Array, x2: Array, p: float, compute_mode: str) -> Array:
    """Return the norms of all differences, for every compute mode."""
    return distances(x1, x2, p)


@reference("pairwise_distance", extended=True)
def pairwise_distance(x1: Array, x2: Array, p: float, eps: float, keepdim: bool) -> Array:
    """Return the norms of the differences of rows."""
    found = np.asarray(_norm(x1 - x2 + eps, p))
    return found[..., None] if keepdim else found


@reference("cosine_similarity", extended=True)
def cosine_similarity(x1: Array, x2: Array, dim: int, eps: float) -> Array:
    """Return the dot product divided by both lengths, or by ``eps`` if a length is smaller."""
    a, b = np.broadcast_arrays(x1, x2)
    lengths = [np.maximum(np.sqrt((np.abs(x) ** 2).sum(dim)), eps) for x in (a, b)]
    return np.asarray((a * b).sum(dim) / (lengths[0] * lengths[1]))
