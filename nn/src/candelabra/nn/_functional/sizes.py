"""Sizes per spatial dim, as convolutions and pools are given them."""

from __future__ import annotations

from candelabra.typing import Any

Ints = tuple[int, ...]


def per_dim(value: Any, rank: int) -> Ints | None:
    """One int per spatial dim, of an int, or of one or ``rank`` ints; None of anything else."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * rank
        if len(value) == rank:
            return tuple([int(v) for v in value])
    elif hasattr(value, "__index__"):
        return (value.__index__(),) * rank
    return None
