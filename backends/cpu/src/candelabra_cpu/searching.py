"""Binary search."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import is_half


def sorted_place(sequence: Any, values: Any, right: bool) -> Any:
    """The insertion indices of ``values`` by ``numpy.searchsorted``, row by row for batches.

    NaN is inserted at the end.
    """
    search: Any = np.searchsorted
    side = "right" if right else "left"
    if is_half(sequence):
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    indices = np.empty(values.shape, np.int64)
    if not sequence.size or not values.size:
        indices[...] = 0
        return indices
    rows, targets = sequence.reshape(-1, sequence.shape[-1]), np.ascontiguousarray(values)
    targets = targets.reshape(-1) if sequence.ndim == 1 else targets.reshape(len(rows), values.shape[-1])
    out = indices.reshape(targets.shape)

    def search_rows(start: int, stop: int) -> None:
        if sequence.ndim == 1:
            out[start:stop] = search(sequence, targets[start:stop], side)
            return
        for i in range(start, stop):
            out[i] = search(rows[i], targets[i], side)

    parallel_for(len(targets), values.size, search_rows)
    if values.dtype.kind == "f" and not right:
        nan = np.isnan(values)
        if nan.any():
            indices[nan] = sequence.shape[-1]
    return indices


KERNELS: dict[str, Any] = {"sorted_place": numpy_kernel(sorted_place)}
