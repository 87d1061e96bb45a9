"""Launching a kernel: arguments packed by one ``struct`` call, and one call of the driver, in a generated function."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from candelabra_clike import CUDA, Launch, Source

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


_TEMPLATE: Final = """
def bind(mine, packing, pack_into, launch_kernel, function, enter, blocking, wait_for, name, group):
    def launch(count{parameters}):
        try:
            block, extra = mine.packing
        except AttributeError:
            block, extra = packing()
{launching}
        if blocking:
            wait_for(name)
    return launch
"""
_FLAT: Final = """\
        if count <= 0:
            return
        pack_into(block, 0{parameters}, count)
        launch_kernel(function, (count + {most}) // {block}, 1, 1, {block}, 1, 1, 0, enter(), 0, extra)"""
_GROUPED: Final = """\
        x, y, z = (count, 1, 1) if count.__class__ is int else (*count, 1, 1)[:3]
        if not (x and y and z):
            return
        pack_into(block, 0{parameters})
        launch_kernel(function, x, y, z, group, 1, 1, 0, enter(), 0, extra)"""


@lru_cache(None)
def factory(arguments: int, flat: bool) -> Callable[..., Launch]:
    """The function that makes launches of kernels with so many arguments: this is on the path of every call.

    ``flat``: they are launched by the number of work-items, which is one more argument.
    """
    parameters = "".join(f", a{i}" for i in range(arguments))
    launching = (_FLAT if flat else _GROUPED).format(parameters=parameters, block=BLOCK, most=BLOCK - 1)
    space: dict[str, Any] = {}
    text = _TEMPLATE.format(parameters=parameters, launching=launching)
    exec(compile(text, f"<launch of {arguments} arguments>", "exec"), space)
    made: Callable[..., Launch] = space["bind"]
    return made


class Kernel:
    """A compiled kernel of one device. Each thread packs its arguments into a block of its own."""

    def __init__(self, engine: CudaEngine, source: Source, function: int, keep: Any) -> None:
        self._keep: Final = keep
        self._engine: Final = engine
        self._struct: Final = struct.Struct("".join(LETTERS[type] for type in arguments_of(source)))
        self._mine: Final = threading.local()
        bind = factory(len(source.parameters), source.group is None)
        self.launch: Final[Launch] = bind(
            self._mine, self._packing, self._struct.pack_into, engine.driver.launchKernel, function, engine.enter,
            engine.blocking, engine.wait_for, source.name, source.group,
        )  # fmt: skip

    def _packing(self) -> tuple[Any, int]:
        """This thread's block of arguments, and the address of what tells the driver of it.

        A thread that has made no call of the runtime yet has no context, and the driver's calls make none.
        """
        self._engine.runtime.setDevice(self._engine.index)
        block = ctypes.create_string_buffer(max(self._struct.size, 1))
        size = ctypes.c_size_t(self._struct.size)
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(block), SIZE, ctypes.addressof(size), END)
        self._mine.keep = (size, extra)
        self._mine.packing = block, ctypes.addressof(extra)
        return block, ctypes.addressof(extra)
