"""The device type ``rocm``, which has not been run on hardware: its calls of CuPy, checked with a double."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from candelabra.errors import DeviceUnavailable
from candelabra.library import plugins
from candelabra_clike import Source
from candelabra_clike.source import number, reads, writes
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.blas import CublasMatmul
from candelabra_cuda.hip import RocmBackend

SCALE = Source(
    "scale",
    (writes("out", "f32"), reads("a", "f32"), number("n"), number("factor", "f64")),
    "if (GLOBAL_ID < n) out[GLOBAL_ID] = a[GLOBAL_ID] * (f32)factor;",
)


@pytest.fixture
def hip(doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a double of CuPy built for ROCm."""
    made = doubles.double()
    monkeypatch.setattr(made.cuda.runtime, "is_hip", True, raising=False)
    monkeypatch.setattr(doubles.RawModule, "made", [])
    return made


def test_it_is_a_device_type_of_its_own(hip: Any) -> None:
    """Its devices have its name, and ROCm's number in DLPack."""
    backend = RocmBackend(hip)
    assert repr(backend.engine(0)) == "rocm:0"
    assert (backend.name, backend.capabilities.dlpack) == ("rocm", 10)
    assert "rocm" in plugins.plugins()


def test_kernels_are_compiled_and_launched_by_cupy(hip: Any, doubles: ModuleType, monkeypatch: Any) -> None:
    """HIPRTC gets the program with Clang's options; arguments are numbers of the kernel's types."""
    monkeypatch.setenv("CANDELABRA_BLOCKING", "1")
    engine = RocmBackend(hip).engine(0)
    memory = engine.allocate(4000)
    launch = engine.compile(SCALE)
    launch(1000, memory, memory, 1000, 2.5)
    (module,) = doubles.RawModule.made
    assert module.options == ("-std=c++17", "-ffp-contract=off")
    ((grid, block, args),) = module.launches
    assert (grid, block) == ((4, 1, 1), (256, 1, 1))
    assert [type(value) for value in args] == [np.uint64, np.uint64, np.uint32, np.float64, np.uint32]
    assert args[0] == int(memory)
    launch(0, memory, memory, 0, 2.5)
    assert len(module.launches) == 1


def test_kernels_of_groups_are_launched_as_such(hip: Any, doubles: ModuleType) -> None:
    """They do not get the number of work-items, and contracted ones lack the option against contraction."""
    engine = RocmBackend(hip).engine(0)
    source = Source("grouped", (writes("out", "u32"),), "out[GROUP_ID] = LOCAL_ID;", group=64, contract=True)
    engine.compile(source)((5, 7), engine.allocate(40))
    (module,) = doubles.RawModule.made
    assert module.options == ("-std=c++17",)
    assert module.launches[0][:2] == ((5, 7, 1), (64, 1, 1))


def test_products_of_matrices_are_kernels_of_our_own(hip: Any) -> None:
    """cuBLAS is not called."""
    assert not isinstance(RocmBackend(hip).kernels()["matmul"], CublasMatmul)


def test_each_device_type_names_the_build_of_cupy_that_it_lacks(hip: Any, cupy: Any, doubles: ModuleType) -> None:
    """CUDA's build of CuPy cannot be used for ROCm, nor ROCm's for CUDA."""
    with pytest.raises(
        DeviceUnavailable, match=r"the installed CuPy is for CUDA: install CuPy for your version of ROCm"
    ):
        RocmBackend(doubles.double()).devices()
    with pytest.raises(DeviceUnavailable, match=r"CuPy is for ROCm, whose device type is rocm. .*candelabra\[cuda\]"):
        CudaBackend(hip).devices()


def test_a_failing_driver_of_rocm_is_said(hip: Any, doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has ROCm's message."""

    def fails() -> None:
        raise doubles.CUDARuntimeError("hipErrorNoDevice")

    monkeypatch.setattr(hip.cuda.runtime, "getDeviceCount", fails)
    with pytest.raises(DeviceUnavailable, match="ROCm reports no device: hipErrorNoDevice"):
        RocmBackend(hip).devices()
