"""Binary search."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet


def sorted_place(sequence: Any, values: Any, right: bool) -> Any:
    """NumPy's search, a row at a time where there are several; a NaN goes to the end."""
    search: Any = np.searchsorted
    side = "right" if right else "left"
    if sequence.dtype.itemsize == 2 and sequence.dtype.kind not in "iu":
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    places = np.empty(values.shape, np.int64)
    if not sequence.size or not values.size:
        places[...] = 0
        return places
    rows, wanted = sequence.reshape(-1, sequence.shape[-1]), np.ascontiguousarray(values)
    wanted = wanted.reshape(-1) if sequence.ndim == 1 else wanted.reshape(len(rows), values.shape[-1])
    into = places.reshape(wanted.shape)

    def part(start: int, stop: int) -> None:
        if sequence.ndim == 1:
            into[start:stop] = search(sequence, wanted[start:stop], side)
            return
        for i in range(start, stop):
            into[i] = search(rows[i], wanted[i], side)

    split(len(wanted), values.size, part)
    if values.dtype.kind == "f" and not right:
        absent = np.isnan(values)
        if absent.any():
            places[absent] = sequence.shape[-1]
    return places


KERNELS: dict[str, Any] = {"sorted_place": quiet(sorted_place)}
