"""Flips and rotations by 90 degrees."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def array(x: Any) -> np.ndarray:
    """Return a tensor's values."""
    return np.asarray(x.detach().numpy())


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


def test_flipping_takes_dims_by_position_and_by_name() -> None:
    """Ints, a tuple, and ``dims=`` are accepted."""
    x = ramp(2, 3)
    assert (
        x.flip(0, 1).tolist() == cd.flip(x, dims=(0, 1)).tolist() == x.flip((0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]]
    )


@pytest.mark.parametrize("k", range(-1, 5))
def test_quarter_turns(k: int) -> None:
    """The direction is NumPy's, and the result is a copy."""
    x = ramp(2, 3)
    assert array(cd.rot90(x, k)).tolist() == np.rot90(array(x), k).tolist()
    assert cd.rot90(x, k).storage_offset() == 0
    assert cd.rot90(x, k).data_ptr() != x.data_ptr()
