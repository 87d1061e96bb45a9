"""``candelabra.backends.<device type>``: whether it is available, and its switches."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from candelabra._annotations import Any, Final
from candelabra._device_modules import DeviceModule, device_module
from candelabra._plugins import registry
from candelabra.backends._libraries import Switchboard

KERNELS: Final = ("flash", "math", "mem_efficient", "cudnn")
"""PyTorch's implementations of attention. The switches are kept: a backend has one implementation, or none."""


class Matmul(Switchboard):
    """The switches of matrix products."""

    def __init__(self, name: str) -> None:
        allowed = {
            "allow_fp16_reduced_precision_reduction": True,
            "allow_bf16_reduced_precision_reduction": True,
            "allow_fp16_accumulation": False,
            "fp32_precision": "none",
        }
        super().__init__(name, "Switches of matrix products.", allowed)


class DeviceSwitches(Switchboard):
    """The switches of one device type."""

    def __init__(self, module: DeviceModule) -> None:
        name = f"candelabra.backends.{module.type}"
        super().__init__(name, f"Switches of devices of type {module.type!r}.", {f"{k}_sdp": True for k in KERNELS})
        self.__dict__["module"] = module
        self.__dict__["matmul"] = Matmul(f"{name}.matmul")

    def is_built(self) -> bool:
        """Return whether a plugin for the device type is installed."""
        return self.module.type in registry.plugins()

    def is_available(self) -> bool:
        """Return whether a device of this type can be used."""
        return bool(self.module.is_available())

    def get_cpu_capability(self) -> str:
        """Return the architecture of the host's processor."""
        return platform.machine()

    def preferred_linalg_library(self, backend: str | None = None) -> str:
        """Return ``"default"``: a backend has one implementation of linear algebra."""
        return "default"

    def preferred_blas_library(self, backend: str | None = None) -> str:
        """Return ``"default"``: a backend has one implementation of matrix products."""
        return "default"

    # -- attention ----------------------------------------------------------------------------------------------------
    def flash_sdp_enabled(self) -> bool:
        """Return the switch of flash attention."""
        return bool(self.flash_sdp)

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Set the switch of flash attention."""
        self.flash_sdp = enabled

    def math_sdp_enabled(self) -> bool:
        """Return the switch of attention by matrix products."""
        return bool(self.math_sdp)

    def enable_math_sdp(self, enabled: bool) -> None:
        """Set the switch of attention by matrix products."""
        self.math_sdp = enabled

    def mem_efficient_sdp_enabled(self) -> bool:
        """Return the switch of memory-efficient attention."""
        return bool(self.mem_efficient_sdp)

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """Set the switch of memory-efficient attention."""
        self.mem_efficient_sdp = enabled

    def cudnn_sdp_enabled(self) -> bool:
        """Return the switch of the library's attention."""
        return bool(self.cudnn_sdp)

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """Set the switch of the library's attention."""
        self.cudnn_sdp = enabled

    @contextmanager
    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """Return a context manager that sets the switches of attention and restores them."""
        wanted = dict(zip(KERNELS, (enable_flash, enable_math, enable_mem_efficient, enable_cudnn), strict=True))
        before = {kind: getattr(self, f"{kind}_sdp") for kind in KERNELS}
        try:
            self._set(wanted)
            yield
        finally:
            self._set(before)

    def _set(self, values: dict[str, Any]) -> None:
        for kind, value in values.items():
            setattr(self, f"{kind}_sdp", value)


@cache
def _switches(device_type: str) -> DeviceSwitches:
    module = device_module(device_type)
    assert module is not None
    return DeviceSwitches(module)


def switches_of(device_type: str) -> DeviceSwitches | None:
    """Return ``candelabra.backends.<device_type>``, one object per type, or None if it is no device type."""
    return None if device_module(device_type) is None else _switches(device_type)
