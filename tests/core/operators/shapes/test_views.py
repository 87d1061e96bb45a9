"""Views of the same bytes in another dtype."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


@pytest.mark.parametrize("old", ["float32", "int16", "uint8", "complex64", "float64", "bfloat16"])
@pytest.mark.parametrize("new", ["float64", "int32", "int8", "complex64", "bfloat16", "bool"])
def test_the_same_bytes_in_any_dtype(old: str, new: str) -> None:
    """The last dim changes with the element size, and the view shares memory."""
    x = cd.zeros(2, 16, dtype=getattr(cd, old))
    seen = x.view(getattr(cd, new))
    assert seen.dtype is getattr(cd, new)
    assert seen.shape == (2, 16 * x.itemsize // seen.itemsize)
    assert seen.data_ptr() == x.data_ptr()
    x.fill_(1)
    assert seen.view(x.dtype).tolist() == x.tolist()


def test_floats_by_their_bits() -> None:
    """0-d tensors require equal element sizes; the view has no gradient; writes change the source."""
    assert cd.tensor(1.0).view(cd.int32).item() == 0x3F800000
    x = cd.ones(4, requires_grad=True)
    assert not x.view(cd.int32).requires_grad
    y = cd.ones(2)
    y.view(cd.int32).zero_()
    assert y.tolist() == [0, 0]
    assert y._version > 0
    assert y.view(size=(2, 1)).shape == (2, 1)
    assert x.view(cd.float32).requires_grad


@pytest.mark.parametrize(
    ("make", "dtype", "match"),
    [
        (lambda: cd.ones(2, 3), cd.float64, r"self.size\(-1\) must be divisible by 2 to view Float as Double"),
        (lambda: ramp(2, 3).t(), cd.int16, r"self.stride\(-1\) must be 1 to view Float as Short .* but got 3"),
        (lambda: cd.tensor(1.0), cd.float64, r"self.dim\(\) cannot be 0 to view Float as Double"),
        (lambda: ramp(2, 3)[:, :2], cd.float64, r"self.stride\(0\) must be divisible by 2 .* but got 3"),
        (lambda: ramp(3, 4)[1:, 1:3], cd.float64, r"self.storage_offset\(\) must be divisible by 2 .* but got 5"),
    ],
)
def test_bytes_that_do_not_divide_are_refused(make: Any, dtype: Any, match: str) -> None:
    """The error names the size, the stride or the offset."""
    with pytest.raises(RuntimeError, match=match):
        make().view(dtype)


def test_a_shape_is_given_by_sizes_by_a_sequence_or_by_name() -> None:
    """A dtype is accepted in all of these ways too, and is not a size."""
    x = ramp(2, 3)
    for seen in (x.view(3, 2), x.view((3, 2)), x.view([3, -1]), x.view(cd.Size([3, 2])), x.view(size=(3, 2))):
        assert seen.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert seen.data_ptr() == x.data_ptr()
    assert x.view(cd.int32).dtype is x.view(dtype=cd.int32).dtype is cd.int32
    with pytest.raises(TypeError, match=r"view\(\) received an invalid combination of arguments - got \(Tensor, str\)"):
        x.view("float32")
    with pytest.raises(TypeError, match="size must be an int or a tuple of ints, but found float"):
        x.view(1.5, 4)


@pytest.mark.parametrize(
    ("view", "match"),
    [
        (lambda: cd.zeros(2, 0).view(3), r"shape '\[3\]' is invalid for input of size 0"),
        (lambda: cd.zeros(3).view(0), r"shape '\[0\]' is invalid for input of size 3"),
        (lambda: ramp(2, 3).t().view(6), "at least one dimension spans across two contiguous subspaces"),
        (
            lambda: cd.view_as_complex(ramp(2, 2).half()),
            "view_as_complex is only supported for float and double tensors",
        ),
        (lambda: cd.view_as_complex(ramp(2, 3).t()), "Tensor must have a last dimension with stride 1"),
    ],
)
def test_memory_that_does_not_show_a_shape(view: Any, match: str) -> None:
    """A wrong number of elements, or incompatible strides, are errors."""
    with pytest.raises(RuntimeError, match=match):
        view()
