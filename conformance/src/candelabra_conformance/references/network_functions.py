"""Public functions of networks without a record, by their definitions, from the references of the records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references import networks
from candelabra_conformance.references.draws import drawn
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


# -- activations ------------------------------------------------------------------------------------------------------
@reference("celu", "celu_")
def celu(x: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """Compute the definition."""
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


@reference("selu", "selu_")
def selu(x: Array, inplace: bool = False) -> Array:
    """Compute the definition."""
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))


@reference("hardshrink")
def hardshrink(x: Array, lambd: float = 0.5) -> Array:
    """Compute the definition."""
    return np.where(np.abs(x) <= lambd, 0, x)


@reference("threshold", "threshold_")
def threshold(x: Array, limit: float, value: float, inplace: bool = False) -> Array:
    """Compute the definition."""
    return np.where(x <= limit, value, x)


@reference("nn.functional.relu_")
def relu(x: Array) -> Array:
    """Compute the definition."""
    return np.maximum(x, 0)


@reference("nn.functional.leaky_relu_")
def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Compute the definition."""
    return np.where(x > 0, x, x * slope)


@reference("nn.functional.hardtanh_")
def hardtanh(x: Array, low: float = -1.0, high: float = 1.0) -> Array:
    """Limit to the range."""
    return np.clip(x, low, high)


@reference("nn.functional.gumbel_softmax", as_given=True)
def gumbel_softmax(x: Array, tau: float = 1, hard: bool = False, dim: int = -1) -> Array:
    """Add the negative logarithms of exponential numbers."""
    noise = -np.log(drawn("exponential", x.shape, device_dtype(x.dtype), None).astype(x.dtype))
    soft = special.softmax((x + noise) / tau, dim).astype(x.dtype)
    return np.asarray(np.arange(x.shape[dim]) == soft.argmax(-1, keepdims=True), x.dtype) if hard else soft


@reference("prelu")
def prelu(x: Array, weight: Array) -> Array:
    """Use one slope per channel."""
    slope = weight.reshape(-1, *[1] * (x.ndim - 2)) if weight.size > 1 else weight.reshape(())
    return np.where(x > 0, x, x * slope)


@reference("rrelu", "rrelu_", as_given=True)
def rrelu(x: Array, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Array:
    """Use the mean of the bounds, or uniform slopes, with each step rounded to the dtype."""
    if not training:
        slope = np.full(x.shape, (lower + upper) / 2)
        return np.where(x > 0, x.astype(np.float64), x * slope).astype(x.dtype)
    noise = drawn("uniform", x.shape, device_dtype(x.dtype), None)
    scaled = (noise.astype(np.float64) * (upper - lower)).astype(x.dtype)
    slope = (scaled.astype(np.float64) + lower).astype(x.dtype)
    return np.where(x > 0, x.astype(np.float64), x.astype(np.float64) * slope).astype(x.dtype)


# -- convolutions -----------------------------------------------------------------------------------------------------
def sizes(value: Any, rank: int) -> tuple[int, ...]:
    """Return one number per spatial dim."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def batched(function: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """Return the function for inputs without a batch, too."""

    def either(rank: int, x: Array, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == rank + 2:
            return function(rank, x, *args, **kwargs)
        return function(rank, x[None], *args, **kwargs)[0]

    return lambda *args, **kwargs: either(rank, *args, **kwargs)


def conv(
    rank: int, x: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """Pad the input, then call the record's reference."""
    spread = sizes(dilation, rank)
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(spread, weight.shape[2:], strict=True)]
        around = [(t // 2, t - t // 2) for t in total]
    else:
        around = [(p, p) for p in sizes(padding, rank)]
    padded = np.pad(x, [(0, 0), (0, 0), *around])
    return networks.conv(padded, weight, bias, sizes(stride, rank), (0,) * rank, spread, groups)


def conv_transpose(
    rank: int, x: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """Return the adjoint of the convolution with this weight."""
    steps, around, extra, spread = (sizes(v, rank) for v in (stride, padding, output_padding, dilation))
    along = zip(x.shape[2:], weight.shape[2:], steps, around, spread, extra, strict=True)
    spatial = tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + e for n, k, s, p, d, e in along)
    channels = weight.shape[1] * groups
    made = networks.conv_input(x, weight, (x.shape[0], channels, *spatial), steps, around, spread, groups)
    return made if bias is None else made + bias.reshape(-1, *[1] * rank)


references({f"conv{rank}d": batched(conv, rank) for rank in (1, 2, 3)})
references({f"conv_transpose{rank}d": batched(conv_transpose, rank) for rank in (1, 2, 3)})


# -- normalisation ----------------------------------------------------------------------------------------------------
@reference("layer_norm")
def layer_norm(x: Array, shape: Any, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Any:
    """Call the record's reference over the last dims."""
    return networks.normalize(x, weight, bias, tuple(range(x.ndim - len(shape), x.ndim)), eps)[0]


@reference("rms_norm")
def rms_norm(x: Array, shape: Any, weight: Array | None = None, eps: float | None = None) -> Array:
    """Divide by the root of the mean square. The default eps, one step of the dtype, is far below the bound."""
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    out = x / np.sqrt(np.mean(x * x, dims, keepdims=True) + (2.0**-52 if eps is None else eps))
    return np.asarray(out if weight is None else out * weight)


@reference("group_norm")
def group_norm(
    x: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Call the record's reference over the channels of a group."""
    grouped = x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    out = networks.normalize(grouped, None, None, tuple(range(2, grouped.ndim)), eps)[0].reshape(x.shape)
    over = (-1, *[1] * (x.ndim - 2))
    out = out if weight is None else out * weight.reshape(over)
    return np.asarray(out if bias is None else out + bias.reshape(over))


# -- pooling ----------------------------------------------------------------------------------------------------------
def window_geometry(
    rank: int, x: Array, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Any, ...]:
    """Return window, stride, padding, dilation and the number of windows, per spatial dim."""
    kernel = sizes(window, rank)
    steps = kernel if stride is None else sizes(stride, rank)
    around, spread = sizes(padding, rank), sizes(dilation, rank)
    found = []
    for n, k, s, p, d in zip(x.shape[x.ndim - rank :], kernel, steps, around, spread, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = -(-room // s) + 1 if ceil else room // s + 1
        found.append(count - (ceil and (count - 1) * s >= n + p))  # the last window starts before the end padding
    return kernel, steps, around, spread, tuple(found)


def max_pool(rank: int) -> Callable[..., Any]:
    """Call the record's reference."""

    def pooled(
        x: Array, window: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        found = networks.max_pool(x, *window_geometry(rank, x, window, stride, padding, dilation, ceil))
        return found if return_indices else found[0]

    return pooled


def max_pool_with_indices(rank: int) -> Callable[..., Any]:
    """Return values and indices, whatever the flag says."""

    def pooled(
        x: Array, window: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return max_pool(rank)(x, window, stride, padding, dilation, ceil, True)

    return pooled


references({f"max_pool{rank}d": max_pool(rank) for rank in (1, 2, 3)})
references({"max_pool1d_with_indices": max_pool_with_indices(1)})
references({f"nn.functional.max_pool{rank}d_with_indices": max_pool_with_indices(rank) for rank in (2, 3)})


@reference("avg_pool1d")
def avg_pool1d(
    x: Array, window: int, stride: int | None = None, padding: int = 0, ceil: bool = False, counted: bool = True
) -> Array:
    """Average window by window; the padding counts, elements after its end do not."""
    step = window if stride is None else stride
    (count,) = window_geometry(1, x, window, stride, padding, 1, ceil)[4]
    means = []
    for first in range(-padding, count * step - padding, step):
        last = min(first + window, x.shape[-1] + padding)
        inside = x[..., max(first, 0) : min(last, x.shape[-1])]
        means.append(inside.sum(-1) / (last - first if counted else inside.shape[-1]))
    return np.stack(means, -1)


@reference("adaptive_avg_pool1d")
def adaptive_avg_pool1d(x: Array, size: Any) -> Array:
    """Average window by window, from the floor of its start to the ceiling of its end."""
    (count,) = sizes(size, 1)
    n = x.shape[-1]
    return np.stack([x[..., i * n // count : -(-(i + 1) * n // count)].mean(-1) for i in range(count)], -1)


# -- shuffling --------------------------------------------------------------------------------------------------------
@reference("pixel_shuffle")
def pixel_shuffle(x: Array, r: int) -> Array:
    """Compute the definition, element by element."""
    *lead, channels, height, width = x.shape
    out = np.empty((*lead, channels // r**2, height * r, width * r), x.dtype)
    for i, j in np.ndindex(r, r):
        out[..., i::r, j::r] = x[..., i * r + j :: r**2, :, :]
    return out


@reference("pixel_unshuffle")
def pixel_unshuffle(x: Array, r: int) -> Array:
    """Compute the definition, element by element."""
    *lead, channels, height, width = x.shape
    out = np.empty((*lead, channels * r**2, height // r, width // r), x.dtype)
    for i, j in np.ndindex(r, r):
        out[..., i * r + j :: r**2, :, :] = x[..., i::r, j::r]
    return out


@reference("channel_shuffle")
def channel_shuffle(x: Array, groups: int) -> Array:
    """Return the first channel of each group, then the second of each, and so on."""
    each = x.shape[1] // groups
    return x[:, [g * each + i for i in range(each) for g in range(groups)]]
