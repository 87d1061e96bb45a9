"""Normalisations by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _normalized(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """Return (normalised, mean, 1 / standard deviation); the statistics keep their dims."""
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _affine(x: Array, weight: Array | None, bias: Array | None, shape: tuple[int, ...]) -> Array:
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


@reference("native_layer_norm", extended=True)
def native_layer_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, ...]:
    """Normalize over the last dims."""
    axes = tuple(range(-len(normalized_shape), 0))
    out, mean, rstd = _normalized(input, axes, eps)
    return _affine(out, weight, bias, normalized_shape), mean, rstd


@reference("native_group_norm", extended=True)
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Array, ...]:
    """Normalize over the channels of a group and all later dims."""
    out, mean, rstd = _normalized(input.reshape(N, group, C // group * HxW), (2,), eps)
    shape = (C, *[1] * (input.ndim - 2))
    return _affine(out.reshape(input.shape), weight, bias, shape), mean[..., 0], rstd[..., 0]


@reference("native_batch_norm")
def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    """Normalize over all dims but the second."""
    shape = (1, -1, *[1] * (input.ndim - 2))
    if training:
        axes = tuple(d for d in range(input.ndim) if d != 1)
        out, mean, rstd = _normalized(input, axes, eps)
        return _affine(out, weight, bias, shape), mean.reshape(-1), rstd.reshape(-1)
    assert running_mean is not None
    assert running_var is not None
    out = (input - running_mean.reshape(shape)) / np.sqrt(running_var.reshape(shape) + eps)
    return _affine(out, weight, bias, shape), np.zeros(0, input.dtype), np.zeros(0, input.dtype)
