"""The larger and the smaller of two."""

from __future__ import annotations

import math

import candelabra as cd

INF, NAN = math.inf, math.nan


def test_the_first_of_equals_gets_the_gradient_of_fmax_and_fmin() -> None:
    """And the number that is beside a NaN."""
    for function in (cd.fmax, cd.fmin):
        x = cd.tensor([1.0, NAN, 2.0], requires_grad=True)
        y = cd.tensor([1.0, 5.0, NAN], requires_grad=True)
        function(x, y).sum().backward()
        assert x.grad.tolist() == [1.0, 0.0, 1.0]
        assert y.grad.tolist() == [0.0, 1.0, 0.0]
