"""``__cuda_array_interface__`` in both directions: the description of memory, and the synchronisation of streams."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.errors import UnsupportedDType
from candelabra.library import plugins
from candelabra_cuda import from_cuda_array_interface
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.exchange import install, payload_over


class DoubleBackend(CudaBackend):
    """CUDA's backend under another name."""

    name = "twin"


@pytest.fixture
def cupy(doubles: ModuleType) -> Iterator[Any]:
    """Install a backend on a double of CuPy for the test."""
    made = doubles.double()
    remove = plugins.add_backend(DoubleBackend(made))
    install()
    yield made
    remove()


def tensor(*shape: int, dtype: Any = cd.float32) -> cd.Tensor:
    """Return a tensor on the device of the double."""
    count = int(np.prod(shape))
    return cd.arange(count, dtype=dtype).reshape(*shape).to("twin")


def test_a_tensor_describes_its_memory(cupy: Any) -> None:
    """The description has address, shape and type, strides if the layout is not C order, and the stream."""
    x = tensor(3, 4)
    told = x.__cuda_array_interface__
    address = int(x._payload.buffer)
    assert told == {
        "shape": (3, 4), "strides": None, "typestr": "<f4", "data": (address, False), "version": 3,
        "stream": cupy.cuda.get_current_stream().ptr,
    }  # fmt: skip
    view = x[1:].t().__cuda_array_interface__
    assert (view["shape"], view["strides"], view["data"][0]) == ((4, 2), (4, 16), address + 16)
    assert x[:0].__cuda_array_interface__["data"] == (0, False)


def test_the_current_stream_can_be_asked_for(cupy: Any) -> None:
    """In a stream's block the current stream is that stream, as in PyTorch."""
    stream = cd.twin.Stream()  # type: ignore[attr-defined]
    assert cd.twin.current_stream() != stream  # type: ignore[attr-defined]
    with stream:
        assert cd.twin.current_stream() == stream  # type: ignore[attr-defined]
        told = tensor(2).__cuda_array_interface__
    assert told["stream"] == stream.cupy.ptr


def test_the_default_stream_has_the_number_1(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handle of the default stream is 0, which the interface forbids."""
    x = tensor(2)
    monkeypatch.setattr(cupy.cuda.get_current_stream(), "ptr", 0)
    assert x.__cuda_array_interface__["stream"] == 1


def test_a_tensor_elsewhere_has_no_such_attribute(cupy: Any) -> None:
    """``hasattr`` shows other libraries whether a tensor is on a GPU."""
    assert not hasattr(cd.ones(3), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="has no __cuda_array_interface__: move it to the GPU, or use DLPack"):
        cd.ones(3).__cuda_array_interface__  # noqa: B018


def test_what_cannot_be_described_says_what_to_do(cupy: Any) -> None:
    """A tensor that requires grad, and a bfloat16 tensor, raise an error with advice."""
    with pytest.raises(RuntimeError, match=r"of a tensor that requires grad: use tensor\.detach\(\)"):
        tensor(2).requires_grad_().__cuda_array_interface__  # noqa: B018
    with pytest.raises(UnsupportedDType, match="does not support bfloat16: use DLPack"):
        tensor(2, dtype=cd.bfloat16).__cuda_array_interface__  # noqa: B018


def described(array: Any, **changed: Any) -> Any:
    """Describe an array of the host as if it were another library's on the GPU."""
    told = {**array.__array_interface__, "version": 3, **changed}
    return SimpleNamespace(__cuda_array_interface__=told, array=array)


def test_memory_of_another_library_becomes_a_tensor(cupy: Any) -> None:
    """The tensor uses the same memory and keeps it alive."""
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    source = described(array)
    made = from_cuda_array_interface(source, "twin")
    assert (made.device.type, made.shape) == ("twin", (3, 4))
    array[0, 0] = 100
    assert made.tolist() == array.tolist()
    assert made._payload.buffer.owner.memory.owner is source
    strided = from_cuda_array_interface(described(array.T), "twin")
    assert (strided.shape, strided.stride()) == ((4, 3), (1, 4))
    assert cd.empty(0).tolist() == from_cuda_array_interface(described(array[:0, 0], data=(0, False)), "twin").tolist()


def test_our_stream_waits_for_the_producers(cupy: Any) -> None:
    """The stream waits by an event, not the host. There is no wait if both streams are the same, or none is given."""
    array = np.zeros(3, np.float32)
    mine = cupy.cuda.get_current_stream()
    for stream in (None, mine.ptr):
        from_cuda_array_interface(described(array, stream=stream), "twin")
    assert not [entry for entry in mine.log if entry[0] == "wait"]
    from_cuda_array_interface(described(array, stream=77), "twin")
    assert mine.log[-1][0] == "wait"
    from_cuda_array_interface(described(array, stream=1), "twin")
    assert [stream for _, stream in cupy.cuda.runtime.recorded] == [77, 0]
    assert cupy.cuda.runtime.recorded[-1][0] == mine.log[-1][1].ptr


def test_what_is_no_array_of_a_gpu_is_refused(cupy: Any, engine: Any) -> None:
    """Other objects, unsupported dtypes, masks, and negative or fractional strides are errors."""
    with pytest.raises(TypeError, match="expects an object with __cuda_array_interface__, got list"):
        from_cuda_array_interface([1, 2], "twin")
    array = np.zeros((2, 2), np.float32)
    for changed in ({"typestr": "<M8[s]"}, {"mask": array}):
        with pytest.raises(TypeError, match=r"does not support the type .* or a mask"):
            from_cuda_array_interface(described(array, **changed), "twin")
    for strides in ((-8, 4), (6, 2)):
        with pytest.raises(TypeError, match=r"does not support the strides \(.*\), in bytes"):
            payload_over(described(array, strides=strides).__cuda_array_interface__, None, engine)
