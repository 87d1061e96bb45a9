"""Softmax and log-softmax, row by row in few passes over blocks that fit in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.half_precision import in_float32
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.rows import as_rows, for_each_block, from_rows


def softmax(x: Any, dim: int) -> Any:
    """``exp(x) / sum(exp(x))`` along a dim, shifted by the maximum."""
    if not x.ndim or not x.size:
        return np.where(np.isfinite(x), np.ones_like(x), x - x)
    rows, shape = as_rows(x, dim)
    out = np.empty_like(rows)

    def work(selection: slice) -> None:
        block = np.subtract(rows[selection], rows[selection].max(1, keepdims=True), out=out[selection])
        np.exp(block, out=block)
        np.multiply(block, 1 / block.sum(1, keepdims=True), out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return from_rows(out, shape, dim)


def softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """``y * (g - sum(g * y))`` along a dim."""
    if not y.ndim or not y.size:
        return g * y - y * (g * y)
    (grads, shape), (rows, _) = as_rows(g, dim), as_rows(y, dim)
    out = np.empty_like(rows)

    def work(selection: slice) -> None:
        sums = np.einsum("ij,ij->i", grads[selection], rows[selection])
        block = np.subtract(grads[selection], sums[:, None], out=out[selection])
        np.multiply(block, rows[selection], out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return from_rows(out, shape, dim)


def log_softmax(x: Any, dim: int) -> Any:
    """The logarithm of the softmax along a dim."""
    if not x.ndim or not x.size:
        return x - x
    rows, shape = as_rows(x, dim)
    out = np.empty_like(rows)

    def work(selection: slice) -> None:
        block = np.subtract(rows[selection], rows[selection].max(1, keepdims=True), out=out[selection])
        np.subtract(block, np.log(np.exp(block).sum(1, keepdims=True)), out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return from_rows(out, shape, dim)


def log_softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """``g - exp(y) * sum(g)`` along a dim."""
    if not y.ndim or not y.size:
        return g - np.exp(y) * g
    (grads, shape), (rows, _) = as_rows(g, dim), as_rows(y, dim)
    out = np.empty_like(rows)

    def work(selection: slice) -> None:
        block = np.exp(rows[selection], out=out[selection])
        np.multiply(block, grads[selection].sum(1, keepdims=True), out=block)
        np.subtract(grads[selection], block, out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return from_rows(out, shape, dim)


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float32(kernel)) for name, kernel in (
    ("softmax", softmax), ("softmax_backward", softmax_backward), ("log_softmax", log_softmax),
    ("log_softmax_backward", log_softmax_backward),
)}  # fmt: skip
