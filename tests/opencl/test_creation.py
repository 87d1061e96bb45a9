"""Creation of arrays on OpenCL devices."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest


def full(*shape: int, device: cd.device) -> cd.Tensor:
    """Return a tensor of twos."""
    return cd.full(shape, 2.0, device=device)


@pytest.mark.parametrize("make", [cd.zeros, cd.ones, cd.empty, full])
def test_negative_sizes_are_refused(device: cd.device, make: Any) -> None:
    """Also two of them, whose product is positive."""
    for shape in ((-2, -3), (-2, 3)):
        with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -2: \[-2, -?3\]"):
            make(*shape, device=device)
    with pytest.raises(RuntimeError, match="negative dimension -2"):
        cd.ones(2, device=device).new_zeros(-2, -3)
