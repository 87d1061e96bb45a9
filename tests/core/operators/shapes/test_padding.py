"""Constant padding."""

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


@pytest.mark.parametrize("pad", [(1, 2), (0, 0), (1, 0, 2, 3), (-1, 1), (2, -1, -1, -1), (-1, -2)])
def test_padding_and_cutting_off(pad: tuple[int, ...]) -> None:
    """Amounts start at the last dim, before and after; negative ones truncate."""
    x = ramp(3, 4)
    wanted = array(x)
    for number in range(len(pad) // 2):
        d = 1 - number
        left, right = pad[2 * number], pad[2 * number + 1]
        wanted = np.take(wanted, range(max(0, -left), wanted.shape[d] - max(0, -right)), d)
        width = [(0, 0), (0, 0)]
        width[d] = (max(0, left), max(0, right))
        wanted = np.pad(wanted, width, constant_values=7)
    assert array(cd.constant_pad_nd(x, pad, 7)).tolist() == wanted.tolist()


def test_padding_in_other_dtypes_and_its_gradient() -> None:
    """The value is converted to the dtype; the padding has no gradient; the result is a copy."""
    assert cd.constant_pad_nd(cd.tensor([True]), (1, 0)).tolist() == [False, True]
    assert cd.constant_pad_nd(cd.tensor([1]), (0, 1), 2.7).tolist() == [1, 2]
    x = cd.ones(2, requires_grad=True)
    (cd.constant_pad_nd(x, (1, 1)) * ramp(4)).sum().backward()
    assert x.grad.tolist() == [1, 2]
    assert cd.constant_pad_nd(x, (0, 0)).data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("pad", "match"),
    [
        ((1,), "Length of pad must be even but instead it equals 1"),
        ((1, 1, 1, 1), "Pad length is 4 while the input has 1 dimensions"),
        ((-3, 0), "The input size 2, plus negative padding -3 and 0 resulted in a negative output size"),
    ],
)
def test_paddings_that_do_not_fit_are_refused(pad: Any, match: str) -> None:
    """There must be pairs, at most one per dim, and the resulting sizes must not be negative."""
    with pytest.raises(RuntimeError, match=match):
        cd.constant_pad_nd(cd.ones(2), pad)
