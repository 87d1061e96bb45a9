"""Writes in place and chains of additions in a block of ``batching()``."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, batching

from tests.core.transforms.comparing import recorded, tensor


def test_sums_in_place_are_collected(rng: np.random.Generator) -> None:
    """``total += x`` waits with the block, for totals from inside and outside, whose views see the sum."""
    w = tensor(rng, 3, leaf=True)
    outside = cd.zeros(3, dtype=cd.float64)
    view = outside[1:]
    with batching():
        inside = w * 0
        for _ in range(3):
            inside += w.exp()
            outside += w.exp()
    assert cd.allclose(inside, 3 * w.exp())
    assert cd.allclose(outside, 3 * w.exp())
    assert cd.allclose(view, 3 * w.exp()[1:])
    (outside.sum() + inside.sum()).backward()
    assert w.grad is not None
    assert cd.allclose(w.grad, 6 * w.exp())


def test_views_of_deferred_tensors_share_their_memory(rng: np.random.Generator) -> None:
    """A write through a view, or to its base, shows in the other, as outside of the block."""

    def run() -> list[Any]:
        x = start * 2
        row, column = x[0], x.t()[1]
        x.add_(1)
        row.mul_(3)
        kept = row + 1
        column.zero_()
        return [t.tolist() for t in (x, row, column, kept)]

    start = tensor(rng, 2, 3)
    with batching():
        found = run()
    assert found == run()


def test_a_write_does_not_affect_calls_before_it(rng: np.random.Generator) -> None:
    """A call uses the value that its operand had when it was made, whatever writes follow."""
    x, w = tensor(rng, 3), tensor(rng, 3, leaf=True)
    expected = (x * 2).tolist(), (w * 2).tolist()
    with batching():
        y, z = x * 2, w * 2
        x.zero_()
        with cd.no_grad():
            w.fill_(0)
        assert (x * 2).tolist() == [0, 0, 0]
    assert (y.tolist(), z.tolist()) == expected
    with batching():
        y = w * 2
        w.data = cd.ones(3, dtype=cd.float64)
        with pytest.raises(RuntimeError, match="changed in place in a block of batching"):
            y.tolist()


def test_results_of_equal_calls_have_memory_of_their_own(rng: np.random.Generator) -> None:
    """Two calls with the same operands, which run once, do not share their result."""
    w, x = tensor(rng, 3, leaf=True), tensor(rng, 3)
    with batching():
        for operand in (w, x):
            with cd.no_grad():
                a, b = operand * 2, operand * 2
                a.sum().item()
                a.zero_()
                assert cd.equal(b, operand * 2)


def test_a_chain_of_additions_runs_as_one_call(rng: np.random.Generator) -> None:
    """The partial sums of a loop are cumulative sums: one call, in any form of addition."""
    w, xs = tensor(rng, 4, leaf=True), [tensor(rng, 4) for _ in range(9)]

    def total() -> tuple[Tensor, Tensor]:
        first = sum((w * x).sum() for x in xs)
        second = (w * xs[0]).clone()
        for x in xs[1:]:
            second += (w * x).tanh()
        return first, second

    eager = total()
    (eager[0] + (eager[1] ** 2).sum()).backward()
    expected, w.grad = w.grad, None
    with batching():
        found = total()
    nodes = recorded(found[0] + found[1].sum())
    assert nodes.count("CumsumBackward") == 2
    assert nodes.count("AddBackward") <= 2
    (found[0] + (found[1] ** 2).sum()).backward()
    for got, value in zip(found, eager, strict=True):
        assert cd.allclose(got, value)
    assert cd.allclose(w.grad, expected)


def test_terms_that_depend_on_a_partial_sum_stay_in_order(rng: np.random.Generator) -> None:
    """In ``x = x + f(x)`` each term needs the sum so far, so that the chain is not one call."""
    start = tensor(rng, 5)

    def residual(x: Tensor) -> Tensor:
        for _ in range(6):
            x = x + (x * 0.5).tanh()
        return x

    with batching():
        found = [residual(start + i) for i in range(3)]
        alone = residual(start)
    for i, got in enumerate(found):
        assert cd.allclose(got, residual(start + i))
    assert cd.allclose(alone, residual(start))


def test_each_partial_sum_of_a_chain_can_be_used(rng: np.random.Generator) -> None:
    """Partial sums that the program keeps have their values, and calls that need them run after the chain."""
    xs = [tensor(rng, 2) for _ in range(6)]
    with batching():
        partial = [xs[0] * 1]
        for x in xs[1:]:
            partial.append(partial[-1] + x * 1)
        products = cd.stack([p * 2 for p in partial])
    assert cd.allclose(products, cd.stack(xs).cumsum(0) * 2)
    for i, p in enumerate(partial):
        assert cd.allclose(p, cd.stack(xs[: i + 1]).sum(0))
