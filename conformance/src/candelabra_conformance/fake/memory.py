"""Memory of a fake device: the poison that it contains initially, its capacity, and failing allocations."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from candelabra.dtypes import dtype
from candelabra.errors import OutOfMemoryError

Failing = Callable[[int, int], bool]
"""A predicate that selects the allocations to refuse, from the number on the device, starting at 1, and the size in
bytes."""

_QUIET_NANS: Final = {
    "float16": (0x7EA5, 2),
    "bfloat16": (0x7FE5, 2),
    "float32": (0x7FE5A5A5, 4),
    "float64": (0x7FFDA5A5A5A5A5A5, 8),
    "complex64": (0x7FE5A5A5, 4),
    "complex128": (0x7FFDA5A5A5A5A5A5, 8),
}


def poison(d: dtype) -> bytes:
    """Return one element of uninitialised memory: a NaN with a payload, an integer of bytes 0xA5, or ``True``.

    ``True`` is valid for a bool; the integers are outside the range of valid indices.
    """
    if d.name == "bool":
        return b"\x01"
    if d.name not in _QUIET_NANS:
        return b"\xa5" * d.itemsize
    bits, size = _QUIET_NANS[d.name]
    return bits.to_bytes(size, sys.byteorder) * (d.itemsize // size)


def after(count: int) -> Failing:
    """Return a predicate that refuses the allocation after ``count`` others, once."""
    return lambda number, nbytes: number == count + 1


def every(nth: int) -> Failing:
    """Return a predicate that refuses each ``nth`` allocation."""
    return lambda number, nbytes: number % nth == 0


def larger_than(limit: int) -> Failing:
    """Return a predicate that refuses allocations of more than ``limit`` bytes."""
    return lambda number, nbytes: nbytes > limit


class Ledger:
    """The allocated bytes of one device. ``reserved`` is the size of a memory pool: the peak since it was last
    released."""

    def __init__(self, device_name: str, lock: threading.RLock, capacity: int | None, failing: Failing | None) -> None:
        self.device_name: Final = device_name
        self.capacity: Final = capacity
        self.failing = failing
        """It may be set at any time. Numbers count from the device's first allocation."""
        self.allocated = self.reserved = self.peak = self.number = 0
        self._lock: Final = lock
        self._freed: Final[deque[int]] = deque()

    def take(self, nbytes: int, relieve: Callable[[], None]) -> None:
        """Charge an allocation. If memory is exhausted, call ``relieve`` once before failing.

        Raises ``OutOfMemoryError``, without charging the allocation.
        """
        with self._lock:
            self.number += 1
            if self.failing is not None and self.failing(self.number, nbytes):
                raise OutOfMemoryError(f"{self.device_name} refused allocation number {self.number}, of {nbytes} bytes")
            self._settle()
            if not self._fits(nbytes):
                relieve()
                self._settle()
            if not self._fits(nbytes):
                raise OutOfMemoryError(
                    f"{self.device_name} is out of memory: tried to allocate {nbytes} bytes, {self.allocated} of "
                    f"{self.capacity} are in use"
                )
            self.allocated += nbytes
            self.peak = max(self.peak, self.allocated)
            self.reserved = max(self.reserved, self.allocated)

    def _fits(self, nbytes: int) -> bool:
        return self.capacity is None or self.allocated + nbytes <= self.capacity

    def give(self, nbytes: int) -> None:
        """Record that an allocation was freed. The method takes no lock, since finalizers call it."""
        self._freed.append(nbytes)

    def _settle(self) -> None:
        while self._freed:
            self.allocated -= self._freed.popleft()

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        with self._lock:
            self._settle()
            self.peak = self.allocated

    def statistics(self, release: bool) -> Mapping[str, int]:
        """Return ``allocated``, ``reserved`` and ``peak`` in bytes, and ``allocations``, the number of allocations.

        ``release`` is that of the contract's ``memory``.
        """
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
