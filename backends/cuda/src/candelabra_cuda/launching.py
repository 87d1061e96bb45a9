"""Launching a kernel: arguments packed by one ``struct`` call, and one call of the driver."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import TYPE_CHECKING, Any, Final

from candelabra_clike import CUDA, Source

if TYPE_CHECKING:
    from candelabra_cuda.engine import CudaEngine

LETTERS: Final = {"": "Q", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
"""The type of an argument as ``struct`` has it; native alignment is that of a kernel's parameters."""
BLOCK: Final = 256
"""Threads of a block where the source does not say."""
# What cuLaunchKernel's ``extra`` says: here are the arguments, this is their size, that was all. Source: the CUDA
# driver API's documentation of cuLaunchKernel.
POINTER, SIZE, END = 1, 2, 0


def arguments_of(source: Source) -> list[str]:
    """The types of a kernel's arguments, ``""`` for buffers; the true number of work-items comes last."""
    return [*source.types(), *([source.index] if source.group is None and CUDA.rounds_up else [])]


def blocks(count: int | tuple[int, ...], group: int | None) -> tuple[tuple[int, int, int], int]:
    """(blocks along three dims, threads of each) of a launch."""
    if group is None:
        assert isinstance(count, int)
        return (-(-count // BLOCK), 1, 1), BLOCK
    if isinstance(count, int):
        return (count, 1, 1), group
    x, y, z = (*count, 1, 1)[:3]
    return (x, y, z), group


class Kernel:
    """A compiled kernel of one device."""

    def __init__(self, engine: CudaEngine, source: Source, function: int, keep: Any) -> None:
        types = arguments_of(source)
        self.name: Final = source.name
        self._engine: Final = engine
        self._function: Final = function
        self._keep: Final = keep
        self._group: Final = source.group
        self._struct: Final = struct.Struct("".join(LETTERS[type] for type in types))
        self._mine: Final = threading.local()
        self._launch: Final = engine.driver.launchKernel

    def _packing(self) -> tuple[Any, int]:
        """This thread's block of arguments, and the address of what tells the driver of it."""
        block = ctypes.create_string_buffer(max(self._struct.size, 1))
        size = ctypes.c_size_t(self._struct.size)
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(block), SIZE, ctypes.addressof(size), END)
        self._mine.keep = (size, extra)
        self._mine.packing = block, ctypes.addressof(extra)
        return block, ctypes.addressof(extra)

    def __call__(self, count: int | tuple[int, ...], /, *arguments: Any) -> None:
        try:
            block, extra = self._mine.packing
        except AttributeError:
            block, extra = self._packing()
        grid, group = blocks(count, self._group)
        if 0 in grid:
            return
        if self._group is None:
            self._struct.pack_into(block, 0, *arguments, count)
        else:
            self._struct.pack_into(block, 0, *arguments)
        engine = self._engine
        self._launch(self._function, *grid, group, 1, 1, 0, engine.enter(), 0, extra)
        if engine.blocking:
            engine.wait_for(self.name)
