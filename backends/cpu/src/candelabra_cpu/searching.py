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
    if is_half(sequence):
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    indices = np.zeros(values.shape, np.int64)
    for row in np.ndindex(sequence.shape[:-1]):
        indices[row] = np.searchsorted(sequence[row], values[row], side)
    indices[np.isnan(values)] = sequence.shape[-1]
    return indices


KERNELS: dict[str, Any] = {"sorted_place": numpy_kernel(sorted_place)}
