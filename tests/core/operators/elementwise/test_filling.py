"""Tensors filled with one value."""

from __future__ import annotations

import candelabra as cd
import pytest


def test_filled_tensors_and_their_gradients() -> None:
    """A number is converted to the dtype; a 0-d tensor gets the sum of the gradient."""
    x, value = cd.ones(2, 3, requires_grad=True), cd.tensor(2.0, requires_grad=True)
    made = cd.fill(x, value)
    assert made.tolist() == [[2] * 3] * 2
    made.sum().backward()
    assert value.grad.item() == 6
    assert x.grad.tolist() == [[0] * 3] * 2
    assert cd.fill(cd.ones(2, dtype=cd.int64), 3.5).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="only supports 0-dimension value tensor but got tensor with 1 dimensions"):
        cd.fill(cd.ones(2), cd.ones(1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_content_is_overwritten_in_every_dtype(dtype: str) -> None:
    """``zero_`` and ``fill_`` are functions and methods, for contiguous and other tensors; copies convert the dtype."""
    x = cd.ones(3, 2, dtype=getattr(cd, dtype))
    assert cd.fill_(x[:, 1], 0) is not x
    assert x.tolist() == [[1, 0]] * 3
    assert cd.zero_(x) is x
    assert x.tolist() == [[0, 0]] * 3
    x.t().copy_(cd.ones(2, 3))
    assert x.tolist() == [[1, 1]] * 3
    x.copy_(cd.zeros(1, dtype=cd.int32))
    assert not x.any()
    assert type(x[0, 0].item()) is {"bool": bool, "uint8": int, "int64": int, "complex64": complex}.get(dtype, float)
