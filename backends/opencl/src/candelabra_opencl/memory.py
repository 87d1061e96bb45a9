"""The memory of an OpenCL device: PyOpenCL's pool, statistics, and out-of-memory handling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

import pyopencl as cl
from candelabra.errors import OutOfMemoryError
from pyopencl.tools import ImmediateAllocator, MemoryPool

CHECKED_SIZE: Final = 1 << 20
"""The size from which allocations are compared with the device's memory. CPU drivers promise any amount."""

RESERVE: Final = 64 << 20
"""The memory that is left to the driver itself where the process has a limit."""


class OpenCLMemory:
    """The memory of one device. Freed blocks stay in the pool until memory is exhausted.

    ``synchronize`` waits for the device's work, so that the memory it uses can be released.
    """

    def __init__(
        self,
        device: str,
        queue: Any,
        total: int,
        largest: int,
        synchronize: Callable[[], None],
        *,
        on_host: bool = False,
    ) -> None:
        """``on_host``: the memory is that of this process, whose limit applies."""
        self.device: Final = device
        self._on_host: Final = on_host
        self.total: Final = total
        self.largest: Final = largest
        self.peak = 0
        self._synchronize: Final = synchronize
        self.pool: Final = MemoryPool(ImmediateAllocator(queue))

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes.

        Raises ``OutOfMemoryError`` if releasing the pool does not help.
        """
        pool = self.pool
        if nbytes > self.largest:
            raise OutOfMemoryError(
                f"{self.device} is out of memory: tried to allocate {_bytes(nbytes)}, and the driver allows at most "
                f"{_bytes(self.largest)} at once"
            )
        if nbytes >= CHECKED_SIZE and self._on_host and nbytes > address_space_left():
            self.release()
            if nbytes > address_space_left():
                raise self._out_of_memory(nbytes)
        try:
            buffer = pool.allocate(nbytes)
        except cl.Error:
            buffer = self._retry(nbytes)
        if nbytes >= CHECKED_SIZE and pool.managed_bytes > self.total:
            self.release()
            if pool.managed_bytes > self.total:
                del buffer
                self.release()
                raise self._out_of_memory(nbytes)
        active = pool.active_bytes
        if active > self.peak:
            self.peak = active
        return buffer

    def _retry(self, nbytes: int) -> Any:
        self.release()
        try:
            return self.pool.allocate(nbytes)
        except cl.Error as error:
            raise self._out_of_memory(nbytes) from error

    def _out_of_memory(self, nbytes: int) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self.device} is out of memory: tried to allocate {_bytes(nbytes)}; {_bytes(self.pool.active_bytes)} of "
            f"{_bytes(self.total)} are in use"
        )

    def release(self) -> None:
        """Return free blocks to the driver."""
        self._synchronize()
        self.pool.free_held()

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak = self.pool.active_bytes

    def statistics(self, release: bool) -> Mapping[str, int]:
        """Return ``allocated``, ``reserved`` and ``peak`` in bytes, and the numbers of blocks in use and ``held``.

        With ``release``, free blocks are returned to the driver first.
        """
        if release:
            self.release()
        pool = self.pool
        return {
            "allocated": pool.active_bytes,
            "reserved": pool.managed_bytes,
            "peak": self.peak,
            "blocks": pool.active_blocks,
            "held": pool.held_blocks,
        }


def address_space_left() -> float:
    """Return how much memory this process may still take: infinite without a limit (``ulimit -v``, RLIMIT_AS).

    Drivers for processors allocate a buffer when it is first used, and abort the process if they cannot. They also need
    memory of their own, so a reserve is left.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return inf
    try:
        with open("/proc/self/statm", "rb") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # systems other than Linux
        return inf
    return limit - taken - RESERVE


def _bytes(count: int) -> str:
    """Return a number of bytes with a unit."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
