"""Launches: a function for each kernel, which does nothing but set its arguments and queue it.

This is the path of every call on a device, so the function is generated for the types of the arguments: PyOpenCL takes
typed numbers in one call, and buffers in another. OpenCL keeps a kernel's arguments in the kernel, so every thread has
a kernel of its own.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyopencl as cl
from candelabra.errors import OutOfMemoryError
from candelabra_clike import Launch, Source
from pyopencl import _cl

if TYPE_CHECKING:
    from candelabra_opencl.engine import OpenCLEngine

LONG: Final = struct.calcsize("l") == 8
CODES: Final = {
    "i32": "i",
    "u32": "I",
    "i64": "l" if LONG else "q",
    "u64": "L" if LONG else "Q",
    "f32": "f",
    "f64": "d",
}
"""The types of numbers, as :mod:`struct` and PyOpenCL name them."""
WIDTH: Final = 256
"""Work-items of a work-group on GPUs, for sources that leave it to the engine."""
ENQUEUE: Final[Any] = _cl.enqueue_nd_range_kernel

_TEMPLATE: Final = """
def bind(streams, default, mine, of_this_thread, spread, streamed, failed, enqueue, Error, pack, local, group):
    def launch(count{parameters}):
        try:
            kernel = mine.kernel
        except AttributeError:
            kernel = of_this_thread()
        try:
{setting}
            if count.__class__ is int:
                if count > 0:
                    if streams.single:
                        enqueue(default, kernel, ({size},), local, None, None, False, False)
                    else:
                        streamed(kernel, ({size},), local, ({buffers}))
            else:
                size, shape = spread(count)
                if size:
                    streamed(kernel, size, shape, ({buffers}))
        except Error as error:
            failed(error, count{parameters})
    return launch
"""


@lru_cache(None)
def factory(types: tuple[str, ...], counted: str) -> Callable[..., Launch]:
    """The function that makes launches of kernels with these arguments; ``""`` is a buffer.

    ``counted``: the true number of work-items is one more argument, of that type, and whole work-groups are launched.
    """
    names = [f"a{i}" for i in range(len(types))]
    buffers = "".join(f"{i}, {n}, " for i, (n, t) in enumerate(zip(names, types)) if not t)
    numbers = [(i, CODES[t], n) for i, (n, t) in enumerate(zip(names, types)) if t]
    if counted:
        numbers.append((len(types), CODES[counted], "count"))
    packed = "".join(f"{i}, {code.encode()!r}, {n}, " for i, code, n in numbers if code not in "qQ")
    long = "".join(f"{i}, pack({code!r}, {n}), " for i, code, n in numbers if code in "qQ")
    setting = [
        f"            kernel._set_arg{kind}_multi(({arguments}))"
        for kind, arguments in (("", buffers), ("_buf_pack", packed), ("_buf", long))
        if arguments
    ]
    text = _TEMPLATE.format(
        parameters="".join(f", {n}" for n in names),
        setting="\n".join(setting) or "            pass",
        size="-(-count // group) * group" if counted else "count * group",
        buffers="".join(f"{n}, " for n, t in zip(names, types) if not t),
    )
    space: dict[str, Any] = {}
    exec(compile(text, f"<launch of {types}>", "exec"), space)
    made: Callable[..., Launch] = space["bind"]
    return made


class Kernel:
    """A built kernel of one device, and what its launches need on the rarer paths."""

    def __init__(self, engine: OpenCLEngine, source: Source, program: Any) -> None:
        self.engine: Final = engine
        self.name: Final = source.name
        self.program: Final = program
        self._mine: Final = threading.local()
        self.group: Final = source.group or self._width()
        bind = factory(tuple(source.types()), "" if source.group else source.index)
        streams = engine.streams
        self.launch: Final[Launch] = bind(
            streams, streams.default.queue, self._mine, self._of_this_thread, self._spread, self._streamed,
            self._failed, ENQUEUE, cl.Error, struct.pack, (self.group,), self.group,
        )  # fmt: skip

    def _width(self) -> int:
        kernel = _cl.Kernel(self.program, self.name)
        most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, self.engine.device)
        return min(WIDTH, int(most))

    def _of_this_thread(self) -> Any:
        self._mine.kernel = kernel = _cl.Kernel(self.program, self.name)
        return kernel

    def _spread(self, groups: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The work-items and the work-group of several dims; no work-items where one of them is 0."""
        if 0 in groups:
            return (), ()
        return (groups[0] * self.group, *groups[1:]), (self.group,) + (1,) * (len(groups) - 1)

    def _streamed(self, kernel: Any, size: Sequence[int], local: Sequence[int], buffers: tuple[Any, ...]) -> None:
        """Queue on the thread's current stream, which keeps the memory until that is done."""
        streams = self.engine.streams
        stream = streams.current()
        event = ENQUEUE(stream.queue, kernel, size, local, None, None, False, False)
        if self.engine.blocking:
            try:
                event.wait()
            except cl.Error as error:
                raise RuntimeError(f"{self.engine}: {self.name!r} failed: {error}") from error
        if not streams.single:
            stream.keep(event, buffers)

    def _failed(self, error: Exception, count: Any, *arguments: Any) -> None:
        """Nothing was queued. For want of memory: once more with what the pool has to give; else say which kernel."""
        if isinstance(error, cl.MemoryError) and not getattr(self._mine, "again", False):
            self.engine.memory.release()
            self._mine.again = True
            try:
                self.launch(count, *arguments)
            finally:
                self._mine.again = False
            return
        kind = OutOfMemoryError if isinstance(error, cl.MemoryError) else RuntimeError
        raise kind(f"{self.engine}: {self.name!r} could not be launched: {error}") from error
