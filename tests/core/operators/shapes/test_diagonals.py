"""Block-diagonal matrices, and in-place writes to diagonals."""

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


def test_blocks_stand_on_a_diagonal() -> None:
    """Numbers and vectors are blocks too, and the dtype is the promoted one."""
    made = cd.block_diag(cd.ones(2, dtype=cd.int32), 2 * cd.ones(2, 2), cd.tensor(3))
    assert made.tolist() == [[1, 1, 0, 0, 0], [0, 0, 2, 2, 0], [0, 0, 2, 2, 0], [0, 0, 0, 0, 3]]
    assert made.dtype is cd.float32
    assert cd.block_diag().shape == (1, 0)
    with pytest.raises(RuntimeError, match=r"must have 2 or fewer dimensions\. Input 1 has 3 dimensions"):
        cd.block_diag(cd.ones(1), cd.ones(1, 1, 1))


def test_blocks_carry_gradients() -> None:
    """Each block gets its part of the gradient."""
    x, y = cd.ones(1, 2, requires_grad=True), cd.ones(2, 1, requires_grad=True)
    (cd.block_diag(x, y) * ramp(3, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 1]]
    assert y.grad.tolist() == [[5], [8]]


@pytest.mark.parametrize(("shape", "wrap"), [((3, 3), False), ((2, 5), True), ((7, 3), False), ((7, 3), True)])
def test_diagonals_are_filled_in_place(shape: Any, wrap: bool) -> None:
    """With wrap=True the diagonal restarts in tall matrices, as in NumPy."""
    wanted = np.zeros(shape)
    np.fill_diagonal(wanted, 5, wrap=wrap)
    x = cd.zeros(shape)
    assert x.fill_diagonal_(5, wrap) is x
    assert (array(x) == wanted).all()


def test_diagonals_of_cubes_and_gradients_of_the_other_elements() -> None:
    """Overwritten elements have no gradient."""
    assert cd.zeros(3, 3, 3).fill_diagonal_(1).nonzero().tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    x = cd.ones(2, 2, requires_grad=True)
    (x * 3).fill_diagonal_(0).sum().backward()
    assert x.grad.tolist() == [[0, 3], [3, 0]]
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        cd.ones(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="all dimensions of input must be of equal length"):
        cd.ones(2, 3, 2).fill_diagonal_(1)


def test_values_are_put_on_a_diagonal() -> None:
    """Values are converted to the tensor's dtype, and their number must be the diagonal's, on every device."""
    x = ramp(2, 3)
    made = cd.diagonal_scatter(x, cd.tensor([7, 8]), 1)
    assert made.tolist() == [[0, 7, 2], [3, 4, 8]]
    assert made.dtype is cd.float32
    with pytest.raises(RuntimeError, match=r"src size = \[3\], slice size = \[2\]"):
        cd.diagonal_scatter(x, cd.ones(3))


@pytest.mark.usefixtures("lantern")
def test_values_are_put_on_a_diagonal_of_what_never_changes() -> None:
    """The result is a copy with the same gradients."""
    x, y = cd.ones(2, 3, device="ember", requires_grad=True), cd.zeros(2, device="ember", requires_grad=True)
    made = cd.diagonal_scatter(x, y, 1)
    assert made.tolist() == [[1, 0, 1], [1, 1, 0]]
    made.sum().backward()
    assert x.grad.tolist() == [[1, 0, 1], [1, 1, 0]]
    assert y.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"src size = \[1\], slice size = \[2\]"):
        cd.diagonal_scatter(x, cd.ones(1, device="ember"))
