"""Binary search."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import is_half


def sorted_place(sequence: Any, values: Any, right: bool) -> Any:
    """The insertion indices of ``values`` by ``numpy.searchsorted``, row by row for batches.

    NaN is inserted at the end.
    """
    side: Any = "right" if right else "left"
    size = sequence.shape[-1]
    if is_half(sequence):
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    if sequence.ndim == 1:
        indices = np.asarray(np.searchsorted(sequence, values, side), np.int64)
    else:
        rows = zip(sequence.reshape(-1, size), values.reshape(-1, values.shape[-1]))
        found = [np.searchsorted(row, targets, side) for row, targets in rows] if values.size and size else []
        indices = np.array(found, np.int64).reshape(values.shape) if found else np.zeros(values.shape, np.int64)
    indices[np.isnan(values)] = size
    return indices


KERNELS: dict[str, Any] = {"sorted_place": numpy_kernel(sorted_place)}
