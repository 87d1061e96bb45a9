"""Multi-head attention, bags of embeddings, and the cross entropy of a linear map, by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from candelabra_conformance.references.network_losses import cross_entropy
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _added(mask: Any, dtype: Any) -> Any:
    return np.where(mask, -np.inf, 0.0).astype(dtype) if mask.dtype == bool else mask


@reference("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Array, key: Array, value: Array, width: int, heads: int, weight: Any, bias: Any, bias_k: Any, bias_v: Any,
    zeros: bool, dropout: float, out_weight: Array, out_bias: Any, key_padding_mask: Any = None, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Any:  # fmt: skip
    """Compute one sequence and one head after the other."""
    if query.ndim == 2:
        out, found = multi_head_attention_forward(
            query[:, None], key[:, None], value[:, None], width, heads, weight, bias, bias_k, bias_v, zeros, dropout,
            out_weight, out_bias, None, attn_mask, average_attn_weights=average_attn_weights,
        )  # fmt: skip
        return out[:, 0], found[0]
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else np.split(weight, 3)
    biases = (0, 0, 0) if bias is None else np.split(bias, 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases, strict=True))
    own, size, batch = k.shape[0], width // heads, query.shape[1]
    if bias_k is not None:
        k, v = (np.concatenate([x, np.repeat(b, batch, 1)]) for x, b in ((k, bias_k), (v, bias_v)))
    if zeros:
        k, v = (np.concatenate([x, np.zeros_like(x[:1])]) for x in (k, v))
    results = np.zeros_like(q)
    found = np.zeros((batch, heads, query.shape[0], k.shape[0]), q.dtype)
    for n in range(batch):
        for h in range(heads):
            columns = slice(h * size, (h + 1) * size)
            scores = q[:, n, columns] @ k[:, n, columns].T / q.dtype.type(size) ** q.dtype.type(0.5)
            if attn_mask is not None:
                scores[:, :own] += _added(attn_mask if attn_mask.ndim == 2 else attn_mask[n * heads + h], q.dtype)
            if key_padding_mask is not None:
                scores[:, :own] += _added(key_padding_mask[n], q.dtype)
            found[n, h] = special.softmax(scores, -1) if scores.size else scores
            results[:, n, columns] = found[n, h] @ v[:, n, columns]
    out = results @ out_weight.T + (0 if out_bias is None else out_bias)
    return out, found.mean(1) if average_attn_weights else found


@reference("nn.functional.embedding_bag")
def embedding_bag(
    x: Array, weight: Array, offsets: Any = None, mode: str = "mean", padding_idx: int | None = None,
    include_last_offset: bool = False, per_sample_weights: Any = None, scale_grad_by_freq: bool = False,
) -> Array:  # fmt: skip
    """Reduce the rows of one bag after the other."""
    flat = x.reshape(-1)
    starts = np.arange(x.shape[0]) * x.shape[1] if x.ndim == 2 else offsets
    ends = [*starts[1:], len(flat)][: len(starts)]
    if include_last_offset:
        starts, ends = offsets[:-1], offsets[1:]
    factors = np.ones(flat.shape, weight.dtype) if per_sample_weights is None else per_sample_weights.reshape(-1)
    reduce: Any = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    out = np.zeros((len(starts), weight.shape[1]), weight.dtype)
    for bag, (start, end) in enumerate(zip(starts, ends, strict=True)):
        chosen = [i for i in range(start, end) if flat[i] != padding_idx]
        if chosen:
            rows = weight[flat[chosen]] * factors[chosen, None]
            out[bag] = reduce(rows, axis=0)
    return out


def _bounds(starts: Array, count: int) -> list[tuple[int, int]]:
    """Return the first position of each bag, and the one after its last."""
    return list(zip(starts, [*starts[1:], count][: len(starts)], strict=True))


@reference("bag_sums")
def bag_sums(
    weight: Array, indices: Array, starts: Array, scales: Any = None, mean: bool = False, by_frequency: bool = False
) -> Array:
    """Add the rows of one bag after the other."""
    rows = weight[indices] * (1 if scales is None else scales[:, None])
    sums = [rows[a:b].sum(0) / (max(b - a, 1) if mean else 1) for a, b in _bounds(starts, len(indices))]
    return np.array(sums, weight.dtype).reshape(len(starts), weight.shape[1])


@reference("bag_maxima")
def bag_maxima(weight: Array, indices: Array, starts: Array) -> tuple[Array, Array]:
    """Search each column of one bag after the other; NumPy's argmax finds the first NaN."""
    values = np.zeros((len(starts), weight.shape[1]), weight.dtype)
    found = np.full(values.shape, -1)
    for bag, (a, b) in enumerate(_bounds(starts, len(indices))):
        if a < b:
            found[bag] = indices[a:b][weight[indices[a:b]].argmax(0)]
            values[bag] = np.take_along_axis(weight, found[bag][None], 0)[0]
    return values, found


@reference("bag_sums_backward")
def bag_sums_backward(
    grad: Array, indices: Array, starts: Array, scales: Any, rows: int, mean: bool = False, by_frequency: bool = False
) -> Array:
    """Add the gradient of each bag to its rows, one after the other."""
    total = np.zeros((rows, grad.shape[1]), grad.dtype)
    for bag, (a, b) in enumerate(_bounds(starts, len(indices))):
        for p in range(a, b):
            factor = (1 if scales is None else scales[p]) / (b - a if mean else 1)
            total[indices[p]] += grad[bag] * factor / ((indices == indices[p]).sum() if by_frequency else 1)
    return total


@reference("bag_maxima_backward")
def bag_maxima_backward(grad: Array, at: Array, rows: int) -> Array:
    """Add each gradient to its row, in its column."""
    total = np.zeros((rows, grad.shape[1]), grad.dtype)
    for (bag, column), row in np.ndenumerate(at):
        if row >= 0:
            total[row, column] += grad[bag, column]
    return total


@reference("bag_dots")
def bag_dots(grad: Array, weight: Array, indices: Array, starts: Array, mean: bool = False) -> Array:
    """Multiply each row by the gradient of its bag."""
    dots = np.zeros(len(indices), grad.dtype)
    for bag, (a, b) in enumerate(_bounds(starts, len(indices))):
        dots[a:b] = weight[indices[a:b]] @ grad[bag] / (b - a if mean else 1)
    return dots


@reference("linear_class_losses")
def linear_class_losses(x: Array, weight: Array, bias: Any, target: Array, rows: int) -> Any:
    """Return the negative logarithm of the softmax of each row at its target."""
    logs = special.log_softmax(x @ weight.T + (0 if bias is None else bias), 1)
    return -logs[np.arange(len(target)), target]


@reference("nn.functional.linear_cross_entropy")
def linear_cross_entropy(
    x: Array, linear_weight: Array, y: Array, linear_bias: Any = None, weight: Any = None, reduction: str = "mean",
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return the cross entropy of the products of inputs and weights."""
    logits = np.tensordot(x, linear_weight, ((-1,), (-1,))) + (0 if linear_bias is None else linear_bias)
    return cross_entropy(logits, y, weight, None, ignore_index, None, reduction, label_smoothing)
