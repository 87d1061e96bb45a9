"""The number of elements from which a native kernel is faster than NumPy, by operator."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = 1 << 14


def threshold(name: str) -> int | None:
    """Return the least size that a native kernel serves, or None if it serves none."""
    return DEFAULT
