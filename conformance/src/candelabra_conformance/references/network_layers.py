"""References of the functions of layers, by definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import float32

from candelabra_conformance.references import attention as attention_record
from candelabra_conformance.references import networks
from candelabra_conformance.references.draws import drawn
from candelabra_conformance.references.network_functions import sizes, window_geometry
from candelabra_conformance.references.random import random_uniform
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
SATURATION = 1.7580993408473766


# -- linear maps ------------------------------------------------------------------------------------------------------
@reference("linear")
def linear(x: Array, weight: Array, bias: Array | None = None) -> Any:
    """Compute a matrix product."""
    return x @ weight.T + (0 if bias is None else bias)


@reference("linear_weight_backward")
def linear_weight_backward(grad: Array, x: Array) -> Any:
    """Sum the outer products."""
    return grad.reshape(-1, grad.shape[-1]).T @ x.conj().reshape(-1, x.shape[-1])


@reference("bilinear")
def bilinear(x: Array, y: Array, weight: Array, bias: Array | None = None) -> Any:
    """Sum over both input features."""
    return np.einsum("...a,oab,...b->...o", x, weight, y) + (0 if bias is None else bias)


@reference("unit_vectors")
def unit_vectors(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """Divide by the norm."""
    size = np.abs(x)
    norm = size.max(dim, keepdims=True) if np.isinf(p) else (size**p).sum(dim, keepdims=True) ** (1 / p)
    return x / np.maximum(norm, eps)


@reference("pad")
def pad(x: Array, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Call NumPy's function after negative sizes have removed elements."""
    widths = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        dim = x.ndim - 1 - i
        kept = slice(max(0, -before), x.shape[dim] - max(0, -after))
        x = x[(slice(None),) * dim + (kept,)]
        widths[dim] = max(0, before), max(0, after)
    if mode == "constant":
        return np.pad(x, widths, constant_values=0 if value is None else value)
    modes: Any = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return np.pad(x, widths, mode=modes[mode])


def source_of(position: int, size: int, before: int, after: int, mode: str) -> int:
    """Return the element of a dim that a position of the padded dim is taken from."""
    at = position - before
    if mode == "replicate":
        return min(max(at, 0), size - 1)
    if mode == "reflect":
        return size - 1 - abs(size - 1 - abs(at))
    removed = max(-before, 0)
    kept = size - removed + min(after, 0)
    return (at - removed) % kept + removed


def sources_of(shape: Any, pad: Any, mode: str) -> list[list[int]]:
    """Return :func:`source_of` of every position of every dim."""
    found = [list(range(n)) for n in shape]
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        n = shape[-1 - i]
        found[-1 - i] = [source_of(p, n, before, after, mode) for p in range(n + before + after)]
    return found


@reference("pad_around")
def pad_around(x: Array, pad: Any, mode: str) -> Array:
    """Take each element from its source."""
    return x[np.ix_(*sources_of(x.shape, pad, mode))]


@reference("pad_around_adjoint")
def pad_around_adjoint(g: Array, shape: Any, pad: Any, mode: str) -> Array:
    """Add each element to its source."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, np.ix_(*sources_of(shape, pad, mode)), g)
    return out


# -- dropout ----------------------------------------------------------------------------------------------------------
@reference("nn.functional.masked_dropout")
def masked_dropout(x: Array, mask: Array, p: float) -> Any:
    """Compute the definition."""
    return x * mask * (0.0 if p == 1 else 1 / (1 - p))


def mask_of(shape: tuple[int, ...], p: float) -> Array:
    """Draw the elements to keep."""
    return drawn("uniform", shape, float32, None) >= p


@reference("dropout")
def dropped(x: Array, p: float, seed: int, offset: int) -> tuple[Any, Any]:
    """Compare the numbers of a draw in float32 with the probability."""
    kept = random_uniform(x.shape, seed, offset, float32, None) >= p
    factors = kept.astype(x.dtype) * (0.0 if p == 1 else 1 / (1 - p))
    return x * factors, factors


@reference("nn.functional.dropout", "plain_dropout", "dropout_")
def dropout(x: Array, p: float = 0.5, training: bool = True) -> Any:
    """Draw a mask of the input's shape."""
    return masked_dropout(x, mask_of(x.shape, p), p) if training else x


def channel_dropout(rank: int) -> Callable[..., Any]:
    """Return a dropout whose mask has one element per channel."""

    def dropped(x: Array, p: float = 0.5) -> Any:
        lead = x.ndim - rank
        return masked_dropout(x, mask_of((*x.shape[:lead], *[1] * rank), p), p)

    return dropped


references({f"nn.functional.dropout{rank}d": channel_dropout(rank) for rank in (1, 2, 3)})


def alpha(x: Array, mask: Array, p: float) -> Any:
    """Saturate dropped elements; scale and shift restore mean and variance."""
    if p == 1:
        return x * 0.0
    scale = ((SATURATION**2 * p + 1) * (1 - p)) ** -0.5
    return np.where(mask, x, -SATURATION) * scale + SATURATION * scale * p


@reference("nn.functional.alpha_dropout", "alpha_dropout", "alpha_dropout_")
def alpha_dropout(x: Array, p: float = 0.5, training: bool = False) -> Any:
    """Draw a mask of the input's shape."""
    return alpha(x, mask_of(x.shape, p), p) if training else x


@reference("feature_dropout", "feature_dropout_")
def feature_dropout(x: Array, p: float, training: bool) -> Any:
    """Draw a mask with one element per channel."""
    return masked_dropout(x, mask_of((*x.shape[:2], *[1] * (x.ndim - 2)), p), p) if training else x


@reference("nn.functional.feature_alpha_dropout", "feature_alpha_dropout", "feature_alpha_dropout_")
def feature_alpha_dropout(x: Array, p: float = 0.5, training: bool = False) -> Any:
    """Draw a mask with one element per channel."""
    return alpha(x, mask_of((*x.shape[:2], *[1] * (x.ndim - 2)), p), p) if training else x


# -- embedding and attention ------------------------------------------------------------------------------------------
@reference("batch_norm")
def batch_norm_in_order(
    x: Array, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, cudnn: bool
) -> Any:
    """Exchange the order of the arguments."""
    return batch_norm(x, mean, var, weight, bias, training, momentum, eps)


@reference("instance_norm")
def instance_norm_in_order(
    x: Array, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool, momentum: float, eps: float,
    cudnn: bool,
) -> Any:  # fmt: skip
    """Exchange the order of the arguments."""
    return instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps)


@reference("rows_of_table")
def rows_of_table(weight: Array, x: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Any:
    """Select rows by index."""
    return weight[x]


@reference("embedding_renorm_")
def embedding_renorm_(x: Array, indices: Array, max_norm: float, norm_type: float) -> Any:
    """Scale each selected row whose norm is above the limit once."""
    out = x.copy()
    for row in np.unique(indices):
        norm = np.linalg.norm(x[row], norm_type)
        out[row] = x[row] * (max_norm / (norm + 1e-7)) if norm > max_norm else x[row]
    return out


@reference("nn.functional.embedding")
def embedding(x: Array, weight: Array, padding_idx: int | None = None, scale_grad_by_freq: bool = False) -> Any:
    """Select rows by index."""
    return weight[x]


@reference("nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Call the record's reference, with repeated heads and a floating mask."""
    if enable_gqa:
        key, value = (np.repeat(t, query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    if mask is not None and mask.dtype == bool:
        mask = np.where(mask, 0.0, -np.inf).astype(query.dtype)
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    return attention_record.attention(query, key, value, mask, is_causal, float(factor))


# -- pooling ----------------------------------------------------------------------------------------------------------
def avg_pool(rank: int) -> Callable[..., Any]:
    """Divide the sums of windows by the number of elements that count."""

    def pooled(
        x: Array, window: Any, stride: Any = None, padding: Any = 0, ceil: bool = False, counted: bool = True,
        divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel, steps, around, spread, counts = window_geometry(rank, x, window, stride, padding, 1, ceil)
        total = networks.sum_pool(x, kernel, steps, around, spread, counts)
        if divisor_override is not None:
            return total / divisor_override
        spatial = x.shape[x.ndim - rank :]
        inside = [n + 2 * p if counted else n for n, p in zip(spatial, around, strict=True)]
        offsets = (0,) * rank if counted else around
        return total / networks.sum_pool(np.ones((1, *inside)), kernel, steps, offsets, spread, counts)

    return pooled


def adaptive_avg_pool(rank: int) -> Callable[..., Any]:
    """Average dim by dim, from the floor of each start to the ceiling of each end."""

    def pooled(x: Array, size: Any) -> Any:
        wanted = (size,) * rank if isinstance(size, int) else size
        for i, count in enumerate(wanted):
            dim = x.ndim - rank + i
            n = x.shape[dim]
            if count is not None:
                parts = [range(j * n // count, -(-(j + 1) * n // count)) for j in range(count)]
                x = np.stack([x.take(list(part), dim).mean(dim) for part in parts], dim)
        return x

    return pooled


def max_unpool(rank: int) -> Callable[..., Any]:
    """Write each value to its position."""

    def unpooled(
        x: Array, indices: Array, kernel: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        size, lead = sizes(kernel, rank), x.shape[: x.ndim - rank]
        steps = size if stride is None else sizes(stride, rank)
        each = zip(x.shape[len(lead) :], size, steps, sizes(padding, rank), strict=True)
        spatial = [(n - 1) * s + k - 2 * p for n, k, s, p in each] if output_size is None else output_size
        out = np.zeros((*lead, int(np.prod(spatial))), x.dtype)
        flat = (*lead, int(np.prod(x.shape[len(lead) :])))
        np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), -1)
        return out.reshape(*lead, *spatial)

    return unpooled


references({f"nn.functional.avg_pool{rank}d": avg_pool(rank) for rank in (2, 3)})
references({f"nn.functional.adaptive_avg_pool{rank}d": adaptive_avg_pool(rank) for rank in (2, 3)})
references({f"max_unpool{rank}d": max_unpool(rank) for rank in (1, 2, 3)})


# -- windows ----------------------------------------------------------------------------------------------------------
def windows(shape: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    """Return the arguments as pairs, and the number of windows along both dims."""
    pairs = [sizes(v, 2) for v in (kernel, dilation, padding, stride)]
    each = zip(shape, *pairs, strict=True)
    return (*pairs, tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in each))


@reference("nn.functional.unfold")
def unfold(x: Array, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Copy window by window."""
    size, spread, around, steps, counts = windows(x.shape[-2:], kernel, dilation, padding, stride)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in around])
    columns = []
    for i, j in np.ndindex(*counts):
        rows = slice(i * steps[0], i * steps[0] + spread[0] * (size[0] - 1) + 1, spread[0])
        cols = slice(j * steps[1], j * steps[1] + spread[1] * (size[1] - 1) + 1, spread[1])
        columns.append(padded[..., rows, cols].reshape(*x.shape[:-3], -1))
    return np.stack(columns, -1)


@reference("nn.functional.fold")
def fold(x: Array, output: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Add window by window."""
    shape = sizes(output, 2)
    size, spread, around, steps, counts = windows(shape, kernel, dilation, padding, stride)
    channels = x.shape[-2] // (size[0] * size[1])
    out = np.zeros((*x.shape[:-2], channels, *[n + 2 * p for n, p in zip(shape, around, strict=True)]), x.dtype)
    for number, (i, j) in enumerate(np.ndindex(*counts)):
        rows = slice(i * steps[0], i * steps[0] + spread[0] * (size[0] - 1) + 1, spread[0])
        cols = slice(j * steps[1], j * steps[1] + spread[1] * (size[1] - 1) + 1, spread[1])
        out[..., rows, cols] += x[..., number].reshape(*x.shape[:-2], channels, *size)
    return out[..., around[0] : around[0] + shape[0], around[1] : around[1] + shape[1]]


def lp_pool(rank: int) -> Callable[..., Any]:
    """Return the root of the sum of powers."""

    def pooled(x: Array, p: float, window: Any, stride: Any = None) -> Any:
        along = window_geometry(rank, x, window, stride, 0, 1, False)
        if np.isinf(p):
            return networks.max_pool(np.abs(x), *along)[0]
        return networks.sum_pool(x**p, *along) ** (1 / p)

    return pooled


references({f"nn.functional.lp_pool{rank}d": lp_pool(rank) for rank in (1, 2, 3)})


@reference("nn.functional.local_response_norm")
def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Normalize channel by channel."""
    squares = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    means = np.stack([squares[:, i : i + size].sum(1) / size for i in range(x.shape[1])], 1)
    return x / (k + alpha * means) ** beta


# -- normalization ----------------------------------------------------------------------------------------------------
def per_channel(value: Array | None, x: Array, default: float) -> Any:
    """Reshape a vector of the channels for broadcasting."""
    return default if value is None else value.reshape(-1, *[1] * (x.ndim - 2))


def scaled(values: Any, x: Array, weight: Array | None, bias: Array | None) -> Any:
    """Apply weight and bias of each channel."""
    return values * per_channel(weight, x, 1.0) + per_channel(bias, x, 0.0)


@reference("nn.functional.batch_norm")
def batch_norm(
    x: Array, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalize by the statistics of the batch, or by given ones."""
    if training:
        return scaled(networks.normalize(x, None, None, (0, *range(2, x.ndim)), eps)[0], x, weight, bias)
    return scaled((x - per_channel(mean, x, 0.0)) / np.sqrt(per_channel(var, x, 1.0) + eps), x, weight, bias)


@reference("nn.functional.instance_norm")
def instance_norm(
    x: Array, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Normalize by the statistics of each channel of each sample, or by given ones."""
    if not use_input_stats:
        return batch_norm(x, mean, var, weight, bias, False, momentum, eps)
    return scaled(networks.normalize(x, None, None, tuple(range(2, x.ndim)), eps)[0], x, weight, bias)
