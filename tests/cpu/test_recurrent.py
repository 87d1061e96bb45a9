"""Kernels of recurrent networks: shapes that NumPy would broadcast, saturated gates."""

from __future__ import annotations

import numpy as np
import pytest
from candelabra_cpu import recurrent


def test_kernels_refuse_shapes_that_numpy_would_broadcast() -> None:
    """The error of the kernel lets the operator's rule describe what is wrong."""
    x, h, w = np.zeros((4, 8), np.float32), np.zeros((2, 2), np.float32), np.zeros((8, 2), np.float32)
    with pytest.raises(ValueError, match=r"expected shape \(2, 2\), got \(1, 2\)"):
        recurrent.lstm_sequence(x, h[:1], h, w, None, None, (2, 2), False)
    with pytest.raises(ValueError, match=r"batch sizes \(1, 3\) do not match 4 rows"):
        recurrent.gru_sequence(x[:, :6], h[:1], w[:6], None, (1, 3), False)
    with pytest.raises(ValueError, match="3 hidden values of 2 cells need a projection"):
        recurrent.lstm_sequence(x, np.zeros((2, 3)), h, np.zeros((8, 3)), None, None, (2, 2), False)


def test_saturated_gates_are_exactly_zero_or_one() -> None:
    """Sums beyond the range of the exponential function give no NaN and no warning."""
    sums = np.repeat(np.array([[-1e4, 1e4]], np.float32), 4, 1).repeat(2, 0)
    kernel = recurrent.KERNELS["lstm_sequence"]
    zero = np.zeros((1, 2), np.float32)
    hidden, cells, gates = kernel(sums, zero, zero, np.zeros((8, 2), np.float32), None, None, (1, 1), False)
    assert set(np.unique(gates)) <= {-1.0, 0.0, 1.0}
    assert np.isfinite(hidden).all()
    assert np.isfinite(cells).all()
