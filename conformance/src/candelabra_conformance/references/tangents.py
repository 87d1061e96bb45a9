"""Derivatives along a tangent, by the definitions: of reductions, of scattered extremes, of mantissas."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.reductions import Array, Dims, axes, count, mean, var
from candelabra_conformance.references.registry import reference
from candelabra_conformance.references.scatter_extremes import scatter_extreme


def _summed(x: Array, dim: Dims, keepdim: bool) -> Array:
    return np.asarray(np.sum(x, axes(x, dim), keepdims=keepdim))


@reference("extremum_along")
def extremum_along(t: Array, x: Array, dim: Dims = (), largest: bool = True, keepdim: bool = False) -> Any:
    """Average the tangents of all elements that attain the extremum."""
    extremum = np.max if largest else np.min
    ties = x == extremum(x, axes(x, dim), keepdims=True)
    with np.errstate(invalid="ignore"):  # NaN attains nothing: 0 / 0
        slope = _summed(np.where(ties, t, 0), dim, keepdim) / _summed(ties, dim, keepdim)
    return extremum(x, axes(x, dim), keepdims=keepdim), slope


@reference("scatter_extreme_along")
def scatter_extreme_along(
    t_input: Array,
    t_src: Array | None,
    input: Array,
    dim: int,
    index: Array,
    src: Array,
    reduce: str,
    include_self: bool,
) -> Any:
    """Average the tangents of all elements that equal the extreme."""
    out = np.atleast_1d(scatter_extreme(input, dim, index, src, reduce, include_self))
    own = np.atleast_1d(input) == out
    indices, source = np.atleast_1d(index), np.atleast_1d(src)
    tangents = np.zeros_like(source) if t_src is None else np.atleast_1d(t_src)
    places = [(i, (*i[:dim], indices[i], *i[dim:][1:])) for i in np.ndindex(*indices.shape)]
    if not include_self:
        for _, at in places:
            own[at] = False
    total, count = np.where(own, np.atleast_1d(t_input), 0), own.astype(np.int64)
    for i, at in places:
        if source[i] == out[at]:
            total[at] += tangents[i]
            count[at] += 1
    return out.reshape(input.shape), (total / np.maximum(count, 1)).reshape(input.shape)


@reference("frexp_along", extended=True)
def frexp_along(t: Array, x: Array) -> Any:
    """Scale the tangent by the power of two by which the mantissa is scaled."""
    return np.ldexp(t, -np.frexp(x)[1])


@reference("var_mean_along", extended=True)
def var_mean_along(t: Array, x: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Any:
    """Differentiate the definition; the sum of all distances from the mean is 0."""
    products = _summed(((x - mean(x, dim, True)).conj() * (t - mean(t, dim, True))).real, dim, keepdim)
    slope = 2 * products / np.longdouble(max(count(x, dim) - correction, 0))
    return var(x, dim, correction, keepdim), mean(x, dim, keepdim), slope, mean(t, dim, keepdim)


@reference("norm_along", extended=True)
def norm_along(t: Array, x: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Return the projection of the tangent on the direction of the vector."""
    norm = np.sqrt(_summed((x.conj() * x).real, dim, keepdim))
    return norm, _summed((x.conj() * t).real, dim, keepdim) / np.where(norm == 0, 1, norm) * (norm != 0)


@reference("logsumexp_along", extended=True)
def logsumexp_along(t: Array, x: Array, dim: Dims, keepdim: bool = False) -> Any:
    """Average the tangents, with the exponentials as weights."""
    top = np.max(x.real, axes(x, dim), keepdims=True)
    weights = np.exp(x - top)
    total = _summed(weights, dim, keepdim)
    return np.log(total) + top.reshape(total.shape), _summed(weights * t, dim, keepdim) / total


@reference("prod_along", extended=True)
def prod_along(t: Array, x: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Follow the product rule along each row."""
    dims = axes(x, dim)
    order = (*[d for d in range(x.ndim) if d not in dims], *dims)
    lead = [x.shape[d] for d in order[: x.ndim - len(dims)]]
    length = int(np.prod([x.shape[d] for d in dims]))
    rows, tangents = (each.transpose(order).reshape(*lead, length) for each in (x, t))
    product = np.prod(x, dims, keepdims=keepdim)
    slope = _slope(rows, tangents)[..., -1] if length else np.zeros(lead, x.dtype)
    return product, slope.reshape(product.shape)


@reference("cumprod_along", extended=True)
def cumprod_along(t: Array, x: Array, dim: int) -> Any:
    """Follow the product rule along each row."""
    if not x.ndim:
        return x, t
    rows, tangents = np.moveaxis(x, dim, -1), np.moveaxis(t, dim, -1)
    return np.cumprod(x, dim), np.moveaxis(_slope(rows, tangents), -1, dim)


def _slope(x: Array, t: Array) -> Array:
    """Return the derivatives of the cumulative products along the last dim, by the product rule."""
    product, slope, slopes = np.ones_like(x[..., :1]), np.zeros_like(x[..., :1]), []
    for i in range(x.shape[-1]):
        factor = x[..., i : i + 1]
        product, slope = product * factor, slope * factor + product * t[..., i : i + 1]
        slopes.append(slope)
    return np.concatenate(slopes, -1) if slopes else x
