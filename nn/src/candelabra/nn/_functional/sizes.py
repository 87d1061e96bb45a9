"""Sizes per spatial dim: the arguments of convolutions and pooling."""

from __future__ import annotations

from candelabra.typing import Any, Sequence

Ints = tuple[int, ...]
Sizes = int | Sequence[int]
"""One size for all spatial dims, or one for each."""


def per_dim(value: Any, rank: int) -> Ints | None:
    """Return one int per spatial dim from an int, or from one or ``rank`` ints; None for anything else."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * rank
        if len(value) == rank:
            return tuple([int(v) for v in value])
    elif hasattr(value, "__index__"):
        return (value.__index__(),) * rank
    return None
