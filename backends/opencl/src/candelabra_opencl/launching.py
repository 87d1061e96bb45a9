"""Kernel launches: a generated function per kernel, which sets the arguments and queues the kernel.

Every call on a device takes this path, so the function is generated for the types of the arguments: PyOpenCL sets all
numbers in one call, and all buffers in another. OpenCL stores the arguments in the kernel object, so every thread has
its own object.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

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
"""The types of numbers in the notation of :mod:`struct` and PyOpenCL."""
GROUP_SIZE: Final = 256
"""The work-group size on GPUs for sources without ``group``."""
ENQUEUE: Final[Any] = _cl.enqueue_nd_range_kernel

_TEMPLATE: Final = """
def bind(
    streams, default, thread, thread_kernel, work_size, enqueue_on_stream, on_error, enqueue, Error, pack, local, group
):
    def launch(count{parameters}):
        try:
            kernel = thread.kernel
        except AttributeError:
            kernel = thread_kernel()
        try:
{setting}
            if count.__class__ is int:
                if count > 0:
                    if streams.single:
                        enqueue(default, kernel, ({size},), local, None, None, False, False)
                    else:
                        enqueue_on_stream(kernel, ({size},), local, ({buffers}))
            else:
                size, shape = work_size(count)
                if size:
                    enqueue_on_stream(kernel, size, shape, ({buffers}))
        except Error as error:
            on_error(error, count{parameters})
    return launch
"""


@lru_cache(None)
def factory(types: tuple[str, ...], counted: str) -> Callable[..., Launch]:
    """Return a function that binds launches of kernels with these argument types; ``""`` is a buffer.

    With ``counted``, the number of work-items is passed as one more argument of that type, and whole work-groups are
    launched.
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
    bind: Callable[..., Launch] = space["bind"]
    return bind


_PREPARED: Final = """
def bind(streams, default, thread, thread_kernel, enqueue_on_stream, on_error, enqueue, Error, size, local):
    def launch({names}):
        try:
            kernel = thread.kernel
        except AttributeError:
            kernel = thread_kernel()
        try:
            kernel._set_arg_multi(({pairs}))
            if streams.single:
                enqueue(default, kernel, size, local, None, None, False, False)
            else:
                enqueue_on_stream(kernel, size, local, ({names}))
        except Error as error:
            on_error(error, {names})
    return launch
"""


@lru_cache(None)
def prepared_factory(positions: tuple[int, ...]) -> Callable[..., Launch]:
    """Return a function that binds prepared launches whose buffers are the arguments at these positions."""
    names = "".join(f"a{i}, " for i in positions)
    pairs = "".join(f"{i}, a{i}, " for i in positions)
    space: dict[str, Any] = {}
    exec(compile(_PREPARED.format(names=names, pairs=pairs), "<prepared launch>", "exec"), space)
    bind: Callable[..., Launch] = space["bind"]
    return bind


class OpenCLKernel:
    """A built kernel of one device."""

    def __init__(self, engine: OpenCLEngine, source: Source, program: Any) -> None:
        self.engine: Final = engine
        self.name: Final = source.name
        self.program: Final = program
        self._thread: Final = threading.local()
        self._prepared: Final[WeakSet[threading.local]] = WeakSet()
        self._types: Final = tuple(source.types())
        self._counted: Final = "" if source.group else source.index
        self.group: Final = source.group or self._group_size()
        bind = factory(self._types, self._counted)
        streams = engine.streams
        self.launch: Final[Launch] = bind(
            streams, streams.default.queue, self._thread, self._thread_kernel, self._work_size, self._enqueue_on_stream,
            self._on_error, ENQUEUE, cl.Error, struct.pack, (self.group,), self.group,
        )  # fmt: skip

    def _group_size(self) -> int:
        kernel = _cl.Kernel(self.program, self.name)
        most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, self.engine.device)
        return min(GROUP_SIZE, int(most))

    def forget_thread(self) -> None:
        """Make the next launch in this thread take the path without a kernel object, which checks for a fork."""
        for thread in (self._thread, *self._prepared):
            thread.__dict__.clear()

    def _thread_kernel(self) -> Any:
        if self.engine.forked:
            self.engine.synchronize()  # it raises
        self._thread.kernel = kernel = _cl.Kernel(self.program, self.name)
        return kernel

    def prepared(self, count: int | tuple[int, ...], arguments: Sequence[Any]) -> Callable[..., None] | None:
        """Return a function of the buffers among the arguments of a launch; None if there are no work-items.

        The numbers are set once, in kernel objects of their own, one for each thread.
        """
        size, local = self._work_size(count) if isinstance(count, tuple) else self._sizes(count)
        if 0 in (size or (0,)):
            return None
        places = tuple([i for i, type in enumerate(self._types) if not type])
        numbers = [(i, CODES[type], arguments[i]) for i, type in enumerate(self._types) if type]
        if self._counted:
            numbers.append((len(self._types), CODES[self._counted], count))
        packed = tuple([each for i, code, number in numbers for each in (i, struct.pack(code, number))])
        thread = threading.local()
        self._prepared.add(thread)

        def thread_kernel() -> Any:
            if self.engine.forked:
                self.engine.synchronize()  # it raises
            kernel: Any = _cl.Kernel(self.program, self.name)
            thread.kernel = kernel
            if packed:
                kernel._set_arg_buf_multi(packed)
            return kernel

        def on_error(error: Exception, *buffers: Any) -> None:
            given = iter(buffers)
            whole = [number if type else next(given) for type, number in zip(self._types, arguments)]
            self._on_error(error, count, *whole)

        streams = self.engine.streams
        return prepared_factory(places)(
            streams, streams.default.queue, thread, thread_kernel, self._enqueue_on_stream, on_error, ENQUEUE, cl.Error,
            size, local,
        )  # fmt: skip

    def _sizes(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the number of work-items and the work-group size of a launch in one dim."""
        return (-(-count // self.group) * self.group if self._counted else count * self.group,), (self.group,)

    def _work_size(self, groups: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of work-items and the work-group size in several dims; empty if a count is 0."""
        if 0 in groups:
            return (), ()
        return (groups[0] * self.group, *groups[1:]), (self.group,) + (1,) * (len(groups) - 1)

    def _enqueue_on_stream(
        self, kernel: Any, size: Sequence[int], local: Sequence[int], buffers: tuple[Any, ...]
    ) -> None:
        """Queue the kernel on the thread's current stream, which keeps the memory until the kernel is complete."""
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

    def _on_error(self, error: Exception, count: Any, *arguments: Any) -> None:
        """Handle a launch that failed.

        If memory was missing, release the pool and launch again; otherwise raise an error.
        """
        if isinstance(error, cl.MemoryError) and not getattr(self._thread, "again", False):
            self.engine.memory.release()
            self._thread.again = True
            try:
                self.launch(count, *arguments)
            finally:
                self._thread.again = False
            return
        kind = OutOfMemoryError if isinstance(error, cl.MemoryError) else RuntimeError
        raise kind(f"{self.engine}: {self.name!r} could not be launched: {error}") from error
