"""Compare ``vmap`` with a loop over the examples; a Function for tests of transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor, vmap


def tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    """Return float64 numbers, so that the order of sums does not matter."""
    return cd.tensor(rng.standard_normal(shape))


def looped(f: Callable[..., Any], *args: Any, dims: tuple[Any, ...] | None = None) -> Tensor:
    """Return the results of ``f`` for each example, stacked."""
    dims = (0,) * len(args) if dims is None else dims
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    return cd.stack([
        f(*[a if d is None else a.select(d, i) for a, d in zip(args, dims, strict=True)]) for i in range(size)
    ])  # fmt: skip


def check(f: Callable[..., Any], *args: Any, dims: tuple[Any, ...] | None = None) -> None:
    """Compare ``vmap(f)`` with the loop, for these in_dims."""
    found = vmap(f, 0 if dims is None else dims)(*args)
    expected = looped(f, *args, dims=dims)
    assert found.dtype is expected.dtype
    assert found.shape == expected.shape
    assert cd.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


class Cube(cd.autograd.Function):
    """``x**3``, with a derivative of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g
