"""Subscripts: NumPy's, with ints applied before index arrays, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("Tensor.__getitem__", as_given=True)
def read(x: Array, index: Any) -> Array:
    """NumPy's."""
    ints, rest = in_steps(index)
    return np.asarray(x[ints][rest])


def in_steps(index: Any) -> tuple[Any, Any]:
    """An index as two, to be applied one after the other: that of the ints, and that of all else.

    An empty list stands for no ints.
    """
    if isinstance(index, list) and not index:
        return (), np.zeros(0, np.int64)
    if not isinstance(index, tuple) or not any(isinstance(item, np.ndarray) for item in index):
        return (), index
    ints: list[Any] = []
    for item in index:
        if isinstance(item, np.ndarray):
            ints += [slice(None)] * (item.ndim if item.dtype == bool else 1)
        elif item is Ellipsis or is_int(item):
            ints.append(item)
        elif isinstance(item, slice):
            ints.append(slice(None))
    return tuple(ints), tuple(item for item in index if not is_int(item))


def is_int(item: Any) -> bool:
    """Whether part of an index selects one slice of a dim."""
    return isinstance(item, int) and not isinstance(item, bool)
