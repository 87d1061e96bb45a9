"""Comparisons for tests of operators: shape, dtype if it is passed, and every element, with NaN equal to NaN."""

from __future__ import annotations

from typing import Any

import numpy as np


def same(actual: Any, expected: Any, dtype: Any = None) -> None:
    """Assert that the shape and every element are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.detach().numpy(), expected)
    assert dtype is None or actual.dtype is dtype


def close(actual: Any, expected: Any, rtol: float = 1e-10, dtype: Any = None) -> None:
    """Assert that the shapes are equal, and the values close."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=rtol, atol=1e-12)
    assert dtype is None or actual.dtype is dtype
