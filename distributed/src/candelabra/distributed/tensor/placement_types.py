"""How the ranks of a mesh dim have a tensor: each a part, each the whole, or each a term of a sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """One of the placements below."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether each rank has a part, along ``dim`` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each rank has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Return whether each rank has a term of a sum."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along a dim. Parts are those of ``chunk``: equal, except the last ones."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a term; the tensor is the sum of all."""

    reduce_op: str = "sum"


def bounds(size: int, ranks: int, index: int) -> tuple[int, int]:
    """Return where a part begins and ends along a sharded dim."""
    width = -(-size // ranks)
    low = min(index * width, size)
    return low, min(low + width, size)


def __dir__() -> list[str]:
    return sorted(__all__)
