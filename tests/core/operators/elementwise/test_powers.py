"""Powers in double precision."""

from __future__ import annotations

import candelabra as cd
import pytest


def test_float_power_is_double() -> None:
    """The result is float64 for every input; an in-place target must be float64."""
    got = cd.float_power(cd.tensor([2, 3]), 2)
    assert got.dtype is cd.float64
    assert got.tolist() == [4.0, 9.0]
    assert cd.float_power(2, cd.tensor([3, 4], dtype=cd.int8)).tolist() == [8.0, 16.0]
    assert cd.float_power(cd.tensor([2.0]), 1j).dtype is cd.complex128
    x = cd.tensor([2.0], dtype=cd.float64)
    assert x.float_power_(3) is x
    assert x.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="has dtype Float but the operation's result requires dtype Double"):
        cd.ones(2).float_power_(2)
    with pytest.raises(TypeError, match="at least one argument must be a Tensor"):
        cd.float_power(2, 3)
