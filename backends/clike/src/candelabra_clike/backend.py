"""The part of the backend contract that all devices with C-like kernels share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from candelabra.backend import Backend, Kernel, declared
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine

if TYPE_CHECKING:
    from candelabra.graph import Graph


class CLikeBackend(Backend):
    """A device type whose payloads are :class:`StridedArray`. Subclasses implement ``devices`` and ``engine``."""

    api = ((1, 1), (1, 1))

    @abstractmethod
    def engine(self, index: int) -> Engine:
        """Return the engine of a device, which is opened at the first use."""

    def kernels(self) -> Mapping[str, Kernel]:
        from candelabra_clike.kernels import table

        return declared(table(self.engine))

    def empty(self, index: int, shape: Shape, dtype: dtype) -> StridedArray:
        return self.engine(index).empty(tuple(shape), dtype)

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> StridedArray:
        array = self.engine(index).empty(tuple(shape), dtype)
        if array.size:
            array.engine.write(array.buffer, 0, data)
        return array

    def to_host(self, payload: StridedArray) -> memoryview:
        from candelabra_clike.kernels.copies import clone

        dense = payload if payload.contiguous else clone(payload)
        engine, itemsize = dense.engine, dense.dtype.itemsize
        content = engine.read(dense.buffer, dense.offset * itemsize, dense.size * itemsize) if dense.size else b""
        engine.errors.check()
        return memoryview(content)

    def dtype_of(self, payload: StridedArray) -> dtype:
        return payload.dtype

    def copy_(self, destination: StridedArray, source: StridedArray) -> StridedArray:
        from candelabra_clike.kernels.copies import copy_into

        copy_into(destination, source)
        return destination

    def layout(self, payload: StridedArray) -> tuple[Shape, int]:
        return payload.strides, payload.offset

    def restride(self, payload: StridedArray, shape: Shape, strides: Shape, offset: int) -> StridedArray:
        return payload.restrided(tuple(shape), tuple(strides), offset)

    def compile(self, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
        from candelabra_clike.fusion import compiled

        values = (*graph.inputs, *[v for node in graph.nodes for v in node.results])
        device = next(v.spec.device for v in values if v.spec is not None)
        return compiled(self.engine(device.index), graph)

    def synchronize(self, index: int) -> None:
        engine = self.engine(index)
        engine.synchronize()
        engine.errors.check()
