"""Binary search."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet


def sorted_place(sequence: Any, values: Any, right: bool) -> Any:
    """NumPy's search, a row at a time where there are several; a NaN goes to the end."""
    side = "right" if right else "left"
    if sequence.dtype.itemsize == 2 and sequence.dtype.kind not in "iu":
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    places = np.empty(values.shape, np.int64)
    if sequence.ndim == 1:
        flat, into = np.ascontiguousarray(values).reshape(-1), places.reshape(-1)

        def part(start: int, stop: int) -> None:
            into[start:stop] = np.searchsorted(sequence, flat[start:stop], side)

        split(flat.size, flat.size, part)
    else:
        rows = sequence.reshape(-1, sequence.shape[-1]) if sequence.size else np.empty((0, 0))
        wanted, into = values.reshape(-1, values.shape[-1]) if values.size else (), places.reshape(-1)
        into = places.reshape(len(wanted), values.shape[-1])

        def rowwise(start: int, stop: int) -> None:
            for i in range(start, stop):
                into[i] = np.searchsorted(rows[i], wanted[i], side) if sequence.size else 0

        split(len(wanted), values.size, rowwise)
    if values.dtype.kind == "f" and not right:
        absent = np.isnan(values)
        if absent.any():
            places[absent] = sequence.shape[-1]
    return places


KERNELS: dict[str, Any] = {"sorted_place": quiet(sorted_place)}
