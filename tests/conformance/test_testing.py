"""``candelabra.testing``: PyTorch's ``assert_close`` and ``make_tensor``."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest
from candelabra.testing import assert_allclose, assert_close, make_tensor

DTYPES = [
    cd.bool, cd.uint8, cd.uint16, cd.uint32, cd.uint64, cd.int8, cd.int16, cd.int32, cd.int64, cd.float16, cd.bfloat16,
    cd.float32, cd.float64, cd.complex64, cd.complex128,
]  # fmt: skip


def as_reals(x: cd.Tensor) -> cd.Tensor:
    """Return the values as float64, of a complex tensor real and imaginary parts."""
    return (cd.view_as_real(x) if x.is_complex() else x).to(cd.float64)


@pytest.mark.parametrize("d", DTYPES, ids=str)
def test_default_intervals_depend_on_the_kind_of_dtype(d: Any) -> None:
    """Bools are 0 and 1, unsigned integers lie in [0, 10), signed ones in [-9, 10), floats in [-9, 9)."""
    values = as_reals(make_tensor(40, 50, dtype=d, device="cpu"))
    low, high = values.min().item(), values.max().item()
    if d is cd.bool:
        assert (low, high) == (0, 1)
    elif d.category == 1:
        assert (low, high) == ((-9, 9) if d.is_signed else (0, 9))
    else:
        assert -9 <= low < -8.9
        assert 8.8 < high <= 9


def test_the_shape_is_given_by_numbers_or_a_sequence() -> None:
    """Sizes are separate arguments or one list or tuple; no size makes a 0-d tensor."""
    for shape, expected in (((2, 3), (2, 3)), (([2, 3],), (2, 3)), ((5,), (5,)), (((),), ()), ((0, 4), (0, 4))):
        assert make_tensor(*shape, dtype=cd.float32, device="cpu").shape == expected


def test_bounds_beyond_the_dtype_are_moved_to_its_ends() -> None:
    """Infinite bounds become the greatest finite values, and integer bounds those of the dtype."""
    wide = make_tensor(1000, dtype=cd.float64, device="cpu", low=-math.inf, high=math.inf)
    assert wide.isfinite().all()
    assert wide.abs().max().item() > 1e307
    small = make_tensor(1000, dtype=cd.uint8, device="cpu", low=-20, high=2.5)
    assert small.unique().tolist() == [0, 1, 2]
    top = make_tensor(100, dtype=cd.uint64, device="cpu", low=2**64 - 2, high=2**70)
    assert set(top.tolist()) == {2**64 - 2, 2**64 - 1}


def test_noncontiguous_tensors_have_a_stride_of_two() -> None:
    """``noncontiguous`` leaves a place between the elements of the last dim, unless there are fewer than two."""
    assert make_tensor(3, 4, dtype=cd.float32, device="cpu", noncontiguous=True).stride() == (8, 2)
    assert make_tensor(1, dtype=cd.float32, device="cpu", noncontiguous=True).is_contiguous()
    assert make_tensor((), dtype=cd.complex64, device="cpu", noncontiguous=True).shape == ()


def test_memory_format_orders_the_strides() -> None:
    """Channels-last tensors have the strides of PyTorch's."""
    made = make_tensor(3, 4, 2, 2, dtype=cd.float32, device="cpu", memory_format=cd.channels_last)
    assert made.stride() == (16, 1, 8, 4)


@pytest.mark.parametrize("d", [cd.bool, cd.int64, cd.float16, cd.complex64], ids=str)
def test_zeros_are_replaced(d: Any) -> None:
    """``exclude_zero`` puts 1 or the smallest normal number in their place."""
    low, high = (0, 1) if d.category < 2 else (0, 2e-45)
    made = make_tensor(50, dtype=d, device="cpu", low=low, high=high, exclude_zero=True)
    assert (made != 0).all()
    if d.category < 2:
        assert (made == 1).all()


def test_leaves_that_require_grad() -> None:
    """``requires_grad`` gives a leaf that records."""
    made = make_tensor(3, dtype=cd.complex64, device="cpu", requires_grad=True, noncontiguous=True)
    assert made.requires_grad
    assert made.is_leaf


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"low": 3, "high": 1}, "low must be less than high, got 3 >= 1"),
        ({"low": math.nan}, "low and high must not be NaN, got low=nan and high=9"),
        ({"dtype": cd.int32, "low": 3.2, "high": 3.4}, "there is no candelabra.int32 between low=3.2 and high=3.4"),
        ({"dtype": cd.uint8, "low": 300, "high": 500}, r"no value of candelabra.uint8 lies in \[300, 500\)"),
        ({"dtype": cd.uint8, "low": -9, "high": -5}, "its values go from 0 to 255"),
        ({"dtype": cd.bool, "requires_grad": True}, "requires_grad=True needs a floating or complex dtype"),
        ({"noncontiguous": True, "memory_format": cd.contiguous_format}, "are mutually exclusive"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    """Each option that cannot be served is a ValueError that says why."""
    with pytest.raises(ValueError, match=text):
        make_tensor(3, **{"dtype": cd.float32, "device": "cpu", **options})


def test_equal_bounds_warn() -> None:
    """``low == high`` gives a constant, as in PyTorch, and warns."""
    with pytest.warns(FutureWarning, match="low == high is deprecated: use candelabra.full"):
        assert make_tensor(2, dtype=cd.float32, device="cpu", low=3, high=3).tolist() == [3, 3]


def test_nan_differs_by_default() -> None:
    """As in PyTorch, NaN equals NaN only with ``equal_nan``."""
    x = cd.tensor([1.0, cd.nan])
    assert_close(x, x.clone(), equal_nan=True)
    with pytest.raises(AssertionError, match="different: 1 of 2"):
        assert_close(x, x.clone())


def test_subclasses_are_compared_unless_refused() -> None:
    """A Parameter may be compared with a tensor; ``allow_subclasses=False`` requires the same type."""
    x = cd.nn.Parameter(cd.ones(2))
    assert_close(x, cd.ones(2))
    with pytest.raises(TypeError, match="must have the same type, got Parameter and Tensor"):
        assert_close(x, cd.ones(2), allow_subclasses=False)
    assert cd.testing.assert_close is assert_close
    assert dir(cd.testing) == ["assert_allclose", "assert_close", "make_tensor"]


def test_assert_allclose_compares_data_of_any_dtypes() -> None:
    """It warns, takes the tolerances of the less accurate dtype, and NaN equals NaN."""
    with pytest.warns(FutureWarning, match="assert_allclose.. is deprecated"):
        assert_allclose(cd.tensor([1.0, math.nan], dtype=cd.float64), cd.tensor([1.00005, math.nan]))
    with pytest.warns(FutureWarning):
        assert_allclose([1.0, 2.0], [1, 2])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        assert_allclose(cd.tensor([1.0], dtype=cd.float64), cd.tensor([1.00005], dtype=cd.float64))
