"""Recorded launches: what a kernel does for arrays of certain layouts, noted when a graph is compiled.

The kernels of this package choose forms, divide work and compute strides in Python, at every call. None of that depends
on the elements, so a node of a graph needs it once. :class:`RecordingEngine` is a device without memory: it notes which
blocks a kernel allocates and what it launches. A device generates a function from the notes that allocates the same
blocks and launches the same kernels, so that its results have the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph, Node
from candelabra.graph import Value as Tensor

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.fusion.compiling import FusedKernel
from candelabra_clike.source import Source


class NotRecordable(Exception):
    """A kernel that needs elements, or numbers of the call."""


class RecordedBlock:
    """Stands for a block of memory: an argument of the node, if it has a ``name``, or one that a kernel allocates."""

    def __init__(self, nbytes: int, name: str = "") -> None:
        self.nbytes: Final = nbytes
        self.name = name


class LaunchRecording(threading.local):
    """The notes of this thread, in order: allocated blocks, and launches with their arguments."""

    def __init__(self) -> None:
        self.steps: list[Any] = []


RECORDING: Final = LaunchRecording()


class RecordingEngine(Engine):
    """A device without memory, whose kernels note their launches.

    ``compile`` returns what a note names for the kernel of a source. Where buffers are passed without an offset,
    ``offsets`` is False: an array begins at its block.
    """

    offsets = True

    def __init__(self, engine: Engine, compile: Callable[[Source], Any]) -> None:
        self.index, self.traits = engine.index, engine.traits
        self._compile: Final = compile
        self._launches: Final[dict[Source, Callable[..., None]]] = {}

    def allocate(self, nbytes: int) -> RecordedBlock:
        block = RecordedBlock(nbytes)
        RECORDING.steps.append(block)
        return block

    def compile(self, source: Source) -> Any:
        launch = self._launches.get(source)
        if launch is None:
            real = self._compile(source)

            def record(count: Any, /, *arguments: Any) -> None:
                RECORDING.steps.append((real, count, arguments))

            launch = self._launches[source] = record
        return launch

    def read(self, buffer: Any, offset: int, nbytes: int) -> memoryview:
        raise NotRecordable

    def write(self, buffer: Any, offset: int, data: memoryview) -> None:
        raise NotRecordable

    def copy(self, destination: Any, to: int, source: Any, start: int, nbytes: int) -> None:
        raise NotRecordable

    def before_writing(self, indices: Any, indexed: Any, wraps: bool) -> None:
        raise NotRecordable

    def synchronize(self) -> None:
        """Do nothing."""


class RecordedNode(NamedTuple):
    """What the kernel of a node does for arrays of the layouts that the node was traced with."""

    arrays: dict[Tensor, RecordedBlock]
    """The blocks that stand for the operands. Their names are expressions of the node's arguments."""
    steps: list[Any]
    """Blocks that are allocated, launches as (kernel, count, arguments), and the block of errors if one is reported."""
    outputs: tuple[StridedArray, ...]
    """The results. A result that is written in place of an operand has that operand's block."""


def record_call(node: Node, kernel: Callable[..., Any], engine: RecordingEngine) -> RecordedNode | None:
    """Return what a kernel does for the node's arguments, or None if its results are not new arrays.

    Raises :class:`NotRecordable`, and what the kernel raises for arrays without memory.
    """
    arrays: dict[Tensor, RecordedBlock] = {}
    steps: list[Any] = []
    RECORDING.steps = steps
    results = kernel(*[recorded_argument(a, f"a{i}", arrays, engine) for i, a in enumerate(node.args)])
    outputs = results if isinstance(results, tuple) else (results,)
    if not all(a.__class__ is StridedArray and a.buffer in steps for a in outputs):
        return None
    return RecordedNode(arrays, steps, outputs)


def record_fused(node: Node, kernel: FusedKernel, engine: RecordingEngine) -> RecordedNode | None:
    """Return what the kernel of a group does, or None if it takes numbers of the call, or has no elements.

    Raises as :func:`record_call` does.
    """
    assert isinstance(node.op, Graph)
    arrays: dict[Tensor, RecordedBlock] = {}
    steps: list[Any] = []
    RECORDING.steps = steps
    plan, numbers = kernel.traced(), kernel.constant_numbers()
    operands = {i: recorded_argument(node.args[i], f"a{i}", arrays, engine) for i in kernel.arrays}
    furthest = max([a.offset for a in operands.values()], default=0)
    if plan is None or numbers is None or furthest > plan.max_offset:
        return None
    outputs = []
    for i, spec in enumerate(kernel.outputs):
        into = operands.get(kernel.into.get(i, -1))
        block, offset = (into.buffer, into.offset) if into else (engine.allocate(spec.nbytes or 1), 0)
        contiguous = is_contiguous_layout(spec.shape, spec.strides)
        outputs.append(
            StridedArray(engine, block, spec.shape, spec.strides, offset, spec.dtype, spec.numel, contiguous)
        )
    placed = (*outputs, *operands.values())
    plan.launch(plan.items, *[a.buffer for a in placed], *[a.offset for a in placed], *plan.numbers, *numbers)
    return RecordedNode(arrays, steps, tuple(outputs))


def recorded_argument(argument: Any, name: str, arrays: dict[Tensor, RecordedBlock], engine: RecordingEngine) -> Any:
    """Return an argument with arrays of the recorder in place of tensors, whose blocks are added to ``arrays``."""
    if isinstance(argument, list):
        return [recorded_argument(a, f"{name}[{i}]", arrays, engine) for i, a in enumerate(argument)]
    if not isinstance(argument, Tensor):
        return argument
    spec = argument.spec
    if spec is None or min(spec.strides, default=0) < 0:
        raise NotRecordable
    block = arrays.setdefault(argument, RecordedBlock(spec.nbytes, name))
    contiguous = is_contiguous_layout(spec.shape, spec.strides)
    offset = spec.offset if engine.offsets else 0
    return StridedArray(engine, block, spec.shape, spec.strides, offset, spec.dtype, spec.numel, contiguous)


def text_of(argument: Any, scope: dict[str, Any]) -> str:
    """Return the text of an argument of a recorded launch."""
    if isinstance(argument, RecordedBlock):
        return argument.name
    if argument.__class__ is int:
        return repr(argument)
    name = f"N{len(scope)}"
    scope[name] = argument
    return name


__all__ = [
    "RECORDING", "NotRecordable", "RecordedBlock", "RecordedNode", "RecordingEngine", "record_call", "record_fused",
    "recorded_argument", "text_of",
]  # fmt: skip
