"""CUDA graphs: a compiled function's launches, captured once and queued by one call of the driver.

The first call of a graph observes which nodes use the host; the others form sections (:mod:`candelabra_cuda.sections`).
The second one runs the sections on a stream of their own, so that everything is loaded and allocated. The third one
captures them, and later calls replay what it captured.

**Memory.** A captured launch reads and writes the addresses of the call that was captured. Sections allocate from a
pool that no other work uses, and their results are copied out. Inputs are read and written where they are; one that
comes at another address than in the call before is copied to a fixed place from then on, unless the graph writes it.
Then the launches have to be captured again. Graphs of one device share the pool: a lock and the order of the stream let
one run after another, and nothing in the pool outlives a call.

Attribution: sections around nodes that need the host, a private pool, copied inputs: PyTorch's CUDA graph trees and
vLLM's piecewise graphs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from candelabra import get_float32_matmul_precision
from candelabra.errors import OutOfMemoryError
from candelabra.graph import Graph, Node, Value, default_kernel, runner
from candelabra_clike import StridedArray
from candelabra_clike.array import extent

from candelabra_cuda.memory import CudaMemoryPool, DeviceMemory
from candelabra_cuda.sections import Section, launches, sections_of

if TYPE_CHECKING:
    from candelabra_cuda.engine import CudaEngine

VARIABLE: Final = "CANDELABRA_CUDA_GRAPHS"
"""The environment variable that turns graphs off: 0."""
MOST_CHANGES: Final = 8
"""How often the addresses of inputs may change before a graph's launches are queued one by one for good."""
BYTES_PER_LAUNCH: Final = 4 << 20
"""The bytes that a device copies while the host queues a launch: 4 µs at 1 TB/s."""
MEMORY_SHARE: Final = 4
"""Graphs of a device may keep a quarter of its memory."""

log: Final = logging.getLogger(__name__)


class GraphMemory:
    """What the captured graphs of a device share: the pool of intermediate results, and a stream to capture on."""

    def __init__(self, engine: CudaEngine) -> None:
        self._engine: Final = engine
        engine.runtime.setDevice(engine.index)
        self.pool: Final = CudaMemoryPool(engine.cupy, repr(engine), engine.enter)
        self.stream: Final = engine.cupy.cuda.Stream(non_blocking=True)
        self.lock: Final = threading.Lock()
        """Held during a call of a graph."""
        self._last: Any = None

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Return memory of the pool. The memory that the device's own pool keeps unused is released before it fails."""
        try:
            return self.pool.allocate(nbytes)
        except OutOfMemoryError:
            self._engine.pool.statistics(release=True)
            return self.pool.allocate(nbytes)

    def owns(self, array: StridedArray) -> bool:
        """Return whether the next call of a graph may overwrite an array."""
        return self.pool.owns(array.buffer)

    def order(self) -> None:
        """Let the current stream wait for the last call, if another stream runs it."""
        stream = self._engine.stream()
        if self._last is not None and self._last != stream:
            stream.wait_event(self._last.record())
        self._last = stream

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Within the block, this thread allocates here, and its current stream is the one to capture on."""
        with self.stream, self._engine.allocating_by(self.allocate):
            yield

    def running(self, run: Callable[..., tuple[Any, ...]], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run a section, on the stream to capture on, in the order of the current stream."""
        stream = self._engine.stream()
        self.stream.wait_event(stream.record())
        with self.serving():
            results = run(*arguments)
        stream.wait_event(self.stream.record())
        return results

    def capture(self, run: Callable[..., tuple[Any, ...]], arguments: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """Return CuPy's graph of the launches of a section, which do not run, and the section's results."""
        with self.serving():
            self.stream.begin_capture()
            try:
                results = run(*arguments)
            except BaseException:
                self._abandon()
                raise
            return self.stream.end_capture(), results

    def _abandon(self) -> None:
        """End a capture that has failed, which CUDA reports again."""
        try:
            self.stream.end_capture()
        except self._engine.runtime.CUDARuntimeError as error:
            log.debug("%r: a capture has failed: %s", self._engine, error)


class Capture:
    """The captured launches of one section. ``reports``: one of them may report an error of values."""

    def __init__(self, graph: Any, results: tuple[Any, ...], reports: bool) -> None:
        self.launch: Final = graph.launch
        self.results: Final = results
        self.reports: Final = reports


class ReplayedGraph:
    """The function of a graph for a CUDA device. It is thread-safe."""

    def __init__(
        self, engine: CudaEngine, graph: Graph, kernel_of: Callable[[Node], Callable[..., Any] | None]
    ) -> None:
        self.engine: Final = engine
        self.graph: Final = graph
        self.kernels: Final = {node: kernel_of(node) or default_kernel(node) for node in graph.nodes}
        self.run: Final = runner(graph, self.kernels.__getitem__)
        self.memory: Final = engine.graph_memory()
        self._arrays: Final = [i for i, value in enumerate(graph.inputs) if value.spec is not None]
        self._strides: Final = [v.spec.strides for v in graph.inputs if v.spec is not None]
        written = graph.written()
        self._movable: Final = {i for i in self._arrays if graph.inputs[i].memory not in written}
        self._host: Final[set[Node]] = set()
        self._shown: Final = _inputs_shown(graph)
        self.single: bool = self._shown is None or engine.blocking
        """Whether the launches are queued one by one."""
        self._changes = 0
        self._addresses: list[int] = []
        self._precision = ""
        self._copied: dict[int, StridedArray | None] = {}
        """The inputs that are copied, by position, and where to."""
        self.sections: list[Section] = []
        self._places: dict[Value, int] = {}
        self._moved: dict[int, StridedArray] = {}
        """The values that are copied between sections, by position, and where to."""
        self._prepared = False
        """Whether the sections have run on their stream."""
        self.captures: dict[Section, Capture] = {}

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        if self.single:
            return self.run(*payloads)
        with self.memory.lock:
            if any(payloads[i].strides != s for i, s in zip(self._arrays, self._strides)):
                return self.run(*payloads)  # a gradient may have other strides than the one that was traced
            self.memory.order()
            if not self._places:
                return self._observe(payloads)
            self._compare(payloads)
            if self._prepared and not self.captures and not self._is_worth_it():
                self._give_up()
            return self.run(*payloads) if self.single else self._pass(payloads)

    # -- the first calls ----------------------------------------------------------------------------------------------
    def _observe(self, payloads: Sequence[Any]) -> tuple[Any, ...]:
        """Run the nodes one by one, and note those that use the host."""
        self.engine.errors.buffer()  # its first use is a copy from the host
        self._note_addresses(payloads)
        results = runner(self.graph, self._observed)(*payloads)
        self._split()
        return results

    def _observed(self, node: Node) -> Callable[..., Any]:
        kernel, engine = self.kernels[node], self.engine

        def call(*arguments: Any) -> Any:
            before = engine.host_calls
            out = kernel(*arguments)
            if engine.host_calls != before or out is NotImplemented:
                self._host.add(node)
            return out

        return call

    def _split(self) -> None:
        """Divide the graph into sections that have not been captured."""
        self.sections, self._places = sections_of(self.graph, self._host, self.kernels)
        self.single = not any(section.captured for section in self.sections)
        self._prepared, self.captures, self._moved = False, {}, {}

    def _is_worth_it(self) -> bool:
        """Return whether replaying saves more than copying inputs and results costs, and the device has the memory."""
        saved = sum(launches(section.graph.nodes) for section in self.sections if section.captured)
        copied = [self.graph.inputs[i] for i in self._copied]
        for section in self.sections:
            copied += [section.graph.inputs[i] for i in section.moving]
        copied += {v.memory: v for v, shown in zip(self.graph.outputs, self._shown or ()) if shown is None}.values()
        nbytes = sum(value.spec.nbytes for value in copied if value.spec is not None)
        kept = self.memory.pool.statistics(release=False)["reserved"]
        return (
            saved > len(copied)
            and nbytes < (saved - len(copied)) * BYTES_PER_LAUNCH
            and kept < self.engine.traits.memory // MEMORY_SHARE
        )

    # -- addresses ----------------------------------------------------------------------------------------------------
    def _note_addresses(self, payloads: Sequence[Any]) -> None:
        self._addresses = [_address(payloads[i]) for i in self._arrays]
        self._precision = get_float32_matmul_precision()

    def _compare(self, payloads: Sequence[Any]) -> None:
        """Forget what was captured if an input that is not copied has moved, or products have another precision."""
        moved = [
            i
            for i, known in zip(self._arrays, self._addresses)
            if i not in self._copied and _address(payloads[i]) != known
        ]
        if not moved and self._precision == get_float32_matmul_precision():
            return
        self._note_addresses(payloads)
        self._copied |= dict.fromkeys(i for i in moved if i in self._movable)
        self._start_again()

    def _start_again(self) -> None:
        self.captures, self._prepared = {}, False
        self._changes += 1
        if self._changes > MOST_CHANGES:
            self._give_up()

    def _give_up(self) -> None:
        """Queue the launches one by one from now on, and release the memory of the captures."""
        self.single = True
        self.captures, self._copied, self._moved = {}, {}, {}

    # -- calls in sections --------------------------------------------------------------------------------------------
    def _pass(self, payloads: Sequence[Any]) -> tuple[Any, ...]:
        """Run the sections: on their stream, captured, or as they were captured."""
        values: list[Any] = [*payloads, *[None] * (len(self._places) - len(payloads))]
        for i in self._copied:
            values[i] = self._copied[i] = self._fixed(payloads[i], self._copied[i])
        failed: list[Node] = []
        for section in self.sections:
            results = self._section(section, values, failed)
            for i, result in zip(section.writes, results):
                values[i] = result
            for i in section.dead:
                values[i] = None
        results = self._outputs(payloads, values)
        self._prepared = True
        if failed:
            self._host.update(failed)
            self._start_again()
            if not self.single:
                self._split()
        return results

    def _section(self, section: Section, values: list[Any], failed: list[Node]) -> tuple[Any, ...]:
        arguments = [values[i] for i in section.reads]
        if not section.captured or failed:
            return section.run(*arguments)
        for i in section.moving:
            position = section.reads[i]
            arguments[i] = self._moved[position] = self._fixed(arguments[i], self._moved.get(position))
        if not self._prepared:
            return self.memory.running(section.run, arguments)
        capture = self.captures.get(section)
        if capture is None:
            try:
                capture = self.captures[section] = self._captured(section, arguments)
            except Exception as error:
                log.debug("%r: launches of %s cannot be captured: %s", self.engine, section.graph, error)
                failed += section.graph.nodes
                return section.run(*arguments)
        capture.launch()
        if capture.reports:
            self.engine.errors.possible = True
        return capture.results

    def _captured(self, section: Section, arguments: Sequence[Any]) -> Capture:
        errors = self.engine.errors
        before, errors.possible = errors.possible, False
        try:
            graph, results = self.memory.capture(section.run, arguments)
            return Capture(graph, results, errors.possible)
        finally:
            errors.possible |= before

    def _fixed(self, array: StridedArray, fixed: StridedArray | None) -> StridedArray:
        """Return a copy of an array at an address that later calls use, too: ``fixed``, or new memory."""
        itemsize = array.dtype.itemsize
        nbytes = extent(array.shape, array.strides) * itemsize
        if fixed is None:
            with self.memory.serving():
                buffer = self.engine.allocate(nbytes or 1)
            fixed = StridedArray(
                self.engine, buffer, array.shape, array.strides, 0, array.dtype, array.size, array.contiguous
            )
        if nbytes:
            self.engine.copy(fixed.buffer, 0, array.buffer, array.offset * itemsize, nbytes)
        return fixed

    # -- results ------------------------------------------------------------------------------------------------------
    def _outputs(self, payloads: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs, of which none is in memory of graphs. Those that share memory share it afterwards."""
        assert self._shown is not None
        copies: dict[int, DeviceMemory] = {}
        results = []
        for value, shown in zip(self.graph.outputs, self._shown):
            if shown is not None:
                results.append(_view_of(payloads[shown], self.graph.inputs[shown], value))
                continue
            array = values[self._places[value]]
            if self.memory.owns(array):
                array = self._copied_out(array, copies)
            results.append(array)
        return tuple(results)

    def _copied_out(self, array: StridedArray, copies: dict[int, DeviceMemory]) -> StridedArray:
        buffer = array.buffer
        if buffer not in copies:
            copies[buffer] = self.engine.allocate(buffer.size)
            self.engine.copy(copies[buffer], 0, buffer, 0, buffer.size)
        return StridedArray(
            self.engine, copies[buffer], array.shape, array.strides, array.offset, array.dtype, array.size,
            array.contiguous,
        )  # fmt: skip


def _address(array: StridedArray) -> int:
    return int(array.buffer) + array.offset * array.dtype.itemsize


def _inputs_shown(graph: Graph) -> list[int | None] | None:
    """Return for each output the position of the input whose memory it shows, or None if it shows none.

    Returns None for graphs whose outputs show an input in another dtype, and for graphs that return numbers.
    """
    positions = {value.memory: i for i, value in reversed([*enumerate(graph.inputs)])}
    found: list[int | None] = []
    for value in graph.outputs:
        position = positions.get(value.memory)
        source = None if position is None else graph.inputs[position].spec
        if value.spec is None or (position is not None and (source is None or source.dtype is not value.spec.dtype)):
            return None
        found.append(position)
    return found


def _view_of(array: StridedArray, source: Value, value: Value) -> StridedArray:
    """Return what an output shows of an input."""
    assert source.spec is not None
    assert value.spec is not None
    return array.restrided(value.spec.shape, value.spec.strides, array.offset + value.spec.offset - source.spec.offset)


__all__ = ["GraphMemory", "ReplayedGraph"]
