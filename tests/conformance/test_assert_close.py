"""``assert_close``: tolerances, trees, and error messages."""

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra_conformance.closeness import TOLERANCES, assert_close

FLOATING = [getattr(cd, name) for name in TOLERANCES]


@pytest.mark.parametrize("d", FLOATING, ids=str)
def test_tolerances_are_those_of_the_dtype(d: Any) -> None:
    """A relative difference clearly below the dtype's tolerance passes, and one clearly above it fails."""
    rtol, _ = TOLERANCES[d.name]
    base = cd.full((3,), 1000.0, dtype=d)
    assert_close(base * (1 + rtol / 4), base)
    with pytest.raises(AssertionError, match="the values are not close"):
        assert_close(base * (1 + 8 * rtol), base)


def test_integers_and_bools_must_be_equal() -> None:
    """Integers and bools have no tolerance unless the caller passes one."""
    x = cd.tensor([1, 2, 3])
    assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="the values are not equal"):
        assert_close(x, cd.tensor([1, 2, 4]))
    assert_close(x, cd.tensor([1, 2, 4]), rtol=0, atol=1)
    with pytest.raises(AssertionError, match="expected False, got True"):
        assert_close(cd.tensor([True]), cd.tensor([False]))


def test_the_error_says_how_many_how_far_and_where() -> None:
    """The error has the count, the share, the greatest differences, their indices, the limit and both values."""
    with pytest.raises(AssertionError) as caught:
        assert_close(cd.tensor([[1.0, 2.0], [3.0, 5.0]]), cd.tensor([[1.0, 2.5], [3.0, 4.0]]))
    assert str(caught.value).splitlines() == [
        "the values are not close",
        "  different: 2 of 4 (50.0 %)",
        "  greatest difference, absolute: 1 at (1, 1) (1e-05 allowed): expected 4.0, got 5.0",
        "  greatest difference, relative: 0.25 at (1, 1) (1.3e-06 allowed): expected 4.0, got 5.0",
        "  greatest difference, in ULP: 2.09715e+06 at (0, 1): expected 2.5, got 2.0",
    ]


def test_ulp_bounds_the_error_in_units_in_the_last_place() -> None:
    """A difference of two units passes with ``ulp=2`` and fails with ``ulp=1``; other tolerances do not apply."""
    x = cd.tensor([1.0])
    y = x + 2 * 2.0**-23
    assert_close(y, x, ulp=2)
    with pytest.raises(AssertionError, match=r"in ULP: 2 at \(0,\) \(1 allowed\)"):
        assert_close(y, x, ulp=1)
    assert_close(y, x, ulp=1, rtol=0, atol=1e-6)


def test_nan_equals_nan_by_default() -> None:
    """NaN differs from all other values; an infinity equals itself."""
    x = cd.tensor([math.nan, math.inf, -math.inf])
    assert_close(x, x)
    with pytest.raises(AssertionError, match="expected nan, got nan"):
        assert_close(x, x, equal_nan=False)
    with pytest.raises(AssertionError, match="got nan"):
        assert_close(x, cd.tensor([0.0, math.inf, -math.inf]))
    with pytest.raises(AssertionError, match="expected inf, got -inf"):
        assert_close(cd.tensor(-math.inf), cd.tensor(math.inf), rtol=1, atol=1)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (cd.ones(2), cd.ones(3), r"shapes differ: expected \(3,\), got \(2,\)"),
        (cd.ones(2), cd.ones(2, dtype=cd.float64), "dtypes differ: expected candelabra.float64, got candelabra.float3"),
        ([1, 2], [1], "lengths of the sequences differ: expected 1, got 2"),
        ({"a": 1}, {"b": 1}, r"keys of the mappings differ: missing \['b'\], not expected \['a'\]"),
        (1, 1.0, "types of the numbers differ: expected float 1.0, got int 1"),
        (2**70, 2**70 + 1, f"expected {2**70 + 1}, got {2**70}"),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, r"not close at \['a'\]\[1\]"),
        ({"a": [cd.ones(2)]}, {"a": [cd.ones(1)]}, r"shapes differ: .* \(found at \['a'\]\[0\]\)"),
        ("x", "y", "expected 'y', got 'x'"),
    ],
)
def test_what_differs_is_named(actual: Any, expected: Any, words: str) -> None:
    """The error names the first difference of a tree with its position."""
    with pytest.raises(AssertionError, match=words):
        assert_close(actual, expected)


def test_trees_of_all_kinds_are_compared() -> None:
    """Tensors, arrays, numbers, None and strings inside tuples, lists and dicts are compared."""
    x = cd.tensor([1.0, 2.0])
    assert_close({"a": [x, (1, None)], "b": "name"}, {"a": [np.array([1, 2], np.float32), (1, None)], "b": "name"})
    assert_close(np.float64(2.0), np.array(2.0))
    assert_close(x[0], 1.0)
    assert_close(1 + 1e-9j, 1 + 0j)
    assert_close(cd.tensor([1, 2]), cd.tensor([1.0, 2.0]), check_dtype=False)
    assert_close(cd.tensor([1], dtype=cd.uint64), cd.tensor([1]), check_dtype=False)
    assert_close(cd.ones(0, 3), cd.ones(0, 3))


def test_strides_count_only_when_asked_for() -> None:
    """A transposed tensor and its copy differ only if strides are compared."""
    x = cd.ones(2, 3).T
    assert_close(x, x.contiguous())
    with pytest.raises(AssertionError, match=r"strides differ: expected \(2, 1\), got \(1, 3\)"):
        assert_close(x, x.contiguous(), check_stride=True)


def test_devices_must_agree(lantern: object) -> None:
    """Equal values on two devices are different unless ``check_device=False`` is passed."""
    here, there = cd.ones(2), cd.ones(2, device="lantern:1")
    with pytest.raises(AssertionError, match="devices differ: expected lantern:1"):
        assert_close(here, there)
    assert_close(here, there, check_device=False)


def test_the_message_can_be_replaced_or_extended() -> None:
    """``msg`` is the message, or a function that computes it from the default message."""
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^step 3: expected 2, got 1$"):
        assert_close(1, 2, msg=lambda text: f"step 3: {text}")


def test_invalid_calls_are_reported() -> None:
    """A single tolerance of the two, a negative tolerance, and values of unsupported types are errors."""
    with pytest.raises(ValueError, match="rtol was given without atol"):
        assert_close(1.0, 1.0, rtol=1e-3)
    with pytest.raises(ValueError, match="atol was given without rtol"):
        assert_close(1.0, 1.0, atol=1e-3)
    with pytest.raises(ValueError, match="ulp must not be negative, got -1"):
        assert_close(1.0, 1.0, ulp=-1)
    with pytest.raises(TypeError, match=r"assert_close\(\) at \[0\]: cannot compare object with object"):
        assert_close([object()], [object()])
