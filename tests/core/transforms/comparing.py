"""For tests of transforms: numbers, comparisons with loops and differences, names of nodes, a custom Function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor, vmap


def tensor(rng: np.random.Generator, *shape: int, leaf: bool = False) -> Tensor:
    """Return float64 numbers, so that the order of sums does not matter."""
    return cd.tensor(rng.standard_normal(shape), requires_grad=leaf)


def recorded(out: Tensor) -> list[str]:
    """Return the names of all nodes of a graph."""
    stack, seen = [out.grad_fn], []
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.append(node)
            stack += [before for before, _ in node.next_functions]
    return [node.name() for node in seen]


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> bool:
    """Compare in float64."""
    return a.shape == b.shape and cd.allclose(a, b, rtol=tolerance, atol=tolerance)


def difference(f: Callable[[Tensor], Tensor], x: Tensor, t: Tensor) -> Tensor:
    """Return the central difference of a function along a tangent, with an error of order step⁴ (five points)."""
    h = 1e-3
    return (8 * (f(x + h * t) - f(x - h * t)) - f(x + 2 * h * t) + f(x - 2 * h * t)) / (12 * h)


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
