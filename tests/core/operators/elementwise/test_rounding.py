"""Rounding."""

from __future__ import annotations

import candelabra as cd


def test_frac_keeps_the_sign() -> None:
    """The result is ``input - trunc(input)``."""
    assert cd.tensor([1.25, -2.75]).frac().tolist() == [0.25, -0.75]
    x = cd.tensor([1.25, -2.75], requires_grad=True)
    x.frac().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
