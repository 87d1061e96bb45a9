"""Ranges with linear and logarithmic spacing."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest


def test_ranges_include_their_end() -> None:
    """The dtype is the default floating dtype; the end is included if a step meets it."""
    assert cd.range(1, 4, 0.5).tolist() == [1, 1.5, 2, 2.5, 3, 3.5, 4]
    assert cd.range(1, 4.2).tolist() == [1, 2, 3, 4]
    assert cd.range(3, 1, -1, dtype=cd.int64).tolist() == [3, 2, 1]
    assert cd.range(2).tolist() == [0, 1, 2]
    assert cd.range(cd.tensor(1), cd.tensor(2)).dtype is cd.float32


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0, 1, 0), "step must be nonzero"),
        ((3, 1), "upper bound and lower bound inconsistent with step sign"),
        ((0, math.inf), "unsupported range: 0 -> inf"),
    ],
)
def test_ranges_without_end_are_refused(arguments: Any, match: str) -> None:
    """A zero step, and a step in the wrong direction, are errors, as for ``arange``."""
    for make in (cd.range, cd.arange):
        with pytest.raises(RuntimeError, match=match):
            make(*arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "bfloat16"])
@pytest.mark.parametrize("arguments", [(0, 3, 4), (2, -1, 7), (0.5, 3, 1), (0, 1, 0)])
def test_powers_are_evenly_spaced_in_their_exponents(arguments: Any, dtype: str) -> None:
    """The result is NumPy's; the ends of an integer scale are truncated first."""
    start, end, steps = arguments
    d = getattr(cd, dtype)
    ends = (int(start), int(end)) if dtype == "int64" else (start, end)
    for base in (10.0, 2.0):
        made = cd.logspace(start, end, steps, base, dtype=d)
        assert made.dtype is d
        expected = np.logspace(*ends, steps, base=base)
        if dtype == "int64":
            assert np.abs(made.numpy() - expected).max(initial=0) <= 1
        else:
            assert np.allclose(made.to(cd.complex128).numpy(), expected, rtol=1e-2 if dtype == "bfloat16" else 1e-5)


def test_scales_of_tensors_and_of_complex_numbers() -> None:
    """Ends may be 0-d tensors; a complex end gives a complex scale."""
    assert np.allclose(cd.logspace(cd.tensor(1.0), 3, 2).tolist(), [10, 1000])
    assert cd.logspace(0, 1j, 3).dtype is cd.complex64
    assert np.allclose(cd.linspace(0, 2j, 3).tolist(), [0, 1j, 2j])
    assert cd.linspace(cd.tensor(1), cd.tensor(2.0), 2).tolist() == [1, 2]
    assert cd.linspace(4.3, -3, 3, dtype=cd.int64).tolist() == [4, 0, -3]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: cd.linspace(cd.ones(1), 2, 3), RuntimeError, "but got start with 1 dimension"),
        (lambda: cd.linspace(0, 1, 3, dtype=cd.bool), NotImplementedError, "linspace\" not implemented"),
        (lambda: cd.arange(0, 2j), TypeError, r"arange\(\): argument 'end' must be a real number, not complex"),
        (lambda: cd.arange("5"), TypeError, r"arange\(\): argument 'end' must be a real number, not str"),
        (lambda: cd.range(0, 4, "1"), TypeError, r"range\(\): argument 'step' must be a real number, not str"),
        (lambda: cd.linspace(0, 1, 2.5), TypeError, r"linspace\(\): argument 'steps' \(position 3\) must be int"),
        (lambda: cd.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: cd.logspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: cd.arange(3, dtype=cd.bool), NotImplementedError, "\"arange\" not implemented for 'Bool'"),
        (lambda: cd.arange(0, 9, 0.5, dtype=cd.int64), ValueError, "step must be nonzero"),
        (lambda: cd.eye(2.0), TypeError, "must be an int or a tuple of ints, but found float|must be int, not float"),
    ],
)  # fmt: skip
def test_scales_that_are_none_are_refused(make: Any, error: Any, match: str) -> None:
    """Bools, ends with dims, negative counts, and steps truncated to zero are errors."""
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize(
    ("arguments", "dtype", "expected"),
    [
        ((-8.000001, -4.0), "int64", [-8, -7, -6, -5]),
        ((-0.9, 2.1, 2.0), "int32", [0, 2]),
        ((1.0, 5, 2), "int64", [1, 3]),
        ((0.1, 0.75, 0.3), "float64", [0.1, 0.4, 0.7]),
        ((5, 0, -2), "uint8", [5, 3, 1]),
    ],
)
def test_integer_ranges_cut_off_first(arguments: Any, dtype: str, expected: Any) -> None:
    """Start, end and step are converted to integers before the size is computed."""
    made = cd.arange(*arguments, dtype=getattr(cd, dtype))
    assert np.allclose(made.tolist(), expected)
    assert made.dtype is getattr(cd, dtype)


@pytest.mark.parametrize("device", ["lantern", "ember"])
def test_devices_without_float64_have_scales_and_reshapes(device: str, lantern: Any) -> None:
    """Exponents are computed in the widest available dtype, and copies are in C order."""
    assert np.allclose(cd.logspace(0, 2, 3, device=device).tolist(), [1, 10, 100])
    assert cd.arange(6).reshape(2, 3).to(device).t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]
