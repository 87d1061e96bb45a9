"""Reductions and normalisations of the elements that a mask selects: the plain ones with identities, or NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import dtype as DType

from candelabra_conformance.references.reductions import accumulated, axes, log_softmax, recast, softmax
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...] | int | None


def _where(input: Array, mask: Array | None, identity: float) -> Array:
    if mask is None:
        return input
    return np.asarray(np.where(np.broadcast_to(mask, input.shape), input, np.asarray(identity).astype(input.dtype)))


def _limits(input: Array) -> tuple[float, float]:
    """Return the lowest and the highest number of the dtype."""
    if input.dtype.kind == "f":
        return -np.inf, np.inf
    info = np.iinfo(input.dtype)
    return info.min, info.max


def _selected(input: Array, mask: Array | None) -> Array:
    return np.broadcast_to(np.True_ if mask is None else mask, input.shape)


@reference("masked_sum", extended=True)
def masked_sum(x: Array, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Return 0 if no element is selected."""
    values = accumulated(_where(x, mask, 0), dtype)
    return np.sum(values, axes(x, dim), keepdims=keepdim, dtype=values.dtype)


@reference("masked_prod", extended=True)
def masked_prod(x: Array, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Return 1 if no element is selected."""
    values = accumulated(_where(x, mask, 1), dtype)
    return np.prod(values, axes(x, dim), keepdims=keepdim, dtype=values.dtype)


@reference("masked_mean", extended=True)
def masked_mean(x: Array, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Divide the sum by the count; 0 / 0 if no element is selected."""
    count = np.sum(_selected(x, mask), axes(x, dim), keepdims=keepdim)
    return masked_sum(x, dim, keepdim, dtype, mask) / count.astype(np.longdouble)


def _extremum(function: Callable[..., Any], side: int) -> Callable[..., Any]:
    def extremum(x: Array, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
        found = function(_where(x, mask, _limits(x)[side]), axes(x, dim), keepdims=keepdim)
        return recast(np.asarray(found), dtype)

    return extremum


def _extreme_index(function: Callable[..., Any], side: int) -> Callable[..., Any]:
    def extreme_index(x: Array, dim: int | None, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
        if not x.ndim:
            return np.zeros(())
        return np.asarray(function(_where(x, mask, _limits(x)[side]), axis=dim, keepdims=keepdim))

    return extreme_index


references({"masked_amax": _extremum(np.max, 0), "masked_amin": _extremum(np.min, 1)})
references({"masked_argmax": _extreme_index(np.argmax, 0), "masked_argmin": _extreme_index(np.argmin, 1)})


@reference("masked_median")
def masked_median(x: Array, dim: int, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Return the lower median of the selected elements."""
    if not x.ndim:
        return x
    rows, selected = np.moveaxis(x, dim, -1), np.moveaxis(_selected(x, mask), dim, -1)
    out = np.zeros(rows.shape[:-1], x.dtype)
    for extreme_index in np.ndindex(*out.shape):
        ordered = np.sort(rows[extreme_index][selected[extreme_index]])
        out[extreme_index] = ordered[(len(ordered) - 1) // 2]
    return np.expand_dims(out, dim) if keepdim else out


def _variance(
    x: Array,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: DType | None,
    mask: Array | None,
) -> Any:
    taken = float(unbiased) if unbiased is not None else 1.0 if correction is None else correction
    x = recast(x, dtype)
    selected = _selected(x, mask)
    distance = np.where(selected, np.abs(x - masked_mean(x, dim, True, None, mask)), 0)
    count = np.sum(selected, axes(x, dim), keepdims=keepdim).astype(np.longdouble)
    return np.sum(distance**2, axes(x, dim), keepdims=keepdim) / np.maximum(count - taken, 0)


references({"masked_var": _variance, "masked_std": lambda *args: np.sqrt(_variance(*args))}, extended=True)


@reference("masked_logsumexp", extended=True)
def masked_logsumexp(x: Array, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Return minus infinity if no element is selected."""
    return np.log(np.sum(np.exp(_where(recast(x, dtype), mask, -np.inf)), axes(x, dim), keepdims=keepdim))


@reference("masked_logaddexp", extended=True)
def masked_logaddexp(
    x: Array, y: Array, dtype: DType | None, input_mask: Array | None, other_mask: Array | None
) -> Any:
    """Call NumPy's function."""
    return np.logaddexp(_where(x, input_mask, -np.inf), _where(y, other_mask, -np.inf))


@reference("masked_norm", extended=True)
def masked_norm(x: Array, ord: float, dim: Dims, keepdim: bool, dtype: DType | None, mask: Array | None) -> Any:
    """Return the root of the sum of powers."""
    powers = np.abs(_where(recast(x, dtype), mask, 0)) ** ord
    return np.sum(powers, axes(x, dim), keepdims=keepdim) ** (1 / np.longdouble(ord))


@reference("masked_normalize", extended=True)
def masked_normalize(x: Array, ord: float, dim: int, eps: float, dtype: DType | None, mask: Array | None) -> Any:
    """Divide by the norm, or by eps."""
    return _where(x, mask, 0) / np.maximum(masked_norm(x, ord, dim, True, dtype, mask), eps)


@reference("masked_softmax", extended=True)
def masked_softmax(x: Array, dim: int, dtype: DType | None, mask: Array | None) -> Any:
    """Replace the elements that are not selected by minus infinity."""
    return softmax(recast(_where(x, mask, -np.inf), dtype), dim)


@reference("masked_log_softmax", extended=True)
def masked_log_softmax(x: Array, dim: int, dtype: DType | None, mask: Array | None) -> Any:
    """Replace the elements that are not selected by minus infinity."""
    return log_softmax(recast(_where(x, mask, -np.inf), dtype), dim)


@reference("masked_softmin", extended=True)
def masked_softmin(x: Array, dim: int, dtype: DType | None, mask: Array | None) -> Any:
    """Return softmin as the softmax of the negative."""
    return masked_softmax(-x, dim, dtype, mask)


def _scan(function: Callable[..., Any], identity: int) -> Callable[..., Any]:
    def scan(x: Array, dim: int, dtype: DType | None, mask: Array | None) -> Any:
        values = recast(_where(x, mask, identity), dtype)
        return np.asarray(function(values, axis=dim, dtype=values.dtype) if x.ndim else values)

    return scan


references({"masked_cumsum": _scan(np.cumsum, 0), "masked_cumprod": _scan(np.cumprod, 1)}, extended=True)


@reference("masked._input_mask")
def _input_mask(input: Array, *args: Any, mask: Array) -> Array:
    """Broadcast the mask."""
    return np.broadcast_to(mask, input.shape)


@reference("masked._output_mask")
def _output_mask(op: Any, input: Array, *args: Any, mask: Array, keepdim: bool = False) -> Array:
    """Return whether any element is selected, along the dims that the operation reduces."""
    whole = np.broadcast_to(mask, input.shape)
    if op.__name__ == "masked_softmax":
        return whole
    dims = {"masked_norm": args[1:], "masked_median": (-1,)}.get(op.__name__, args)
    return np.asarray(whole.any(dims[0] if dims else None, keepdims=keepdim))
