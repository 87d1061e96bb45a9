"""A device's memory: PyOpenCL's pool, what is in use of it, and what happens when there is none left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyopencl as cl
from candelabra.errors import OutOfMemoryError
from pyopencl.tools import ImmediateAllocator, MemoryPool

WEIGHED: Final = 1 << 20
"""Bytes from which on an allocation is held against what the device has. Drivers for processors promise any amount."""


class Memory:
    """The memory of one device. Freed blocks stay in the pool until somebody is short of memory.

    ``relieve`` waits for the device's work, so that memory which that still uses can be given back.
    """

    def __init__(self, place: str, queue: Any, total: int, largest: int, relieve: Callable[[], None]) -> None:
        self.place: Final = place
        self.total: Final = total
        self.largest: Final = largest
        self.peak = 0
        self._relieve: Final = relieve
        self._pool: Final = MemoryPool(ImmediateAllocator(queue))

    def allocate(self, nbytes: int) -> Any:
        """A buffer of at least so many bytes. ``OutOfMemoryError`` where the released pool does not help either."""
        pool = self._pool
        if nbytes > self.largest:
            raise OutOfMemoryError(
                f"{self.place} is out of memory: tried to allocate {_bytes(nbytes)}, and the driver gives at most "
                f"{_bytes(self.largest)} at once"
            )
        try:
            buffer = pool.allocate(nbytes)
        except cl.Error:
            buffer = self._again(nbytes)
        if nbytes >= WEIGHED and pool.managed_bytes > self.total:
            self.release()
            if pool.managed_bytes > self.total:
                del buffer
                self.release()
                raise self._none_left(nbytes)
        active = pool.active_bytes
        if active > self.peak:
            self.peak = active
        return buffer

    def _again(self, nbytes: int) -> Any:
        self.release()
        try:
            return self._pool.allocate(nbytes)
        except cl.Error as error:
            raise self._none_left(nbytes) from error

    def _none_left(self, nbytes: int) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self.place} is out of memory: tried to allocate {_bytes(nbytes)}; {_bytes(self._pool.active_bytes)} of "
            f"{_bytes(self.total)} are in use"
        )

    def release(self) -> None:
        """Give free blocks back to the driver."""
        self._relieve()
        self._pool.free_held()

    def statistics(self, release: bool) -> Mapping[str, int]:
        """``allocated``, ``reserved`` and ``peak`` in bytes, ``blocks`` in use and ``held``; first without free blocks,
        if asked for.
        """
        if release:
            self.release()
        pool = self._pool
        return {
            "allocated": pool.active_bytes,
            "reserved": pool.managed_bytes,
            "peak": self.peak,
            "blocks": pool.active_blocks,
            "held": pool.held_blocks,
        }


def _bytes(count: int) -> str:
    """A number of bytes, readable."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
