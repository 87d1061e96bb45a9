"""Repeated slices."""

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


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_slices_are_repeated_in_a_row(dim: int | None) -> None:
    """The number of repeats is one for all slices or one per slice, as in NumPy; gradients are added."""
    x = ramp(2, 3).requires_grad_()
    size = 6 if dim is None else x.shape[dim]
    counts = cd.tensor([2, 0, 3, 1, 0, 1][:size], dtype=cd.int32)
    for repeats in (2, counts, cd.tensor([3])):
        made = cd.repeat_interleave(x, repeats, dim)
        each = repeats if isinstance(repeats, int) else repeats.tolist()
        assert array(made).tolist() == np.repeat(array(x), each, dim).tolist()
    x.repeat_interleave(counts, dim, output_size=int(counts.sum())).sum().backward()
    wanted = np.broadcast_to(array(counts).reshape((2, 3) if dim is None else (-1, 1) if dim == 0 else (1, -1)), (2, 3))
    assert x.grad.tolist() == wanted.tolist()


def test_repeats_alone_give_the_indices() -> None:
    """The indices have the dtype of the repeats; empty repeats give an empty result."""
    made = cd.repeat_interleave(cd.tensor([2, 0, 1], dtype=cd.int32))
    assert made.tolist() == [0, 0, 2]
    assert made.dtype is cd.int32
    assert cd.repeat_interleave(cd.empty(0, dtype=cd.int64)).shape == (0,)
    assert cd.tensor(5).repeat_interleave(2).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((cd.ones(1, 1).long(),), RuntimeError, "repeat_interleave only accept 1D vector as repeat"),
        ((cd.ones(2),), NotImplementedError, "\"repeat_interleave_indices\" not implemented for 'Float'"),
        ((cd.tensor([2, -1]),), RuntimeError, "repeats can not be negative"),
        ((cd.ones(2), -1), RuntimeError, "Repeats must be non-negative"),
        ((cd.ones(2), cd.tensor([1, 2, 3])), RuntimeError, r"repeats\.size\(0\) = 3 and input\.size\(0\) = 2"),
        ((cd.ones(2), cd.ones(2, 1).long()), RuntimeError, "repeats must be 0-dim or 1-dim tensor"),
        ((cd.tensor(1.0), 2, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        ((cd.ones(2), [1, 2]), TypeError, r"invalid combination of arguments - got \(Tensor, list\)"),
    ],
)
def test_repeats_that_do_not_fit_are_refused(arguments: Any, error: Any, match: str) -> None:
    """Signs, counts, dtypes and ranks are checked."""
    with pytest.raises(error, match=match):
        cd.repeat_interleave(*arguments)


def test_a_wrong_number_of_repeated_slices_is_refused() -> None:
    """``output_size`` must be the actual size."""
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        cd.repeat_interleave(cd.ones(2), cd.tensor([1, 2]), output_size=4)
    with pytest.raises(RuntimeError, match="Invalid output_size, expected 4 but got 5"):
        cd.repeat_interleave(cd.ones(2), 2, output_size=5)
