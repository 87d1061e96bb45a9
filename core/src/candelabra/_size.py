"""The shape of a tensor in the public interface."""

from __future__ import annotations

from candelabra._annotations import Any, Final

newaxis: Final = None
"""``x[:, newaxis]`` inserts a dim of size 1."""


class Size(tuple[int, ...]):
    """A shape: a tuple of ints with ``numel()``."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"candelabra.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, other: Any) -> Size:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__
