"""Arguments of reshape, flatten and unflatten."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


def test_a_shape_is_given_by_sizes_by_a_sequence_or_by_name() -> None:
    """One size may be -1."""
    x = cd.arange(6)
    for made in (x.reshape(2, 3), x.reshape((2, -1)), cd.reshape(x, [2, 3]), cd.reshape(x, shape=(-1, 3))):
        assert made.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert cd.tensor(5).reshape(()).shape == cd.ones(1).reshape().shape == ()
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        x.reshape(2, 3).t().reshape(4)


def test_sizes_may_be_of_any_integer_type() -> None:
    """NumPy integers and 0-d integer tensors are accepted."""
    x = cd.arange(6)
    assert x.reshape(np.int64(2), 3).shape == x.reshape(cd.tensor(2), 3).shape == (2, 3)
    assert x.select(0, cd.tensor(4)).item() == x.select(0, np.int8(4)).item() == 4
    with pytest.raises(TypeError, match="argument 'index' must be int, not float"):
        x.select(0, 1.0)
    with pytest.raises(TypeError, match="argument 'length' must be int, not bool"):
        x.narrow(0, 0, True)


def test_a_dim_becomes_several_and_back() -> None:
    """The result shares memory; the error of wrong sizes names them."""
    x = cd.arange(12).reshape(3, 4)
    apart = x.unflatten(-1, (2, -1))
    assert apart.shape == (3, 2, 2)
    assert apart.data_ptr() == x.data_ptr()
    assert apart.flatten(1).tolist() == x.tolist()
    assert cd.tensor(3).flatten().shape == cd.tensor(3).ravel().shape == (1,)
    with pytest.raises(RuntimeError, match=r"Provided sizes \[3, 2\] don't multiply up to the size of dim 1 \(4\)"):
        x.unflatten(1, (3, 2))
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        x.flatten(1, 0)
