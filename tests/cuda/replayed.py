"""Captured graphs on the double of CuPy: nodes compute with the kernels of the device ``cpu``, at addresses.

A launch reads and writes the addresses that it was queued with. So a graph that uses memory which others have got, or
an input that has moved, gives wrong numbers here, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from candelabra.graph import FUNCTION, Graph, Node, runner, values_read
from candelabra_clike import StridedArray
from candelabra_clike.array import extent
from candelabra_cpu.backend import TO_NUMPY
from candelabra_cuda.graphs import ReplayedGraph


def over(array: StridedArray) -> Any:
    """Return a NumPy array over the memory of an array. It does not keep the memory alive."""
    size = array.dtype.itemsize
    memory = (ctypes.c_char * (extent(array.shape, array.strides) * size)).from_address(
        array.buffer + array.offset * size
    )
    return np.ndarray(array.shape, TO_NUMPY[array.dtype], memory, 0, tuple(step * size for step in array.strides))


class Device:
    """An engine on the double, and kernels for it. ``calls`` counts those that Python ran."""

    def __init__(self, engine: Any, doubles: ModuleType) -> None:
        self.engine = engine
        self.queue = doubles.Stream.queue
        self.calls = 0
        self.before: dict[str, Callable[[], object]] = {}
        """What a node of a name does first."""

    def array(self, values: Any, spec: Any) -> StridedArray:
        """Return an array of the device with values of the host, and the layout of a spec."""
        buffer = self.engine.allocate(max(extent(spec.shape, spec.strides), 1) * spec.dtype.itemsize)
        made = StridedArray(self.engine, buffer, spec.shape, spec.strides, 0, spec.dtype, spec.numel, False)
        made = made.restrided(spec.shape, spec.strides, 0)
        if values is not None and spec.numel:
            over(made)[...] = values
        return made

    def kernel_of(self, node: Node) -> Callable[..., Any]:
        """Return the kernel of a node."""
        assert not isinstance(node.op, Graph)
        if node.is_view:
            spec = node.results[0].spec
            assert spec is not None
            return lambda array, *_: array.restrided(spec.shape, spec.strides, spec.offset)
        reads = values_read([node])
        own = runner(Graph(reads, [node], node.results))

        def kernel(*arguments: Any) -> Any:
            self.calls += 1
            self.before.get(node.name, lambda: None)()
            passed = dict(zip(node.operands, _flat(node.args, arguments), strict=True))
            places = [(passed[v], None) if v.spec is None else (None, _address(passed[v])) for v in reads]
            outs = [self.array(None, v.spec) for v in node.results] if node.form == FUNCTION else []
            targets = [_address(out) for out in outs]

            def work() -> None:
                found = own(*[number if place is None else _at(place) for number, place in places])
                for target, result in zip(targets, found):
                    _at(target)[...] = result

            self.queue(self.engine.enter(), work)
            return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)

        return kernel


def _address(array: StridedArray) -> tuple[Any, ...]:
    return int(array.buffer) + array.offset * array.dtype.itemsize, array.shape, array.strides, array.dtype


def _at(described: tuple[Any, ...]) -> Any:
    address, shape, strides, dtype = described
    return over(StridedArray(None, address, shape, strides, 0, dtype, 0, False))  # type: ignore[arg-type]


def _flat(args: Any, passed: Any) -> list[Any]:
    """Return what is passed for each value among canonical arguments, which may be lists of values."""
    found = []
    for argument, given in zip(args, passed, strict=True):
        if isinstance(argument, (list, tuple)):
            found += _flat(argument, given)
        elif argument.__class__.__name__ == "Value":
            found.append(given)
    return found


class Replayed:
    """A graph on the device and on the reference: a call gives the values of inputs, and compares all that changes."""

    def __init__(self, device: Device, graph: Graph) -> None:
        self.device, self.graph = device, graph
        self.reference = runner(graph)
        self.function = ReplayedGraph(device.engine, graph, device.kernel_of)

    def placed(self, values: Any) -> list[Any]:
        """Return the inputs on the device."""
        return [v if s.spec is None else self.device.array(v, s.spec) for v, s in zip(values, self.graph.inputs)]

    def check(self, values: Any, inputs: list[Any] | None = None) -> list[Any]:
        """Call both with values, on given arrays or new ones, and return the results on the device."""
        if inputs is None:
            inputs = self.placed(values)
        copies = [v if s.spec is None else np.array(v) for v, s in zip(values, self.graph.inputs)]
        expected = self.reference(*copies)
        results = self.function(*inputs)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(over(got), want)
            assert not self.function.memory.owns(got) or self.function.single
        for got, want, value in zip(inputs, copies, self.graph.inputs, strict=True):
            if value.spec is not None:
                np.testing.assert_array_equal(over(got), want)
        return [*results]
