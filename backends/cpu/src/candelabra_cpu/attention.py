"""Attention, for some queries of all heads at a time: memory grows with the number of queries, not with its square.

The backward pass computes the weights again.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float64

WEIGHTS = 1 << 20
"""Weights of a block of queries: 8 MiB."""


def attention(query: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """``softmax(query @ keys.T * scale + mask) @ values``; 0 for queries whose keys are all masked."""
    lead = _lead(query, keys, values)
    out = np.zeros((*lead, query.shape[-2], values.shape[-1]), query.dtype)
    for rows, weights in _weights(query, keys, mask, is_causal, scale, lead):
        out[..., rows, :] = weights @ values
    return out


def attention_backward(
    grad: Any, query: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, keys and values, each with the leading dims of the result."""
    lead = _lead(query, keys, values)
    if grad.shape != (*lead, query.shape[-2], values.shape[-1]):
        raise ValueError("the gradient has another shape than the result")
    of_query, of_keys, of_values = (np.zeros((*lead, *x.shape[-2:]), query.dtype) for x in (query, keys, values))
    for rows, weights in _weights(query, keys, mask, is_causal, scale, lead):
        g = grad[..., rows, :]
        of_values += weights.swapaxes(-1, -2) @ g
        slope = g @ values.swapaxes(-1, -2)
        slope = scale * weights * (slope - (weights * slope).sum(-1, keepdims=True))
        of_query[..., rows, :] = slope @ keys
        of_keys += slope.swapaxes(-1, -2) @ query[..., rows, :]
    return of_query, of_keys, of_values


def _lead(query: Any, keys: Any, values: Any) -> tuple[int, ...]:
    """Return the leading dims of the result. Raises ``ValueError`` for shapes that do not match."""
    if query.shape[-1] != keys.shape[-1] or keys.shape[-2] != values.shape[-2]:
        raise ValueError("widths or lengths differ")
    return np.broadcast_shapes(query.shape[:-2], keys.shape[:-2], values.shape[:-2])


def _weights(
    query: Any, keys: Any, mask: Any, is_causal: bool, scale: float, lead: tuple[int, ...]
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of queries and the softmax of their scores."""
    length, count = query.shape[-2], keys.shape[-2]
    step = max(1, WEIGHTS // max(prod(lead) * count, 1))
    for start in range(0, length if count else 0, step):
        rows = slice(start, min(start + step, length))
        scores = scale * (query[..., rows, :] @ keys.swapaxes(-1, -2))
        if is_causal:  # a query uses the keys up to its own
            scores[..., ~np.tri(rows.stop - start, count, start, dtype=bool)] = -np.inf
        if mask is not None:
            scores = scores + np.broadcast_to(mask, (*lead, length, count))[..., rows, :]
        top = scores.max(-1, keepdims=True)
        scores -= np.where(top == -np.inf, 0, top)
        weights = np.exp(scores, scores)
        total = weights.sum(-1, keepdims=True)
        weights /= np.where(total == 0, 1, total)
        yield rows, weights


KERNELS: dict[str, Any] = {
    "attention": numpy_kernel(in_float64(attention)),
    "attention_backward": numpy_kernel(in_float64(attention_backward)),
}
