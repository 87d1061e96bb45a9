"""Kernel launches: a generated function that packs all arguments by one ``struct`` call and calls the driver."""

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

STRUCT_CODES: Final = {"": "Q", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
"""The ``struct`` code of each argument type. Native alignment is that of kernel parameters."""
BLOCK_SIZE: Final = 256
"""The number of threads per block for sources without ``group``."""
# The tags of cuLaunchKernel's ``extra``: pointer to the arguments, their size, end. Source: the documentation of
# cuLaunchKernel in the CUDA driver API.
POINTER, SIZE, END = 1, 2, 0


def arguments_of(source: Source) -> list[str]:
    """Return the types of a kernel's arguments, ``""`` for buffers. The number of work-items comes last."""
    return [*source.types(), *([source.index] if source.group is None and CUDA.rounds_up else [])]


def blocks(count: int | tuple[int, ...], group: int | None) -> tuple[tuple[int, int, int], int]:
    """Return (blocks along three dims, threads per block) of a launch."""
    if group is None:
        assert isinstance(count, int)
        return (-(-count // BLOCK_SIZE), 1, 1), BLOCK_SIZE
    if isinstance(count, int):
        return (count, 1, 1), group
    x, y, z = (*count, 1, 1)[:3]
    return (x, y, z), group


_TEMPLATE: Final = """
def bind(thread, argument_block, pack_into, launch_kernel, function, enter, blocking, wait_for, name, group):
    def launch(count{parameters}):
        try:
            block, extra = thread.argument_block
        except AttributeError:
            block, extra = argument_block()
{launching}
        if blocking:
            wait_for(name)
    return launch
"""
_COUNTED: Final = """\
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
def factory(arguments: int, counted: bool) -> Callable[..., Launch]:
    """Return a function that binds launches of kernels with this number of arguments. Every call takes this path.

    With ``counted``, a launch specifies the number of work-items, which is one more argument.
    """
    parameters = "".join(f", a{i}" for i in range(arguments))
    launching = (_COUNTED if counted else _GROUPED).format(parameters=parameters, block=BLOCK_SIZE, most=BLOCK_SIZE - 1)
    space: dict[str, Any] = {}
    text = _TEMPLATE.format(parameters=parameters, launching=launching)
    exec(compile(text, f"<launch of {arguments} arguments>", "exec"), space)
    bind: Callable[..., Launch] = space["bind"]
    return bind


class CudaKernel:
    """A compiled kernel of one device. Each thread packs its arguments into a block of its own."""

    def __init__(self, engine: CudaEngine, source: Source, function: int, keep: Any) -> None:
        self._keep: Final = keep
        self._engine: Final = engine
        self._struct: Final = struct.Struct("".join(STRUCT_CODES[type] for type in arguments_of(source)))
        self._thread: Final = threading.local()
        bind = factory(len(source.parameters), source.group is None)
        self.launch: Final[Launch] = bind(
            self._thread, self._argument_block, self._struct.pack_into, engine.driver.launchKernel, function,
            engine.enter, engine.blocking, engine.wait_for, source.name, source.group,
        )  # fmt: skip

    def _argument_block(self) -> tuple[Any, int]:
        """Create this thread's argument block, and return it with the address of cuLaunchKernel's ``extra``.

        A thread has no context before its first call of the runtime, and calls of the driver do not create one.
        """
        self._engine.runtime.setDevice(self._engine.index)
        block = ctypes.create_string_buffer(max(self._struct.size, 1))
        size = ctypes.c_size_t(self._struct.size)
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(block), SIZE, ctypes.addressof(size), END)
        self._thread.keep = (size, extra)
        self._thread.argument_block = block, ctypes.addressof(extra)
        return block, ctypes.addressof(extra)
