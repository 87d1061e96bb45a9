"""The contract over JAX arrays: they never change, have no strides, and are finished later than they are returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from candelabra.backend import Backend, Capabilities, DeviceInfo, Kernel, declared
from candelabra.dtypes import ALL, dtype
from candelabra.errors import OutOfMemoryError
from candelabra.graph import Graph, Node, fuse, runner

from candelabra_jax_example.kernels import FROM_JAX, TO_JAX, table, wide


def _is_traceable(node: Node) -> bool:
    """Whether XLA takes a node: not if its kernel reads values, as checks of indices do, or falls back to the host."""
    reads = dict.fromkeys(node.operands)
    given = [jax.ShapeDtypeStruct(v.spec.shape, TO_JAX[v.spec.dtype]) for v in reads if v.spec is not None]
    if len(given) < len(reads):  # it takes a number of the run, such as a generator's counter
        return False
    try:
        wide(jax.eval_shape)(runner(Graph(reads, [node], node.results)), *given)
    except TypeError:  # that of JAX for a traced array whose values are read
        return False
    return True


def _program(node: Node) -> Callable[..., Any] | None:
    """XLA's program for a group of nodes."""
    if not isinstance(node.op, Graph):
        return None
    run = wide(jax.jit(runner(node.op)))
    return run if len(node.results) > 1 else lambda *payloads: run(*payloads)[0]


class JaxBackend(Backend):
    """The devices of JAX on the CPU: one, unless JAX is configured to divide it."""

    name = "jax"
    api = ((1, 0), (1, 0))
    capabilities = Capabilities(
        storage=frozenset(ALL), arithmetic=frozenset(ALL), strided=False, mutable=False, asynchronous=True,
        subnormals=False,
    )  # fmt: skip

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(f"{found.device_kind} {found.id}", {"jax": jax.__version__}) for found in jax.devices("cpu")]

    def kernels(self) -> Mapping[str, Kernel]:
        return declared(table(self.device))

    @staticmethod
    def device(index: int) -> Any:
        """JAX's object for one device."""
        return jax.devices("cpu")[index]

    def compile(self, graph: Graph) -> Callable[..., tuple[Any, ...]]:
        """Let XLA compile groups of nodes, as large as possible, as programs. Other nodes run one by one."""
        return runner(fuse(graph, _is_traceable, lambda *_: 0), _program)

    @wide
    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> jax.Array:
        try:
            return jax.numpy.zeros(shape, TO_JAX[dtype], device=self.device(index))
        except (jax.errors.JaxRuntimeError, OverflowError, ValueError) as error:
            raise OutOfMemoryError(f"JAX has no room for {list(shape)} of {dtype}: {error}") from error

    @wide
    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> jax.Array:
        array = np.frombuffer(data, TO_JAX[dtype]).reshape(shape).copy()  # JAX may keep what it is given
        return jax.device_put(array, self.device(index))

    def to_host(self, payload: jax.Array) -> memoryview:
        return memoryview(np.ascontiguousarray(payload).reshape(-1).view(np.uint8))

    def dtype_of(self, payload: jax.Array) -> dtype:
        return FROM_JAX[payload.dtype]

    def copy_(self, destination: jax.Array, source: jax.Array) -> jax.Array:
        return source  # nothing can be written to, and nothing will be: the core puts one array in another's place

    def transfer(self, payload: jax.Array, source: int, destination: int) -> jax.Array:
        return jax.device_put(payload, self.device(destination))

    def synchronize(self, index: int) -> None:
        jax.device_put(0, self.device(index)).block_until_ready()
