"""Broadcasting shapes and tensors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


@pytest.mark.parametrize("shapes", [((2,), (3, 1)), (3, (2, 3)), ((), (4, 1), (1, 5)), ((0,), (1,)), ((1, 2), (2, 2))])
def test_shapes_broadcast_as_in_numpy(shapes: Any) -> None:
    """An int is a shape with one dim."""
    found = cd.broadcast_shapes(*shapes)
    assert isinstance(found, cd.Size)
    assert tuple(found) == np.broadcast_shapes(*shapes)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    """The error names the argument; negative sizes are errors."""
    with pytest.raises(RuntimeError, match=r"length 4 at -1! Mismatching argument at index 2 had \(4,\)"):
        cd.broadcast_shapes((2,), (3, 1), (4,))
    with pytest.raises(ValueError, match="dimension with negative length"):
        cd.broadcast_shapes((-1,))


def test_tensors_broadcast_to_views() -> None:
    """The results share memory with the arguments, and propagate gradients to them."""
    x, y = ramp(3).requires_grad_(), ramp(2, 1)
    wide, tall = cd.broadcast_tensors(x, y)
    assert wide.shape == tall.shape == (2, 3)
    assert wide.data_ptr() == x.data_ptr()
    wide.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        cd.broadcast_tensors(cd.ones(2), cd.ones(3))


def test_a_size_of_minus_one_is_kept() -> None:
    """-1 is an error for a new dim."""
    x = ramp(2, 1)
    assert x.expand(3, -1, 2).shape == x.expand((3, 2, -1)).expand(-1, -1, 2).shape == (3, 2, 2)
    assert cd.broadcast_to(x, (2, 3)).tolist() == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="isn't allowed in a leading, non-existing dimension"):
        x.expand(-1, 2, 1)
    with pytest.raises(RuntimeError, match="the number of sizes provided"):
        x.expand(2)
