"""``candelabra.<device type>.amp``: PyTorch's older paths, whose classes have their device type already."""

from __future__ import annotations

from functools import cache, partial
from types import ModuleType

from candelabra.amp import autocast_mode, grad_scaler
from candelabra.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from candelabra.amp.grad_scaler import GradScaler
from candelabra.dtypes import dtype as dtype_type


class AmpModule(ModuleType):
    """The module of one device type."""

    def __init__(self, device_type: str) -> None:
        super().__init__(f"candelabra.{device_type}.amp", f"Mixed precision on devices of type {device_type!r}.")

        class DeviceAutocast(autocast):
            """``autocast`` for this device type."""

            def __init__(
                self, enabled: bool = True, dtype: dtype_type | None = None, cache_enabled: bool | None = True
            ) -> None:
                super().__init__(device_type, dtype, enabled, cache_enabled)

        class DeviceGradScaler(GradScaler):
            """``GradScaler`` whose scale is on this device type."""

            def __init__(
                self,
                init_scale: float = 2.0**16,
                growth_factor: float = 2.0,
                backoff_factor: float = 0.5,
                growth_interval: int = 2000,
                enabled: bool = True,
            ) -> None:
                super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

        DeviceAutocast.__name__, DeviceGradScaler.__name__ = "autocast", "GradScaler"
        self.autocast = DeviceAutocast
        self.GradScaler = DeviceGradScaler
        self.custom_fwd = partial(custom_fwd, device_type=device_type)
        self.custom_bwd = partial(custom_bwd, device_type=device_type)
        self.__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
        self.autocast_mode = _module(f"{self.__name__}.autocast_mode", autocast_mode, autocast=DeviceAutocast)
        self.grad_scaler = _module(f"{self.__name__}.grad_scaler", grad_scaler, GradScaler=DeviceGradScaler)


def _module(name: str, source: ModuleType, **replaced: object) -> ModuleType:
    made = ModuleType(name, source.__doc__)
    vars(made).update({n: getattr(source, n) for n in source.__all__} | replaced | {"__all__": source.__all__})
    return made


@cache
def amp_module(device_type: str) -> AmpModule:
    """Return ``candelabra.<device_type>.amp``, one object per type."""
    return AmpModule(device_type)
