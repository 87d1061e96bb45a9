"""Attention by its definition: every query with every key."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _turned(x: Array) -> Any:
    return np.swapaxes(x, -2, -1)


def _weights(query: Array, keys: Array, mask: Array | None, is_causal: bool, scale: float) -> Any:
    """The share of each key: exponentials of the scores over their sum, 0 where a mask leaves no key."""
    scores = np.matmul(query, _turned(keys)) * query.dtype.type(scale)
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
    """Sums of values, each with the share of its key."""
    return np.matmul(_weights(query, keys, mask, is_causal, scale), values)


@reference("attention_backward", extended=True)
def attention_backward(
    grad: Array, query: Array, keys: Array, values: Array, mask: Array | None, is_causal: bool, scale: float
) -> Any:
    """The chain rule through the shares, whose sum is 1 whatever the scores."""
    weights = _weights(query, keys, mask, is_causal, scale)
    through = np.matmul(grad, _turned(values))
    slope = weights * (through - (weights * through).sum(-1, keepdims=True)) * query.dtype.type(scale)
    return np.matmul(slope, keys), np.matmul(_turned(slope), query), np.matmul(_turned(weights), grad)
