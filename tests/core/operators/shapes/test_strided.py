"""Views by sizes and strides, and writes through them."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_write_by_positions_in_memory_has_the_gradient_of_what_lies_there(order: str) -> None:
    """The memory layouts of the tensor and of its gradient have no effect."""
    x = cd.from_numpy(np.asarray(np.arange(6.0).reshape(2, 3), order=order)).requires_grad_()
    w = cd.tensor([10.0, 20.0], dtype=cd.float64, requires_grad=True)
    written = [(0, 1), (1, 0)] if order == "C" else [(1, 0), (1, 1)]  # The elements 1 and 3.
    for weights in (np.arange(1.0, 7.0).reshape(2, 3), np.ones((2, 3))):
        y = x * 1.0
        y.as_strided((2,), (2,), 1).mul_(w)
        # Ones are expanded from a single element, so the gradient's layout differs from that of y.
        loss = (y * cd.from_numpy(weights)).sum() if weights.std() else y.sum()
        by_x, by_w = cd.autograd.grad(loss, [x, w])
        wanted = weights.copy()
        for place, factor in zip(written, (10.0, 20.0), strict=True):
            wanted[place] *= factor
        assert by_x.tolist() == wanted.tolist()
        assert by_w.tolist() == [weights[place] * x[place].item() for place in written]


def test_a_view_of_memory_begins_where_its_tensor_does() -> None:
    """Another offset may be passed, as any integer type."""
    x = cd.arange(6.0)
    assert x[2:].as_strided((2,), (1,)).tolist() == [2, 3]
    assert x[2:].as_strided((2,), (1,), 0).tolist() == [0, 1]
    assert x[2:].as_strided((2,), (1,), storage_offset=np.int64(4)).tolist() == [4, 5]


def test_nothing_outside_the_memory_is_shown() -> None:
    """The sizes and strides are checked against the memory."""
    x = cd.arange(6.0)
    with pytest.raises(RuntimeError, match="are out of bounds for storage of 6 elements"):
        x.as_strided((7,), (1,), 0, ((1,), 0, 0, 100))
    with pytest.raises(RuntimeError, match="are out of bounds for storage of 6 elements"):
        x.clone().as_strided_((2,), (6,))


@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_without_gaps_are_replaced_wherever_they_overlap(order: str) -> None:
    """Before, within, around and behind those of the input, in memory that is larger than both."""
    memory = cd.arange(12.0)
    x = memory[4:8].reshape(2, 2)
    x = x if order == "C" else x.t()
    for size in range(6):
        for start in range(12 - size + 1):
            src = -1.0 - cd.arange(float(size))
            wanted = np.arange(12.0)
            wanted[start : start + size] = src.numpy()
            part = wanted[4:8].reshape(2, 2)
            found = cd.as_strided_scatter(x, src, (size,), (1,), start)
            assert found.tolist() == (part if order == "C" else part.T).tolist()
