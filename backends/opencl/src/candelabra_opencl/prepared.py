"""Compiled graphs on OpenCL devices: nodes whose launches are prepared when the graph is compiled.

What a kernel does in Python is recorded once (:mod:`candelabra_clike.recording`). The function of a node then allocates
the blocks that the kernel allocates and queues its launches, whose numbers are set already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyopencl as cl
from candelabra.graph import FUNCTION, Graph, Node, default_kernel, memory_plan, runner
from candelabra.library import build
from candelabra_clike import StridedArray
from candelabra_clike.fusion import FusedKernel, planned
from candelabra_clike.recording import (
    NotRecordable,
    RecordedBlock,
    RecordedNode,
    record_call,
    record_fused,
)

from candelabra_opencl.engine import OpenCLEngine
from candelabra_opencl.launching import OpenCLKernel

Kernel = Callable[..., Any]


def compiled(engine: OpenCLEngine, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a graph, or None if no node is fused and no launch is prepared."""
    grouped, kernel_of = planned(engine, graph)
    plan = memory_plan(grouped)
    kernels: dict[Node, Kernel | None] = {}
    for node in grouped.nodes:
        own = kernel_of(node)
        recording = _recorded(node, engine, plan.get(node))
        kernels[node] = own if recording is None else _function(node, own or default_kernel(node), recording, engine)
    return runner(grouped, kernels.get) if any(kernels.values()) else None


def _recorded(node: Node, engine: OpenCLEngine, into: Any) -> RecordedNode | None:
    """Return the launches of a node, or None if they depend on the call or cannot be recorded."""
    try:
        if isinstance(node.op, Graph):
            return record_fused(node, FusedKernel(node.op, engine.recorder, into), engine.recorder)
        if node.form != FUNCTION or node.is_view or node.is_ordered or node.kernel is None:
            return None  # a collective would take place while the graph is compiled
        return record_call(node, node.kernel, engine.recorder)
    except (NotRecordable, AttributeError, TypeError, cl.Error):
        return None  # a kernel that reads elements, reports errors, or launches on the device of its index


def _function(node: Node, own: Kernel, recording: RecordedNode, engine: OpenCLEngine) -> Kernel | None:
    """Generate the function of a recording. ``own`` serves arrays of other layouts than those of the trace."""
    parameters = ", ".join(f"a{i}" for i in range(len(node.args)))
    scope: dict[str, Any] = {"allocate": engine.memory.allocate, "own": own, "Array": StridedArray, "engine": engine}
    tests, buffers = [], []
    for i, (value, block) in enumerate(recording.arrays.items()):
        assert value.spec is not None
        scope[f"STRIDES{i}"] = value.spec.strides
        tests.append(f"{block.name}.strides == STRIDES{i} and {block.name}.offset == {value.spec.offset}")
        buffers.append(f"x{i} = {block.name}.buffer")
        block.name = f"x{i}"
    lines = [f"if not ({' and '.join(tests)}): return own({parameters})", *buffers] if tests else []
    for i, step in enumerate(recording.steps):
        if isinstance(step, RecordedBlock):
            step.name = f"b{i}"
            lines.append(f"b{i} = allocate({step.nbytes})")
            continue
        kernel, count, arguments = step
        assert isinstance(kernel, OpenCLKernel)
        launch = kernel.prepared(count, arguments)
        if launch is not None:
            scope[f"launch{i}"] = launch
            lines.append(f"launch{i}({', '.join(a.name for a in arguments if isinstance(a, RecordedBlock))})")
    results = []
    for i, out in enumerate(recording.outputs):
        scope |= {f"SHAPE{i}": out.shape, f"OUT{i}": out.strides, f"DTYPE{i}": out.dtype}
        results.append(
            f"Array(engine, {out.buffer.name}, SHAPE{i}, OUT{i}, {out.offset}, DTYPE{i}, {out.size}, {out.contiguous})"
        )
    lines.append(f"return {', '.join(results)}")
    return build("prepared", parameters, lines, scope, f"OpenCL {node.name}")
