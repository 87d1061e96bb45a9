"""Fused kernels over NumPy arrays, for graphs of the device ``cpu``.

Kernels of a graph are made at run time, so a compiler is needed (``pip install candelabra-native[jit]``). Those of one
graph are compiled together, and kept on disk.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph, Node, default_kernel, memory_plan, runner
from candelabra.library import build
from candelabra_clike import StridedArray
from candelabra_clike.fusion import FusedKernel, fused
from candelabra_clike.recording import RecordedNode
from candelabra_clike.templates.elementwise.elementwise import NotContiguous
from candelabra_cpu.backend import TO_NUMPY

from candelabra_native.arrays import Unsuitable, ndarray, payload, strided
from candelabra_native.engine import ENGINE
from candelabra_native.finding import COMPILE, Missing, compiled_together, may_compile
from candelabra_native.launch._launch import allocate
from candelabra_native.planning import planned
from candelabra_native.recorded import record, record_group, recorded, view

ADVICE: Final = (
    "compiled functions call one kernel per operator on the device cpu, because kernels cannot be made at run time: "
    "pip install candelabra-native[jit], or set CC to a clang"
)


def compiled(graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a graph, or None if it has no group and no kernel whose launches can be prepared.

    Without a compiler there are no groups.
    """
    grouped = fused(graph)
    if not may_compile() and any(isinstance(node.op, Graph) for node in grouped.nodes):
        if os.environ.get(COMPILE) != "0":  # which forbids it
            _advise()
        grouped = graph
    plan = memory_plan(grouped)
    groups = {n: FusedKernel(n.op, ENGINE, plan.get(n)) for n in grouped.nodes if isinstance(n.op, Graph)}
    with compiled_together():
        for kernel in groups.values():
            with suppress(Missing):
                kernel.traced()
    ENGINE.forget_missing()
    for kernel in groups.values():
        kernel.traced()

    recordings: dict[Node, RecordedNode] = {}
    for node in grouped.nodes:
        found = record_group(node, plan.get(node)) if node in groups else record(node)
        if found is not None:
            recordings[node] = found
    final, functions = planned(grouped, recordings, {node: kernel.into for node, kernel in groups.items()})
    kernels: dict[Node, Callable[..., Any] | None] = {**functions}
    for node in final.nodes:
        if node not in kernels:
            own = default_kernel(node)
            kernels[node] = on_arrays(groups[node], own) if node in groups else recorded(node, own) or view(node, own)
    if not any(kernels.values()):
        return None
    run: Any = runner(final, kernels.get)
    run.graph = grouped  # reports show what is fused
    return run  # type: ignore[no-any-return]


_advised: list[bool] = []


def _advise() -> None:
    if not _advised:
        _advised.append(True)
        warnings.warn(ADVICE, RuntimeWarning, stacklevel=3)


def on_arrays(kernel: FusedKernel, own: Callable[..., Any]) -> Callable[..., Any]:
    """Generate the function that calls a fused kernel on NumPy arrays.

    The function has a fast path for the strides that the graph was traced with. ``own`` serves arrays that C kernels do
    not address, such as those with negative strides.
    """
    names = [f"a{i}" for i in range(len(kernel.group.inputs))]
    arrays = [names[i] for i in kernel.arrays]
    layouts = [v.spec for v in kernel.inputs if v.spec is not None]
    scope: dict[str, Any] = {"allocate": allocate, "ndarray": ndarray, "general": _general(kernel, own)}
    taken = {names[position] for position in kernel.into.values()}
    tests = [f"{a}.strides == STRIDES_{a} and {a}.flags.{'carray' if a in taken else 'aligned'}" for a in arrays]
    scope |= {f"STRIDES_{a}": _in_bytes(s) for a, s in zip(arrays, layouts, strict=True)}
    lines = [f"if not ({' and '.join(tests)}): return general({', '.join(names)})"] if tests else []
    blocks, outputs = [], []
    for i, spec in enumerate(kernel.outputs):
        scope |= {f"SHAPE{i}": spec.shape, f"DTYPE{i}": TO_NUMPY[spec.dtype], f"OUT{i}": _in_bytes(spec)}
        if i in kernel.into:  # the array that dies becomes the result
            blocks.append(names[kernel.into[i]])
            outputs.append(blocks[-1])
            continue
        lines.append(f"b{i} = allocate({spec.nbytes or 1})")
        blocks.append(f"b{i}")
        strides = "" if is_contiguous_layout(spec.shape, spec.strides) else f", 0, OUT{i}"
        outputs.append(f"ndarray(SHAPE{i}, DTYPE{i}, b{i}{strides})")
    plan = kernel.traced()
    if plan is not None:
        constant = kernel.constant_numbers()
        scope |= {"launch": plan.launch, "numbers": kernel.numbers, "CONSTANT": constant}
        numbers = [*["0"] * (len(blocks) + len(arrays)), *map(str, plan.numbers)]
        numbers.append("*CONSTANT" if constant is not None else f"*numbers(({', '.join(names)},))")
        lines.append(f"launch({', '.join([str(plan.items), *blocks, *arrays, *numbers])})")
    lines.append(f"return {', '.join(outputs)}")
    return build("fused", ", ".join(names), lines, scope, f"native {kernel.name}")


def _in_bytes(spec: Any) -> tuple[int, ...]:
    return tuple(step * spec.dtype.itemsize for step in spec.strides)


def _general(kernel: FusedKernel, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function for arrays of any strides."""

    def call(*arguments: Any) -> Any:
        try:
            arrays = [strided(arguments[i], ENGINE) for i in kernel.arrays]
            plan = kernel.schedule([(a.shape, a.strides) for a in arrays])
        except (Unsuitable, Missing, NotContiguous):
            return own(*arguments)
        outputs = [
            StridedArray(ENGINE, allocate(s.nbytes or 1), s.shape, s.strides, 0, s.dtype, s.numel, False)
            for s in kernel.outputs
        ]
        if plan is not None:
            placed = (*outputs, *arrays)
            plan.launch(
                plan.items, *[a.buffer for a in placed], *[a.offset for a in placed], *plan.numbers,
                *kernel.numbers(arguments),
            )  # fmt: skip
        results = tuple(payload(out) for out in outputs)
        return results if len(results) > 1 else results[0]

    return call
