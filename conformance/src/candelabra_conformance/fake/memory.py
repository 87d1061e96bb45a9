"""Memory of a fake device: what it is filled with before it is written, how much there is, and when it runs out."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from candelabra.dtypes import dtype
from candelabra.errors import OutOfMemoryError

Failing = Callable[[int, int], bool]
"""Whether an allocation is refused: given its number on its device, from 1, and its size in bytes."""

_QUIET_NANS: Final = {
    "float16": (0x7EA5, 2),
    "bfloat16": (0x7FE5, 2),
    "float32": (0x7FE5A5A5, 4),
    "float64": (0x7FFDA5A5A5A5A5A5, 8),
    "complex64": (0x7FE5A5A5, 4),
    "complex128": (0x7FFDA5A5A5A5A5A5, 8),
}


def poison(d: dtype) -> bytes:
    """One element of memory that nobody has written: a NaN with a payload, an integer of bytes 0xA5, ``True``.

    True is what a bool can be without breaking its type; the integers are far from every valid index.
    """
    if d.name == "bool":
        return b"\x01"
    if d.name not in _QUIET_NANS:
        return b"\xa5" * d.itemsize
    bits, size = _QUIET_NANS[d.name]
    return bits.to_bytes(size, sys.byteorder) * (d.itemsize // size)


def after(count: int) -> Failing:
    """``count`` allocations succeed, the next one fails, all later ones succeed."""
    return lambda number, nbytes: number == count + 1


def every(nth: int) -> Failing:
    """Each ``nth`` allocation fails."""
    return lambda number, nbytes: number % nth == 0


def larger_than(limit: int) -> Failing:
    """Allocations of more than ``limit`` bytes fail."""
    return lambda number, nbytes: nbytes > limit


class Ledger:
    """Bytes of one device. ``reserved`` is what a pool would hold: the most so far, until it is asked to release."""

    def __init__(self, place: str, lock: threading.RLock, capacity: int | None, failing: Failing | None) -> None:
        self.place: Final = place
        self.capacity: Final = capacity
        self.failing = failing
        """May be set at any time; numbers count from the device's first allocation."""
        self.allocated = self.reserved = self.peak = self.number = 0
        self._lock: Final = lock
        self._freed: Final[deque[int]] = deque()

    def take(self, nbytes: int, relieve: Callable[[], None]) -> None:
        """Charge an allocation. Where there is no room, ``relieve`` is called once before giving up.

        Raises ``OutOfMemoryError``; nothing is charged then.
        """
        with self._lock:
            self.number += 1
            if self.failing is not None and self.failing(self.number, nbytes):
                raise OutOfMemoryError(f"{self.place} refused allocation number {self.number}, of {nbytes} bytes")
            self._settle()
            if not self._fits(nbytes):
                relieve()
                self._settle()
            if not self._fits(nbytes):
                raise OutOfMemoryError(
                    f"{self.place} is out of memory: tried to allocate {nbytes} bytes, {self.allocated} of "
                    f"{self.capacity} are in use"
                )
            self.allocated += nbytes
            self.peak = max(self.peak, self.allocated)
            self.reserved = max(self.reserved, self.allocated)

    def _fits(self, nbytes: int) -> bool:
        return self.capacity is None or self.allocated + nbytes <= self.capacity

    def give(self, nbytes: int) -> None:
        """Note that an allocation is gone. Takes no lock: finalizers call it."""
        self._freed.append(nbytes)

    def _settle(self) -> None:
        while self._freed:
            self.allocated -= self._freed.popleft()

    def statistics(self, release: bool) -> Mapping[str, int]:
        """``allocated``, ``reserved``, ``peak`` in bytes, and ``allocations``, their number; ``release`` as in the
        contract's ``memory``."""
        with self._lock:
            self._settle()
            if release:
                self.reserved = self.allocated
            return {
                "allocated": self.allocated,
                "reserved": self.reserved,
                "peak": self.peak,
                "allocations": self.number,
            }
