"""Fused kernels over NumPy arrays, for graphs of the device ``cpu``.

Kernels of a graph are made at run time, so a compiler is needed (``pip install candelabra-native[jit]``). Those of one
graph are compiled together, and kept on disk.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from candelabra.graph import Graph, Node, default_kernel, runner
from candelabra_clike.fusion import FusedKernel, fused
from candelabra_cpu.backend import TO_NUMPY

from candelabra_native.arrays import Unsuitable, ndarray, strided
from candelabra_native.finding import Missing, compiled_together, may_compile
from candelabra_native.kernels import ENGINE

ADVICE: Final = (
    "compiled functions call one kernel per operator on the device cpu, because kernels cannot be made at run time: "
    "pip install candelabra-native[jit], or set CC to a clang"
)


def compiled(graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a graph, or None if no node of it can be fused, or if there is no compiler."""
    grouped = fused(graph)
    groups = {node: FusedKernel(node.op, ENGINE) for node in grouped.nodes if isinstance(node.op, Graph)}
    if not groups:
        return None
    if not may_compile():
        _advise()
        return None
    with compiled_together():
        for kernel in groups.values():
            with suppress(Missing):
                kernel.traced()
    ENGINE.forget_missing()
    for kernel in groups.values():
        kernel.traced()

    def kernel_of(node: Node) -> Callable[..., Any] | None:
        return on_arrays(groups[node], default_kernel(node)) if node in groups else None

    return runner(grouped, kernel_of)


_advised: list[bool] = []


def _advise() -> None:
    if not _advised:
        _advised.append(True)
        warnings.warn(ADVICE, RuntimeWarning, stacklevel=3)


def on_arrays(kernel: FusedKernel, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that calls a fused kernel on NumPy arrays.

    ``own`` serves arrays that C kernels do not address, such as those with negative strides.
    """
    places, single = kernel.arrays, len(kernel.outputs) == 1
    new = [
        (s.shape, TO_NUMPY[s.dtype], s.nbytes or 1, tuple(step * s.dtype.itemsize for step in s.strides))
        for s in kernel.outputs
    ]
    constant, allocate = kernel.constant_numbers(), ENGINE.allocate
    plans: dict[Any, Any] = {}
    zeros = (0,) * (len(new) + len(places))

    def plan_of(arrays: list[Any]) -> Any:
        views = [strided(a, ENGINE) for a in arrays]
        plan = kernel.schedule([(v.shape, v.strides) for v in views])
        return None if plan is None else (plan.launch, plan.items, (*zeros, *plan.numbers))

    def call(*arguments: Any) -> Any:
        arrays = [arguments[i] for i in places]
        key = tuple([a.strides for a in arrays])
        try:
            if not all([a.flags.aligned for a in arrays]):
                raise Unsuitable
            if key not in plans:
                plans[key] = plan_of(arrays)
        except (Unsuitable, Missing):
            return own(*arguments)
        plan = plans[key]
        blocks = [allocate(nbytes) for _, _, nbytes, _ in new]
        if plan is not None:
            launch, items, numbers = plan
            launch(items, *blocks, *arrays, *numbers, *(kernel.numbers(arguments) if constant is None else constant))
        outputs = [
            ndarray(shape, d, block, 0, strides) for (shape, d, _, strides), block in zip(new, blocks, strict=True)
        ]
        return outputs[0] if single else tuple(outputs)

    return call
