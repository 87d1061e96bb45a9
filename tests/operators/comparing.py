"""How tests of operators compare: shape, dtype where it is named, and every element, NaN to NaN."""

from __future__ import annotations

from typing import Any

import numpy as np


def same(found: Any, expected: Any, dtype: Any = None) -> None:
    """Equal in shape and in every element."""
    expected = np.asarray(expected)
    assert tuple(found.shape) == expected.shape
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    assert dtype is None or found.dtype is dtype


def close(found: Any, expected: Any, rtol: float = 1e-10, dtype: Any = None) -> None:
    """Equal in shape, and nearly in value."""
    expected = np.asarray(expected)
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=rtol, atol=1e-12)
    assert dtype is None or found.dtype is dtype
