"""The CUDA array interface, version 3, which shares arrays with CuPy, Numba and PyTorch, synchronised by streams.

Source: Numba's documentation, "CUDA Array Interface". The exporter names the stream that uses the memory, and the
importer waits for that stream. Here it waits by an event, so that the host does not wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from candelabra import Tensor
from candelabra.errors import UnsupportedDType
from candelabra.library import plugins, wrap
from candelabra_clike import StridedArray

from candelabra_cuda.arrays import FROM_NUMPY, TO_NUMPY
from candelabra_cuda.memory import DeviceMemory

if TYPE_CHECKING:
    from candelabra_cuda.backend import CudaBackend
    from candelabra_cuda.engine import CudaEngine

VERSION = 3
LEGACY_DEFAULT = 1
"""The number of the default stream in the interface; its handle 0 would be ambiguous there."""
ATTRIBUTE = "__cuda_array_interface__"


def interface(tensor: Tensor) -> dict[str, Any]:
    """Return the description of the memory of a tensor on the GPU.

    Raises ``AttributeError`` for a tensor on another device, ``RuntimeError`` for one that requires grad, because the
    other library would not record history, and ``UnsupportedDType`` for bfloat16, which the interface does not support.
    """
    payload: Any = tensor._payload
    if not isinstance(payload, StridedArray) or not isinstance(payload.buffer, DeviceMemory):
        raise AttributeError(f"a tensor on {tensor.device} has no {ATTRIBUTE}: move it to the GPU, or use DLPack")
    if tensor.requires_grad:
        raise RuntimeError(f"{ATTRIBUTE} of a tensor that requires grad: use tensor.detach()")
    if payload.dtype.name == "bfloat16":
        raise UnsupportedDType(f"{ATTRIBUTE} does not support bfloat16: use DLPack (from_dlpack of the other library)")
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
    """Return a tensor over the memory of an object with ``__cuda_array_interface__``, such as Numba's, which has no
    DLPack.

    Raises ``TypeError`` for other objects and for unsupported dtypes.
    """
    described = getattr(source, ATTRIBUTE, None)
    if described is None:
        raise TypeError(f"from_cuda_array_interface() expects an object with {ATTRIBUTE}, got {type(source).__name__}")
    owner: Any = plugins.backend(device_type)[0]
    backend: CudaBackend = owner
    index = device_of(backend, described["data"][0])
    from candelabra.library import open_device

    payload = payload_over(described, source, backend.engine(index))
    return wrap(payload, open_device(f"{device_type}:{index}").keys_for(payload.dtype))


def device_of(backend: CudaBackend, address: int) -> int:
    """Return the number of the device that owns an address. An empty array has no address and gets device 0."""
    if not address:
        return 0
    return int(backend.cupy.cuda.runtime.pointerGetAttributes(address).device)


def payload_over(described: dict[str, Any], source: Any, engine: CudaEngine) -> StridedArray:
    """Return the payload over the memory that an interface describes.

    Our current stream waits for the exporter's stream.
    """
    d = np.dtype(described["typestr"])
    if d not in FROM_NUMPY or described.get("mask") is not None:
        raise TypeError(f"from_cuda_array_interface() does not support the type {described['typestr']!r} or a mask")
    shape = tuple(described["shape"])
    steps = described.get("strides") or contiguous_steps(shape, d.itemsize)
    if any(step < 0 or step % d.itemsize for step in steps):
        raise TypeError(f"from_cuda_array_interface() does not support the strides {tuple(steps)}, in bytes")
    address = described["data"][0]
    cuda = engine.cupy.cuda
    engine.enter()
    wait_for_stream(engine, described.get("stream"))
    nbytes = d.itemsize + sum((size - 1) * step for size, step in zip(shape, steps)) if address else 0
    owner = cuda.MemoryPointer(cuda.UnownedMemory(address, nbytes, source, engine.index), 0)
    strides = tuple(step // d.itemsize for step in steps)
    memory = DeviceMemory(owner)
    return StridedArray(engine, memory, (), (), 0, FROM_NUMPY[d], 1, True).restrided(shape, strides, 0)


def contiguous_steps(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order, in bytes."""
    steps, step = [], itemsize
    for size in reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(reversed(steps))


def wait_for_stream(engine: CudaEngine, stream: int | None) -> None:
    """Make the thread's current stream wait for another library's stream. Without a number, it need not wait."""
    if stream is None:
        return
    current = engine.stream()
    pointer = 0 if stream == LEGACY_DEFAULT else stream
    if pointer != current.ptr:
        event = engine.cupy.cuda.Event(disable_timing=True)
        engine.runtime.eventRecord(event.ptr, pointer)
        current.wait_event(event)


def install() -> None:
    """Add the attribute to tensors. It is not part of the core, which knows no vendor."""
    setattr(Tensor, ATTRIBUTE, property(interface))
