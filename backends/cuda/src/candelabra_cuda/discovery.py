"""The CUDA devices, and the reason if there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from candelabra.errors import DeviceUnavailable

INSTALL = "pip install 'candelabra[cuda]' for CUDA 13, 'candelabra[cuda12]' for CUDA 12"
INSTALL_HIP = "install CuPy for your version of ROCm (https://docs.cupy.dev) in its place"


class CudaDevice(NamedTuple):
    """A device: its number in the driver, its name, and its facts for ``candelabra devices``."""

    number: int
    name: str
    facts: Mapping[str, str]


def load() -> Any:
    """CuPy. Raises ``DeviceUnavailable`` where it is not installed or cannot be loaded."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceUnavailable(f"CuPy cannot be imported ({error}): {INSTALL}") from error
    return cupy


def find(cupy: Any, hip: bool = False) -> list[CudaDevice]:
    """Return every device of the driver. Raises ``DeviceUnavailable`` with the reason if there is none.

    With ``hip``, AMD's devices are returned, which need another build of CuPy.
    """
    runtime = cupy.cuda.runtime
    if hip and not runtime.is_hip:
        raise DeviceUnavailable(f"the installed CuPy is for CUDA: {INSTALL_HIP}")
    if runtime.is_hip and not hip:
        raise DeviceUnavailable(f"the installed CuPy is for ROCm, whose device type is rocm. For CUDA: {INSTALL}")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceUnavailable(_reason(runtime, error)) from error
    if not count:
        raise DeviceUnavailable("the NVIDIA driver reports no device: does CUDA_VISIBLE_DEVICES hide all of them?")
    return [_device(runtime, index) for index in range(count)]


def _reason(runtime: Any, error: Exception) -> str:
    driver = runtime.driverGetVersion()
    if runtime.is_hip:
        return f"ROCm reports no device: {error}"
    if not driver:
        return f"no NVIDIA driver was found (libcuda.so.1): install it, then run nvidia-smi ({error})"
    built = runtime.runtimeGetVersion()
    if driver < built:
        return (
            f"the NVIDIA driver is too old: it supports CUDA {version(driver)}, the installed CuPy needs "
            f"{version(built)}. Update the driver, or {INSTALL}"
        )
    return f"the NVIDIA driver (CUDA {version(driver)}) reports no device: {error}"


def version(number: int) -> str:
    """Return ``"13.2"`` for 13020."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _device(runtime: Any, index: int) -> CudaDevice:
    properties = runtime.getDeviceProperties(index)
    name = properties["name"]
    return CudaDevice(
        index,
        name.decode() if isinstance(name, bytes) else name,
        {
            "compute": f"{properties['major']}.{properties['minor']}",
            "memory": f"{properties['totalGlobalMem'] / 2**30:.1f} GiB",
            "multiprocessors": str(properties["multiProcessorCount"]),
            "driver": version(runtime.driverGetVersion()),
            "runtime": version(runtime.runtimeGetVersion()),
        },
    )
