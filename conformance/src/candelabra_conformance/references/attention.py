"""Attention by its definition, for every query with every key."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _transposed(x: Array) -> Any:
    return np.swapaxes(x, -2, -1)


def _weights(query: Array, keys: Array, mask: Array | None, is_causal: bool, scale: float) -> Any:
    """Return the weight of each key: the exponentials of the scores over their sum, 0 if a mask excludes all keys."""
    scores = np.matmul(query, _transposed(keys)) * query.dtype.type(scale)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    if mask is not None:
        scores = scores + mask
    if not scores.shape[-1]:
        return scores
    top = scores.max(-1, keepdims=True)
    none = np.isneginf(top) if mask is not None else np.zeros_like(top, bool)
    e = np.exp(scores - np.where(none, 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(none, 1, total)


@reference("attention", extended=True)
def attention(query: Array, keys: Array, values: Array, mask: Array | None, is_causal: bool, scale: float) -> Any:
    """Return the sums of the values, weighted by their keys."""
    return np.matmul(_weights(query, keys, mask, is_causal, scale), values)


@reference("attention_backward", extended=True)
def attention_backward(
    grad: Array, query: Array, keys: Array, values: Array, mask: Array | None, is_causal: bool, scale: float
) -> Any:
    """Apply the chain rule to the weights, whose sum is 1 for all scores."""
    weights = _weights(query, keys, mask, is_causal, scale)
    through = np.matmul(grad, _transposed(values))
    slope = weights * (through - (weights * through).sum(-1, keepdims=True)) * query.dtype.type(scale)
    return np.matmul(slope, keys), np.matmul(_transposed(slope), query), np.matmul(_transposed(weights), grad)
