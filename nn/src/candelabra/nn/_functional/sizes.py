"""Sizes per spatial dim: the arguments of convolutions and pooling."""

from __future__ import annotations

from operator import index

from candelabra.typing import Any, Sequence

Ints = tuple[int, ...]
Sizes = int | Sequence[int]
"""One size for all spatial dims, or one for each."""


def per_dim(value: Any, rank: int) -> Ints | None:
    """Return one int per spatial dim from an int, or from one or ``rank`` ints; None for anything else."""
    if type(value) is int:
        return (value,) * rank
    values = value if isinstance(value, (tuple, list)) else (value,)
    for v in values:
        if type(v) is not int and (isinstance(v, bool) or not hasattr(v, "__index__")):
            return None
    if len(values) == 1:
        return (index(values[0]),) * rank
    return tuple(map(index, values)) if len(values) == rank else None
