"""``autocast``: run matrix products in lower precision and sums in float32, chosen per operator.

The records of the operators name their lists; ``candelabra._dispatch.autocasting`` casts. As ``torch.amp``, after
Micikevicius et al., Mixed precision training, 2018.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps

from candelabra._annotations import Any, Final
from candelabra._device import device, open_device
from candelabra._device_attributes import is_device_type
from candelabra._device_modules import device_module
from candelabra._dispatch import autocasting
from candelabra._plugins import registry
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype as dtype_type


def is_autocast_available(device_type: str) -> bool:
    """Return whether a device of that type can be used, and computes in float16 or bfloat16."""
    module = device_module(device_type)
    if module is None or not module.is_available():
        return False
    return any(d.is_half for d in open_device(device(device_type)).capabilities.arithmetic)


class autocast:
    """A context manager and decorator: inside it, operators choose the dtype that they compute in.

    ``device_type``: the devices that it is for; tensors on others are not cast. ``dtype``: the lower precision, by
    default that of :func:`get_autocast_dtype`. ``enabled=False`` turns autocast off inside another context.
    ``cache_enabled``: cast a parameter once and not at each use, by default True.

    If the device cannot be used or lacks the dtype, it warns and has no effect. Raises ``ValueError`` if
    ``device_type`` is not a string, ``RuntimeError`` if it is no device type.
    """

    def __init__(
        self, device_type: str, dtype: dtype_type | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_device_type(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type {device_type!r}")
        self.device = device_type
        self._enabled = enabled and self._usable(dtype)
        self.fast_dtype: dtype_type | None = dtype
        if dtype is None and self._enabled:
            self.fast_dtype = autocasting.lower_precision(device_type)
        self._cache_enabled = cache_enabled
        self._outer: list[tuple[dict[str, dtype_type], bool]] = []

    def _usable(self, d: dtype_type | None) -> bool:
        if not is_autocast_available(self.device):
            warnings.warn(
                f"User provided device_type of {self.device!r}, but no such device is available that computes in a "
                "lower precision. Disabling",
                UserWarning,
                stacklevel=3,
            )
            return False
        capabilities = open_device(device(self.device)).capabilities
        if d is None or (d.is_half and d in capabilities.arithmetic):
            return True
        halves = ", ".join(sorted(str(h) for h in capabilities.arithmetic if h.is_half))
        warnings.warn(
            f"In {self.device} autocast, but the target dtype {d} is not supported. Disabling autocast.\n"
            f"{self.device} autocast supports {halves}.",
            UserWarning,
            stacklevel=3,
        )
        return False

    def __enter__(self) -> autocast:
        settings = autocasting.settings
        self._outer.append((settings.enabled, settings.cache_enabled))
        enabled = {name: d for name, d in settings.enabled.items() if name != self.device}
        if self._enabled:
            assert self.fast_dtype is not None
            enabled[self.device] = self.fast_dtype
        settings.nesting += 1
        if self._cache_enabled is not None:
            settings.cache_enabled = self._cache_enabled
        if enabled or settings.enabled:
            autocasting.enable(enabled)
        return self

    def __exit__(self, *_: object) -> None:
        settings = autocasting.settings
        enabled, settings.cache_enabled = self._outer.pop()
        if autocast_decrement_nesting() == 0:
            autocasting.clear_cache()
        if enabled or settings.enabled:
            autocasting.enable(enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``func`` inside the context: what ``@autocast_instance`` returns."""
    return autocast_instance(func)


# -- functions that read and set the state -----------------------------------------------------------------------------
def _accelerators() -> list[str]:
    return [name for name in autocasting.settings.enabled if not registry.backend(name)[0].capabilities.host]


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether autocast is on in this thread for a device type, by default for any accelerator."""
    if device_type is None:
        return bool(_accelerators())
    return device_type in autocasting.settings.enabled


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turn autocast on or off in this thread for a device type; with one argument, for the accelerator."""
    if isinstance(device_type, bool):
        set_autocast_enabled(registry.accelerator(), device_type)
        return
    others = {name: d for name, d in autocasting.settings.enabled.items() if name != device_type}
    autocasting.enable(others | ({device_type: autocasting.lower_precision(device_type)} if enabled else {}))


def get_autocast_dtype(device_type: str) -> dtype_type:
    """Return the lower precision of a device type: float16, and bfloat16 for devices in the host's memory."""
    return autocasting.settings.enabled.get(device_type) or autocasting.lower_precision(device_type)


def set_autocast_dtype(device_type: str, dtype: dtype_type) -> None:
    """Set the lower precision of a device type in this thread."""
    settings = autocasting.settings
    settings.chosen = {**settings.chosen, device_type: dtype}
    if device_type in settings.enabled:
        settings.enabled = {**settings.enabled, device_type: dtype}


def is_autocast_cache_enabled() -> bool:
    """Return whether the casts of parameters are kept until the outermost context ends."""
    return autocasting.settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether the casts of parameters are kept until the outermost context ends."""
    autocasting.settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Release the casts of parameters that are kept."""
    autocasting.clear_cache()


def autocast_increment_nesting() -> int:
    """Enter one more context, and return how many there are. For code that sets the state by functions."""
    autocasting.settings.nesting += 1
    return autocasting.settings.nesting


def autocast_decrement_nesting() -> int:
    """Leave a context, and return how many there are."""
    autocasting.settings.nesting -= 1
    return autocasting.settings.nesting


# -- PyTorch's older names, which contain the device type --------------------------------------------------------------
def of_device_type(name: str) -> Callable[..., Any] | None:
    """Return ``get_autocast_<type>_dtype``, ``is_autocast_<type>_enabled`` or their setters, or None for other names.

    ``gpu`` is the accelerator, of any type.
    """
    for before, after, function in OLDER:
        device_type = name.removeprefix(before).removesuffix(after)
        if name.startswith(before) and name.endswith(after) and (device_type == "gpu" or is_device_type(device_type)):
            return partial(_of_type, function, device_type)
    return None


def _of_type(function: Callable[..., Any], device_type: str, *args: Any) -> Any:
    return function(registry.accelerator() if device_type == "gpu" else device_type, *args)


OLDER: Final = (
    ("get_autocast_", "_dtype", get_autocast_dtype), ("set_autocast_", "_dtype", set_autocast_dtype),
    ("is_autocast_", "_enabled", is_autocast_enabled), ("set_autocast_", "_enabled", set_autocast_enabled),
)  # fmt: skip


# -- autograd.Function under autocast ----------------------------------------------------------------------------------
def _cast(value: Any, device_type: str, d: dtype_type) -> Any:
    if isinstance(value, Tensor):
        eligible = value.device.type == device_type and value.is_floating_point() and value.itemsize <= 4
        return value.to(d) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, d): _cast(v, device_type, d) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, d) for v in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype_type | None = None
) -> Callable[..., Any]:
    """Decorate ``forward`` of an ``autograd.Function``, so that it may be called under autocast.

    With ``cast_inputs``, floating arguments on the device type are cast to that dtype, and ``forward`` runs with
    autocast off. Otherwise it runs under the caller's autocast. Raises ``ValueError`` if ``device_type`` is not a
    string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return lambda function: custom_fwd(function, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        active = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type) if active else None
        ctx._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            given = _cast(args, device_type, cast_inputs), _cast(kwargs, device_type, cast_inputs)
            return fwd(ctx, *given[0], **given[1])

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate ``backward`` of an ``autograd.Function``: it runs under the autocast of its ``forward``.

    Raises ``ValueError`` if ``device_type`` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return lambda function: custom_bwd(function, device_type=device_type)

    @wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


__all__ = [
    "autocast", "autocast_decorator", "autocast_decrement_nesting", "autocast_increment_nesting",
    "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_dtype", "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype",
    "set_autocast_enabled",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
