"""Backends override the operators of networks by their names."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import get_kernel
from candelabra.nn import functional as F

from tests.lantern import LanternBackend


@pytest.mark.parametrize(
    ("name", "call", "count"),
    [
        ("linear", lambda x: F.linear(x, x), 3),
        ("layer_norm", lambda x: F.layer_norm(x, [3]), 5),
        ("rms_norm", lambda x: F.rms_norm(x, [3]), 4),
        ("cross_entropy", lambda x: F.cross_entropy(x, x.new_zeros((2,), dtype=cd.int64)), 8),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_kernel_serves_the_function_of_its_name(lantern: LanternBackend, name: str, call: Any, count: int) -> None:
    """The kernel gets all arguments, shapes as tuples; what it declines the body computes."""
    x = cd.tensor([[1.0, 2.0, 3.0], [4.0, 6.0, 5.0]], device="lantern")
    expected = call(x)
    given: list[tuple[Any, ...]] = []

    def kernel(*args: Any) -> Any:
        given.append(args)
        return NotImplemented if len(given) > 1 else args[0]

    undo = cd.register_kernel("lantern", name, kernel)
    try:
        served, declined = call(x), call(x)
    finally:
        undo()
    assert served.tolist() == x.tolist()
    assert declined.tolist() == expected.tolist()
    assert [len(args) for args in given] == [count, count]
    assert not any(isinstance(value, list) for value in given[0])


def test_a_kernel_of_dropout_serves_training(lantern: LanternBackend) -> None:
    """The kernel returns values and factors for the numbers of a draw, and the factors are the derivative."""
    given: list[tuple[Any, ...]] = []
    multiply, add = get_kernel("lantern", "mul"), get_kernel("lantern", "add")

    def kernel(x: Any, p: float, seed: int, offset: int) -> Any:
        given.append((p, seed, offset))
        return multiply(x, 2.0), add(multiply(x, 0.0), 2.0)

    x = cd.ones(2, 3, device="lantern", requires_grad=True)
    undo = cd.register_kernel("lantern", "dropout", kernel)
    try:
        cd.manual_seed(11)
        y = F.dropout(x, 0.25)
    finally:
        undo()
    y.sum().backward()
    assert given == [(0.25, 11, 0)]
    assert x.grad is not None
    assert y.tolist() == x.grad.tolist() == [[2.0] * 3] * 2


def test_dropout_draws_the_numbers_of_rand() -> None:
    """An element is dropped where the uniform number of the same draw is below p, on each route to the operator."""
    x = cd.ones(4, 5)
    cd.manual_seed(5)
    kept = (cd.rand(4, 5) >= 0.4).to(cd.float32) / 0.6
    for call in (
        lambda: F.dropout(x, 0.4),
        lambda: cd.dropout(x, 0.4, True),
        lambda: cd.dropout_(x.clone(), 0.4, True),
    ):
        cd.manual_seed(5)
        np.testing.assert_allclose(np.asarray(call()), np.asarray(kept), rtol=1e-6)
