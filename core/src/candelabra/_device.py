"""Devices: a type (a backend's name) and an index.

A :class:`device` is only a name. Its backend is loaded when the first tensor is created on the device or moved there.
An :class:`Instance` is an open device, with its bit in dispatch keys, its kernels, and its keys per dtype.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import DEVICE_SHIFT
from candelabra.dtypes import ALL, dtype
from candelabra.errors import DeviceUnavailable, UnsupportedDType

if TYPE_CHECKING:
    from candelabra.backend import Backend


class device:
    """A device's name: ``device("cpu")``, ``device("acme:1")``, ``device("acme", 1)``, or a copy of another.

    As a context manager it is the default device of this thread inside the block; as a decorator, inside the function.
    Two devices are equal if type and index are, where an absent index is 0. The device of a tensor has no index if its
    type has one device without memory of its own, as the host has: ``str(x.device)`` is then the type.
    """

    __slots__ = ("type", "index")

    def __init__(self, type: str | device, index: int | None = None) -> None:
        name: Any = type
        if isinstance(name, device):
            name, index = name.type, name.index if index is None else index
        if not isinstance(name, str):
            raise TypeError(f"device() expects a string such as 'name' or 'name:0', got {name!r}")
        kind, colon, number = name.partition(":")
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {name}"
                )
            if not number.isdecimal() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"invalid device string: {name!r}; expected 'name' or 'name:index'")
            index = int(number)
        if not kind.isidentifier():
            raise RuntimeError(f"invalid device string: {name!r}; expected 'name' or 'name:index'")
        if index is not None and (not isinstance(index, int) or index < 0):
            raise RuntimeError(f"device index must be a non-negative int, got {index!r}")
        self.type: str = kind
        self.index: int | None = index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + ("" if self.index is None else f", index={self.index}") + ")"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and (self.index or 0) == (other.index or 0)

    def __hash__(self) -> int:
        return hash((self.type, self.index or 0))

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return device, (str(self),)

    def __enter__(self) -> device:
        _default.outer = (_default.device, _default.outer)
        _default.device = self
        return self

    def __exit__(self, *_: object) -> None:
        assert _default.outer is not None
        _default.device, _default.outer = _default.outer

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def on_device(*args: Any, **kwargs: Any) -> Any:
            with device(self):
                return function(*args, **kwargs)

        return on_device


def named_device(backend: Backend, index: int, count: int) -> device:
    """Return the name of one of a backend's ``count`` devices, as ``x.device`` and error messages have it.

    The name has no index if there is nothing to count: the device uses the host's memory or has no data, and it is the
    only one of its type. So ``str(x.device)`` is the device type, which PyTorch's programs compare with.
    """
    only = count == 1 and (backend.capabilities.host or not backend.capabilities.data)
    return device(backend.name, None if only else index)


class Instance:
    """An open device. ``keys[dtype]`` are the dispatch keys of its tensors, ``bit`` is the device's own bit in them."""

    __slots__ = (
        "device", "backend", "index", "bit", "keys", "kernels", "capabilities", "immutable", "lazy", "depth",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, backend: Backend, index: int, bit: int, kernels: Any, count: int, depth: int = 0) -> None:
        self.device: Final = named_device(backend, index, count)
        self.backend: Final = backend
        self.index: Final = index
        self.bit: Final = bit
        self.kernels = kernels
        """The kernels, shared by all instances of the backend, so that a later registration affects all of them."""
        self.capabilities: Final = backend.capabilities_of(index)
        self.keys: Final[dict[dtype, int]] = {d: bit | d.bit for d in ALL if d in self.capabilities.storage}
        self.immutable: Final = not self.capabilities.mutable
        self.lazy: Final = _is_lazy(backend)
        self.depth: Final = depth
        """The depth of a function transform's level, 1 for the outermost; 0 for a device."""

    def __repr__(self) -> str:
        return f"<device instance {self.device}>"

    def keys_for(self, d: dtype) -> int:
        """Return the dispatch keys of tensors of dtype ``d``. Raise UnsupportedDType if the device lacks it."""
        try:
            return self.keys[d]
        except KeyError:
            held = ", ".join(k.name for k in self.keys)
            raise UnsupportedDType(
                f"device {str(self.device)!r} cannot hold {d}: it stores {held}; convert first with .to(dtype)"
            ) from None


def _is_lazy(backend: Backend) -> bool:
    """Return whether the backend has a method ``evaluate`` of its own, as lazy ones do."""
    from candelabra.backend import Backend

    return type(backend).evaluate is not Backend.evaluate


class _DefaultDevice(threading.local):
    """The default device of a thread, and those of its enclosing blocks."""

    device: device | None = None
    outer: tuple[Any, Any] | None = None
    current: dict[str, int] | None = None
    """Per device type, the index that its name without index means, if it is not 0."""


_default: Final = _DefaultDevice()
_process_default: list[device | None] = [None]
_instances: Final[dict[device, Instance]] = {}
_by_bit: Final[dict[int, Instance]] = {}
lazy_instances: Final[list[Instance]] = []
"""The open devices that record their work and compute when asked. Empty in most programs."""
_lock: Final = threading.RLock()


def open_device(name: device | str | int | None = None) -> Instance:
    """Open the device of that name (None: the default device). This loads its backend at the first use."""
    if name is None:
        name = _default.device or _process_default[0] or _fallback_default()
    elif isinstance(name, int):
        name = device(_accelerator(), name)
    elif not isinstance(name, device):
        name = device(name)
    if name.index is None and _default.current:
        name = device(name.type, _default.current.get(name.type, 0))
    try:
        return _instances[name]
    except KeyError:
        return _open(name)


def _open(name: device) -> Instance:
    from candelabra._plugins import registry
    from candelabra._plugins.checking import check_capabilities

    backend, kernels = registry.backend(name.type)
    with _lock:
        if name in _instances:
            return _instances[name]
        count = len(registry.devices_of(backend))
        index = name.index or 0
        if index >= count:
            raise DeviceUnavailable(
                f"device {str(name)!r} does not exist: backend {name.type!r} offers {count} device(s)"
                + (f", '{name.type}:0' to '{name.type}:{count - 1}'" if count else "")
            )
        capabilities = backend.capabilities_of(index)
        if capabilities is not backend.capabilities:
            check_capabilities(f"{backend.name}:{index}", capabilities)
        bit = 1 << (DEVICE_SHIFT + len(_by_bit))
        instance = _instances[device(name.type, index)] = _by_bit[bit] = Instance(backend, index, bit, kernels, count)
        if instance.lazy:
            lazy_instances.append(instance)
        return instance


def new_level(backend: Backend, depth: int, kernels: Any) -> Instance:
    """Return a new instance for a function transform at a depth. It has no name by which it could be opened."""
    with _lock:
        bit = 1 << (DEVICE_SHIFT + len(_by_bit))
        instance = _by_bit[bit] = Instance(backend, depth, bit, kernels, depth + 1, depth)
        return instance


def instance_of_key(key: int) -> Instance:
    """Return the device whose bit is in a key; the lowest, if there are several."""
    bits = key >> DEVICE_SHIFT
    return _by_bit[(bits & -bits) << DEVICE_SHIFT]


def instances_of_key(key: int) -> list[Instance]:
    """Return every device whose bit is in a key."""
    return [instance for bit, instance in _by_bit.items() if key & bit]


def open_instances() -> list[Instance]:
    """Return the devices that were used so far."""
    return list(_instances.values())


def current_index(device_type: str) -> int:
    """Return the index that a device type without index means in this thread."""
    return (_default.current or {}).get(device_type, 0)


def set_current_index(device_type: str, index: int) -> None:
    """Set the index that a device type without index means in this thread."""
    _default.current = {**(_default.current or {}), device_type: index}


def _fallback_default() -> device:
    from candelabra._plugins import registry

    chosen = _process_default[0] = registry.default_device()
    return chosen


def _accelerator() -> str:
    # PyTorch reads a bare int as the index of the current accelerator.
    from candelabra._plugins import registry

    return registry.accelerator()


def get_default_device() -> device:
    """Return the device of new tensors for which no device is given."""
    return open_device().device


def set_default_device(name: device | str | None) -> None:
    """Set the default device of the process. ``None`` means the reference device."""
    _process_default[0] = None if name is None else open_device(name).device


def forget_instances(device_type: str) -> None:
    """Remove the open devices of a type whose backend was removed. Their tensors keep working."""
    with _lock:
        for name in [name for name in _instances if name.type == device_type]:
            del _instances[name]
        lazy_instances[:] = [instance for instance in lazy_instances if instance.device.type != device_type]
        if _process_default[0] is not None and _process_default[0].type == device_type:
            _process_default[0] = None
