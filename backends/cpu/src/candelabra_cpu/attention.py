"""Attention, for some heads or some queries of one head at a time, so that their weights stay in the cache.

The backward pass computes the weights again. Blocks of causal attention end at the key of their last query.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import in_float32

WEIGHTS = 1 << 17
"""Weights of a block: 512 KiB in float32."""


class Heads(NamedTuple):
    """Views with equal leading dims, whose last two dims belong to one head."""

    lead: tuple[int, ...]
    query: Any
    keys: Any
    values: Any
    mask: Any
    is_causal: bool
    scale: float


class Block(NamedTuple):
    """Queries of some heads, scaled, with the keys and values that they use, and their weights."""

    heads: slice
    rows: slice
    query: Any
    keys: Any
    values: Any
    weights: Any


def attention(query: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """``softmax(query @ keys.T * scale + mask) @ values``; 0 for queries whose keys are all masked."""
    heads = _broadcast(query, keys, values, mask, is_causal, scale)
    out = np.zeros((prod(heads.lead), query.shape[-2], values.shape[-1]), query.dtype)

    def part(first: int, last: int) -> None:
        for block in _blocks(heads, first, last):
            np.matmul(block.weights, block.values, out=out[block.heads, block.rows])

    if out.size and keys.shape[-2]:
        parallel_for(len(out), out.shape[0] * out.shape[1] * keys.shape[-2], part)
    return out.reshape((*heads.lead, *out.shape[1:]))


def attention_backward(
    grad: Any, query: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: float
) -> tuple[Any, Any, Any]:
    """Return the gradients of query, keys and values, each with the leading dims of the result."""
    heads = _broadcast(query, keys, values, mask, is_causal, scale)
    if grad.shape != (*heads.lead, query.shape[-2], values.shape[-1]):
        raise ValueError("the gradient has another shape than the result")
    grads = grad.reshape(prod(heads.lead), *grad.shape[-2:])
    of_query, of_keys, of_values = (np.zeros((len(grads), *x.shape[-2:]), query.dtype) for x in (query, keys, values))

    def part(first: int, last: int) -> None:
        for n, rows, q, k, v, weights in _blocks(heads, first, last):
            g, used = grads[n, rows], slice(k.shape[1])
            of_values[n, used] += np.matmul(weights.transpose(0, 2, 1), g)
            slope = np.matmul(g, v.transpose(0, 2, 1))
            slope -= np.einsum("nij,nij->ni", weights, slope)[..., None]
            slope *= weights
            product = np.matmul(slope, k, out=of_query[n, rows])
            np.multiply(product, scale, out=product, casting="same_kind")
            of_keys[n, used] += np.matmul(slope.transpose(0, 2, 1), q)

    if grad.size and keys.shape[-2]:
        parallel_for(len(grads), 3 * prod(grads.shape[:2]) * keys.shape[-2], part)
    found = [x.reshape((*heads.lead, *x.shape[1:])) for x in (of_query, of_keys, of_values)]
    return found[0], found[1], found[2]


def _broadcast(query: Any, keys: Any, values: Any, mask: Any, is_causal: bool, scale: float) -> Heads:
    """Return views with equal leading dims. Raises ``ValueError`` for shapes that do not match."""
    if query.shape[-1] != keys.shape[-1] or keys.shape[-2] != values.shape[-2]:
        raise ValueError("widths or lengths differ")
    lead = np.broadcast_shapes(query.shape[:-2], keys.shape[:-2], values.shape[:-2])
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (query, keys, values))
    scores = (*lead, query.shape[-2], keys.shape[-2])
    return Heads(lead, q, k, v, None if mask is None else np.broadcast_to(mask, scores), is_causal, scale)


def _blocks(heads: Heads, first: int, last: int) -> Iterator[Block]:
    """Yield blocks of the heads from ``first`` to ``last``: several heads, or one head and some of its queries."""
    length, count = heads.query.shape[-2], heads.keys.shape[-2]
    together = max(1, WEIGHTS // (length * count))
    step = min(length, max(1, WEIGHTS // count))
    for start in range(first, last, together):
        selected = slice(start, min(start + together, last))
        index = np.unravel_index(np.arange(selected.start, selected.stop), heads.lead) if heads.lead else (None,)
        query, keys, values = (
            heads.query[index] * heads.query.dtype.type(heads.scale),
            heads.keys[index],
            heads.values[index],
        )
        for row in range(0, length, step):
            rows = slice(row, min(row + step, length))
            used = slice(min(rows.stop, count) if heads.is_causal else count)
            q, k = query[:, rows], keys[:, used]
            scores = np.matmul(q, k.transpose(0, 2, 1))
            if heads.is_causal:
                # Query row + i uses the keys up to its own.
                later = np.tri(q.shape[1], k.shape[1], row, dtype=bool)
                np.copyto(scores, -np.inf, where=np.logical_not(later, out=later))
            if heads.mask is not None:
                scores += heads.mask[(*index, rows, used)]
            yield Block(selected, rows, q, k, values[:, used], _softmax(scores, heads.mask is not None))


def _softmax(scores: Any, masked: bool) -> Any:
    """Replace scores by their softmax. ``masked``: rows of -inf become 0."""
    top = scores.max(-1, keepdims=True)
    if masked:
        top[top == -np.inf] = 0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    if masked:
        total[total == 0] = 1
    scores *= 1 / total
    return scores


KERNELS: dict[str, Any] = {
    name: numpy_kernel(in_float32(kernel))
    for name, kernel in (("attention", attention), ("attention_backward", attention_backward))
}
