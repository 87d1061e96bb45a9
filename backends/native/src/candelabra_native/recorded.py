"""Prepared launches: a function for each node of a graph whose launches can be recorded, see
:mod:`candelabra_clike.recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from candelabra.backend import is_contiguous_layout
from candelabra.graph import FUNCTION, Graph, Node
from candelabra.graph import Value as Tensor
from candelabra.library import build
from candelabra_clike import C
from candelabra_clike.fusion import FusedKernel
from candelabra_clike.recording import (
    RECORDING,
    NotRecordable,
    RecordedBlock,
    RecordedNode,
    RecordingEngine,
    record_call,
    record_fused,
    text_of,
)
from candelabra_cpu.backend import TO_NUMPY

from candelabra_native.arrays import ndarray
from candelabra_native.engine import ENGINE
from candelabra_native.finding import Missing
from candelabra_native.launch._launch import allocate
from candelabra_native.small_calls import IN_CONDITIONS


class RecordedErrors:
    """Stands for the record of errors: each call of the generated function has one of its own."""

    possible = False

    def __init__(self) -> None:
        self.block: Final = RecordedBlock(32, "errors")

    def register(self, factory: Any, indices: Sequence[Any]) -> tuple[RecordedBlock, int]:
        """Return the buffer, and the number with which the kernel reports an error."""
        return self.buffer(), self.number(factory)

    def number(self, factory: Any) -> int:
        """Return any number but 0: the owner's kernel raises the error."""
        return 1

    def buffer(self) -> RecordedBlock:
        """Return the buffer, and note that it is used."""
        RECORDING.steps.append(self.block)
        return self.block


class ProcessorRecorder(RecordingEngine):
    """The processor without memory. Arrays begin at their blocks, since a kernel gets addresses."""

    dialect = C
    checks_indices = True
    offsets = False
    errors: Any = RecordedErrors()


RECORDER: Final = ProcessorRecorder(ENGINE, lambda source: ENGINE.compile(source))


def record(node: Node) -> RecordedNode | None:
    """Return what the kernel of an operator does, or None if it cannot be recorded, or if the owner's serves it."""
    kernel: Any = None if isinstance(node.op, Graph) or node.form != FUNCTION or node.is_view else node.kernel
    kernel = getattr(kernel, "first", kernel)
    if not hasattr(kernel, "is_small") or _is_small(node, kernel):
        return None
    if getattr(kernel, "load", None) is not None:
        kernel.load()
    found = getattr(kernel, "in_c", None)
    if found is None:
        return None
    try:
        return record_call(node, found, RECORDER)
    except (NotRecordable, Missing):
        return None


def record_group(node: Node, into: dict[int, int] | None) -> RecordedNode | None:
    """Return what the kernel of a group does, or None if it takes numbers of the call, or has no elements.

    ``into`` has the results that take the memory of an argument, by position.
    """
    assert isinstance(node.op, Graph)
    kernel = FusedKernel(node.op, RECORDER, into)
    try:
        return record_fused(node, kernel, RECORDER)
    except (NotRecordable, Missing):
        return None


def recorded(node: Node, own: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a function of a node's arguments that launches what its kernel launches, or None if it cannot be recorded.

    ``own`` serves arrays of other layouts than the node was traced with, and raises the errors of values.
    """
    found = record(node)
    return None if found is None else _function(node, own, found)


def view(node: Node, own: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function of a view of a contiguous array, or None if the node is none. ``own`` serves other arrays."""
    source, spec = (v.spec if v else None for v in (next(iter(node.operands), None), node.results[0]))
    if not node.is_view or source is None or spec is None or spec.dtype is not source.dtype or not spec.numel:
        return None
    offset = spec.offset - source.offset
    if offset < 0 or min(spec.strides, default=0) < 0 or not is_contiguous_layout(source.shape, source.strides):
        return None
    size = spec.dtype.itemsize
    scope: dict[str, Any] = {"ndarray": ndarray, "own": own, "SHAPE": spec.shape}
    scope["STRIDES"] = [step * size for step in spec.strides]
    lines = [
        "if not a.flags.c_contiguous: return own(a, *others)",
        f"return ndarray(SHAPE, a.dtype, a, {offset * size}, STRIDES)",
    ]
    return build("view", "a, *others", lines, scope, f"native {node.name}")


def _is_small(node: Node, kernel: Any) -> bool:
    """Return whether the owner's kernel serves the node's calls."""
    assert not isinstance(node.op, Graph)
    names = [p.name for p in node.op.schema.parameters]
    return bool(eval(kernel.is_small, dict(IN_CONDITIONS), dict(zip(names, map(_empty, node.args)))))


def _empty(argument: Any) -> Any:
    """Return an argument with arrays of one element of memory in place of tensors."""
    if isinstance(argument, Tensor) and argument.spec is not None:
        return np.broadcast_to(np.empty((), TO_NUMPY[argument.spec.dtype]), argument.spec.shape)
    return [*map(_empty, argument)] if isinstance(argument, list | tuple) else argument


def _function(node: Node, own: Callable[..., Any], recording: RecordedNode) -> Callable[..., Any]:
    """Generate the function of a recording."""
    arrays, steps, outputs = recording
    parameters = ", ".join(f"a{i}" for i in range(len(node.args)))
    scope: dict[str, Any] = {"allocate": allocate, "ndarray": ndarray, "own": own, "zeros": np.zeros}
    tests = []
    for i, (value, block) in enumerate(arrays.items()):
        assert value.spec is not None
        scope[f"STRIDES{i}"] = tuple(step * value.spec.dtype.itemsize for step in value.spec.strides)
        tests.append(f"{block.name}.strides == STRIDES{i} and {block.name}.flags.aligned")
    lines = [f"if not ({' and '.join(tests)}): return own({parameters})"] if tests else []
    reports = False
    for i, step in enumerate(steps):
        if step is RECORDER.errors.block:
            reports = True
        elif isinstance(step, RecordedBlock):
            step.name = f"b{i}"
            lines.append(f"b{i} = allocate({step.nbytes})")
        else:
            scope[f"launch{i}"], count, arguments = step
            lines.append(f"launch{i}({', '.join(text_of(a, scope) for a in (count, *arguments))})")
    if reports:
        lines = [*lines[: len(tests) > 0], "errors = zeros(4, 'q')", *lines[len(tests) > 0 :]]
        lines.append(f"if errors.item(0): return own({parameters})")
    results = []
    for i, out in enumerate(outputs):
        size = out.dtype.itemsize
        scope |= {f"SHAPE{i}": out.shape, f"DTYPE{i}": TO_NUMPY[out.dtype], f"OUT{i}": [s * size for s in out.strides]}
        strides = "" if out.contiguous else f", OUT{i}"
        results.append(f"ndarray(SHAPE{i}, DTYPE{i}, {out.buffer.name}, {out.offset * size}{strides})")
    lines.append(f"return {', '.join(results)}")
    return build("recorded", parameters, lines, scope, f"native {node.name}")
