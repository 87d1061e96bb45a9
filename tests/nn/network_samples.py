"""Helpers of the tests of networks: conversion of arrays, naive loops, finite differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from candelabra import Tensor
from candelabra.autograd import grad
from candelabra.dtypes import BY_NAME
from candelabra.library import open_device, wrap


def tensor(array: Any, requires_grad: bool = False, device: str = "cpu") -> Tensor:
    """Return a tensor with an array's values."""
    values = np.asarray(array)
    instance = open_device(device)
    d = BY_NAME[values.dtype.name]
    data = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    made = wrap(instance.backend.from_host(instance.index, data, values.shape, d), instance.keys_for(d))
    return made.requires_grad_() if requires_grad else made


def array(x: Tensor) -> np.ndarray:
    """Return a tensor's values as an array."""
    payload = x._fresh()._payload
    data = x._instance.backend.to_host(payload)
    dtype = np.dtype(x.dtype.name) if x.dtype.name != "bfloat16" else __import__("ml_dtypes").bfloat16
    return np.frombuffer(data, dtype).reshape(payload.shape)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    """Return normal numbers that depend on the seed and the shape only."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def check_gradients(f: Callable[..., Tensor], *arrays: np.ndarray, second: bool = True) -> None:
    """Compare first (and second) derivatives of ``f`` with central differences along random directions, in float64."""
    cotangent = normal(*f(*[tensor(a) for a in arrays]).shape, seed=91)
    directions = [normal(*a.shape, seed=92 + i) for i, a in enumerate(arrays)]

    def first(values: list[np.ndarray]) -> list[np.ndarray]:
        inputs = [tensor(v, True) for v in values]
        return [array(g) for g in grad(f(*inputs), inputs, tensor(cotangent))]

    def value(values: list[np.ndarray]) -> float:
        return float((array(f(*[tensor(v) for v in values])) * cotangent).sum())

    step = 1e-6
    above = [a + step * d for a, d in zip(arrays, directions, strict=True)]
    below = [a - step * d for a, d in zip(arrays, directions, strict=True)]
    slope = sum((g * d).sum() for g, d in zip(first(list(arrays)), directions, strict=True))
    np.testing.assert_allclose(slope, (value(above) - value(below)) / (2 * step), rtol=1e-5, atol=1e-6)
    if not second:
        return
    others = [normal(*a.shape, seed=192 + i) for i, a in enumerate(arrays)]

    def along(values: list[np.ndarray]) -> float:
        return float(sum((g * d).sum() for g, d in zip(first(values), others, strict=True)))

    inputs = [tensor(a, True) for a in arrays]
    given = tensor(cotangent, True)
    gradients = grad(f(*inputs), inputs, given, create_graph=True)
    through = [(g, tensor(d)) for g, d in zip(gradients, others, strict=True) if g.requires_grad]
    total = sum(((g * d).sum() for g, d in through[1:]), (through[0][0] * through[0][1]).sum())
    twice = grad(total, [*inputs, given], allow_unused=True)
    slope = sum((array(g) * d).sum() for g, d in zip(twice[:-1], directions, strict=True) if g is not None)
    np.testing.assert_allclose(slope, (along(above) - along(below)) / (2 * step), rtol=1e-4, atol=1e-5)
    # The gradient is linear in the cotangent, so its derivative along the cotangent is the gradient itself.
    np.testing.assert_allclose((array(twice[-1]) * cotangent).sum(), along(list(arrays)), rtol=1e-8, atol=1e-8)


def correlate(x: np.ndarray, w: np.ndarray, stride: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """Return a convolution by its definition, one position and one channel at a time."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    places = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *places), x.dtype)
    share, each = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = o // each * share
        for place in product(*map(range, places)):
            cut = tuple(
                slice(i * s, i * s + d * (k - 1) + 1, d)
                for i, s, d, k in zip(place, stride, dilation, w.shape[2:], strict=True)
            )
            seen = x[(slice(None), slice(first, first + share), *cut)]
            out[(slice(None), o, *place)] = (seen * w[o]).sum(tuple(range(1, rank + 2)))
    return out
