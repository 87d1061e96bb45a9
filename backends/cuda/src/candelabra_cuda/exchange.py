"""The CUDA array interface, version 3: arrays of CuPy, Numba, PyTorch over one memory, ordered by streams.

Source: Numba's documentation, "CUDA Array Interface". What hands memory out says which stream works on it, and what
takes it waits for that stream: here by an event, so that the host waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from candelabra.errors import UnsupportedDType
from candelabra.plugins import registry
from candelabra.tensor import Tensor, wrap
from candelabra_clike import StridedArray

from candelabra_cuda.arrays import FROM_NUMPY, TO_NUMPY
from candelabra_cuda.memory import DeviceMemory

if TYPE_CHECKING:
    from candelabra_cuda.backend import CudaBackend
    from candelabra_cuda.engine import CudaEngine

VERSION = 3
LEGACY_DEFAULT = 1
"""How the interface writes the default stream, whose handle is 0: there 0 would be ambiguous."""
ATTRIBUTE = "__cuda_array_interface__"


def interface(tensor: Tensor) -> dict[str, Any]:
    """The memory of a tensor on the GPU, as other libraries take it.

    ``AttributeError`` for tensors that have no such memory; ``RuntimeError`` for one that requires grad, since the
    other library would write no history; ``UnsupportedDType`` for bfloat16, of which the interface knows nothing.
    """
    payload: Any = tensor._payload
    if not isinstance(payload, StridedArray) or not isinstance(payload.buffer, DeviceMemory):
        raise AttributeError(f"a tensor on {tensor.device} has no {ATTRIBUTE}: move it to the GPU, or use DLPack")
    if tensor.requires_grad:
        raise RuntimeError(f"{ATTRIBUTE} of a tensor that requires grad: use tensor.detach()")
    if payload.dtype.name == "bfloat16":
        raise UnsupportedDType(f"{ATTRIBUTE} has no name for bfloat16: use DLPack (from_dlpack of the other library)")
    engine: Any = payload.engine
    size = payload.dtype.itemsize
    return {
        "shape": payload.shape,
        "strides": None if payload.contiguous else tuple(step * size for step in payload.strides),
        "typestr": TO_NUMPY[payload.dtype].str,
        "data": (int(payload.buffer) + payload.offset * size if payload.size else 0, False),
        "version": VERSION,
        "stream": engine.enter() or LEGACY_DEFAULT,
    }


def from_cuda_array_interface(source: Any, device_type: str = "cuda") -> Tensor:
    """A tensor over the memory of an object with ``__cuda_array_interface__``: of Numba, which has no DLPack.

    ``TypeError`` for other objects and for dtypes that a tensor cannot have.
    """
    described = getattr(source, ATTRIBUTE, None)
    if described is None:
        raise TypeError(f"from_cuda_array_interface() takes an object with {ATTRIBUTE}, not {type(source).__name__}")
    given: Any = registry.backend(device_type)[0]
    backend: CudaBackend = given
    index = owner_of(backend, described["data"][0])
    from candelabra.device import open_device

    payload = payload_over(described, source, backend.engine(index))
    return wrap(payload, open_device(f"{device_type}:{index}").keys_for(payload.dtype))


def owner_of(backend: CudaBackend, address: int) -> int:
    """The number of the device that has an address; an empty array has none, and goes to the first."""
    if not address:
        return 0
    return int(backend.cupy.cuda.runtime.pointerGetAttributes(address).device)


def payload_over(described: dict[str, Any], source: Any, engine: CudaEngine) -> StridedArray:
    """The payload of what an interface describes; our stream goes on when theirs has come so far."""
    d = np.dtype(described["typestr"])
    if d not in FROM_NUMPY or described.get("mask") is not None:
        raise TypeError(
            f"from_cuda_array_interface(): a tensor cannot have the type {described['typestr']!r} or a mask"
        )
    shape = tuple(described["shape"])
    steps = described.get("strides") or contiguous_steps(shape, d.itemsize)
    if any(step < 0 or step % d.itemsize for step in steps):
        raise TypeError(f"from_cuda_array_interface(): a tensor cannot have the strides {tuple(steps)}, in bytes")
    address = described["data"][0]
    cuda = engine.cupy.cuda
    engine.enter()
    order(engine, described.get("stream"))
    nbytes = d.itemsize + sum((size - 1) * step for size, step in zip(shape, steps)) if address else 0
    owner = cuda.MemoryPointer(cuda.UnownedMemory(address, nbytes, source, engine.index), 0)
    strides = tuple(step // d.itemsize for step in steps)
    memory = DeviceMemory(owner)
    return StridedArray(engine, memory, (), (), 0, FROM_NUMPY[d], 1, True).restrided(shape, strides, 0)


def contiguous_steps(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of C order, in bytes."""
    steps, step = [], itemsize
    for size in reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(reversed(steps))


def order(engine: CudaEngine, stream: int | None) -> None:
    """Let the thread's current stream wait for another library's; without a number there is nothing to wait for."""
    if stream is None:
        return
    mine = engine.stream()
    pointer = 0 if stream == LEGACY_DEFAULT else stream
    if pointer != mine.ptr:
        event = engine.cupy.cuda.Event(disable_timing=True)
        engine.runtime.eventRecord(event.ptr, pointer)
        mine.wait_event(event)


def install() -> None:
    """Give tensors the attribute. It is not the core's, which knows no vendor; elsewhere it is an AttributeError."""
    setattr(Tensor, ATTRIBUTE, property(interface))
