"""``candelabra.<device type>``, for every device type.

The functions are those of PyTorch's device modules. A device type with a plugin uses it. A device type that only has a
registered name (see ``candelabra._plugins.names``) is not available, and its errors name the package to install.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import ModuleType

from candelabra._absent import say_once
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import (
    current_index,
    device,
    get_default_device,
    named_device,
    open_instances,
    set_current_index,
)
from candelabra._device_attributes import DeviceLike, instance_of_type, is_device_type
from candelabra._device_properties import DeviceProperties
from candelabra._plugins import registry
from candelabra._random.generator import default_generator, manual_seed, seed
from candelabra.dtypes import bfloat16
from candelabra.errors import BackendError, OutOfMemoryError

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._tensor import Tensor


def devices() -> list[device]:
    """Return every device of every working backend, in alphabetical order of the types. This loads all plugins."""
    counts = [(made, registry.device_count(made)) for _, made in registry.working()]
    return [named_device(made, index, count) for made, count in counts for index in range(count)]


class DeviceModule(ModuleType):
    """PyTorch's functions for one device type. ``device=`` is an index, a device, a name, or None (current)."""

    def __init__(self, device_type: str) -> None:
        super().__init__(f"candelabra.{device_type}", f"The devices of type {device_type!r}.")
        self.type: Final = device_type

    # -- availability and properties ----------------------------------------------------------------------------------
    def unavailable_reason(self) -> str | None:
        """Return the reason why no device of this type can be used, in a sentence, or None if one can."""
        try:
            made, _ = registry.backend(self.type)
            found = registry.devices_of(made)
        except BackendError as error:
            return f"{error}"
        return None if found else f"backend {self.type!r} offers no devices"

    def is_available(self) -> bool:
        """Return whether a device of this type can be used. It never raises."""
        return self.unavailable_reason() is None

    def device_count(self) -> int:
        """Return the number of devices of this type; 0 without a plugin."""
        try:
            return registry.device_count(registry.backend(self.type)[0])
        except BackendError:
            return 0

    def is_initialized(self) -> bool:
        """Return whether a device of this type was used in this process."""
        return any(instance.device.type == self.type for instance in open_instances())

    def init(self) -> None:
        """Open the current device. Raise BackendError with the reason if that fails."""
        self._instance(None)

    def get_device_name(self, device: DeviceLike = None) -> str:
        """Return the device's descriptive name."""
        return self.get_device_properties(device).name

    def get_device_properties(self, device: DeviceLike = None) -> DeviceProperties:
        """Return the name and the facts that the backend reports."""
        instance = self._instance(device)
        return DeviceProperties(registry.devices_of(instance.backend)[instance.index])

    def get_device_capability(self, device: DeviceLike = None) -> tuple[int, int]:
        """Return the fact ``compute``, a version as two numbers. Raise NotImplementedError if there is none."""
        found = self.get_device_properties(device).facts.get("compute")
        if not isinstance(found, tuple):
            raise NotImplementedError(f"backend {self.type!r} reports no compute capability")
        return int(found[0]), int(found[1])

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Return whether a device computes in bfloat16; False without a device."""
        return self.is_available() and bfloat16 in self._instance(None).capabilities.arithmetic

    def get_arch_list(self) -> list[str]:
        """Return an empty list: no architectures are compiled in."""
        return []

    # -- the current device -------------------------------------------------------------------------------------------
    def current_device(self) -> int:
        """Return the index of the current device of this thread."""
        return self._instance(None).index

    def set_device(self, device: DeviceLike) -> None:
        """Make a device the current one of its type in this thread. Negative indices are ignored, as in PyTorch."""
        if isinstance(device, int) and device < 0:
            return
        set_current_index(self.type, self._instance(device).index)

    @contextmanager
    def device(self, device: DeviceLike) -> Iterator[None]:
        """Return a context manager that makes a device the current one of its type."""
        before = current_index(self.type)
        self.set_device(device)
        try:
            yield
        finally:
            set_current_index(self.type, before)

    @contextmanager
    def device_of(self, obj: Any) -> Iterator[None]:
        """Return a context manager that makes the device of a tensor the current one, if it is of this type."""
        found = getattr(obj, "device", None)
        with self.device(found) if found is not None and found.type == self.type else nullcontext():
            yield

    # -- work and memory ----------------------------------------------------------------------------------------------
    def synchronize(self, device: DeviceLike = None) -> None:
        """Wait for all submitted work of the device, and raise its errors."""
        instance = self._instance(device)
        instance.backend.synchronize(instance.index)

    def Stream(self, device: DeviceLike = None) -> Any:
        """Return a new stream. Raise NotImplementedError if the backend has no streams."""
        instance = self._instance(device)
        return instance.backend.stream(instance.index)

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        """Return a context manager in which this thread submits its work to a stream; None has no effect."""
        with nullcontext() if stream is None else stream:
            yield

    def current_stream(self, device: DeviceLike = None) -> Any:
        """Return this thread's current stream. Raise NotImplementedError if the backend has no streams."""
        instance = self._instance(device)
        return instance.backend.current_stream(instance.index)

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
        """Return a new event of the current device; see :class:`candelabra._events.Event`."""
        from candelabra._events import Event

        return Event(lambda: self._instance(None), enable_timing, blocking, interprocess)

    def memory_stats(self, device: DeviceLike = None) -> dict[str, int]:
        """Return the counters of the backend and of those who contribute kernels to it, added: ``allocated``,
        ``peak`` … in bytes; empty before the first use.
        """
        return _memory(self._instance(device)) if self.is_initialized() else {}

    def memory_allocated(self, device: DeviceLike = None) -> int:
        """Return the current number of bytes in tensors, or 0 if the backend does not count."""
        return self.memory_stats(device).get("allocated", 0)

    def max_memory_allocated(self, device: DeviceLike = None) -> int:
        """Return the maximum number of bytes in tensors since the start of the process or since
        :meth:`reset_peak_memory_stats`, or 0 if the backend does not count.
        """
        return self.memory_stats(device).get("peak", 0)

    def memory_reserved(self, device: DeviceLike = None) -> int:
        """Return the number of bytes that the backend holds, including free blocks, or 0 if it does not count."""
        return self.memory_stats(device).get("reserved", 0)

    def max_memory_reserved(self, device: DeviceLike = None) -> int:
        """Return the maximum number of bytes that the backend held, or 0 if it does not count."""
        stats = self.memory_stats(device)
        return stats.get("peak_reserved", stats.get("reserved", 0))

    def mem_get_info(self, device: DeviceLike = None) -> tuple[int, int]:
        """Return the bytes that are not in use by this process, and all bytes of the device.

        Raises ``NotImplementedError`` if the backend does not report the device's memory.
        """
        total = self.get_device_properties(device).facts.get("memory")
        if not isinstance(total, int):
            raise NotImplementedError(f"backend {self.type!r} does not report how much memory a device has")
        return max(total - self.memory_reserved(device), 0), total

    def reset_peak_memory_stats(self, device: DeviceLike = None) -> None:
        """Let the peak of allocated memory be what is allocated now.

        Warns once if the backend keeps the peak since the start of the process.
        """
        if not _reset_peak(self._instance(device)):
            say_once("peak", "reset_peak_memory_stats has no effect: the peak is that since the start of the process")

    reset_max_memory_allocated = reset_peak_memory_stats
    OutOfMemoryError = OutOfMemoryError

    def memory_summary(self, device: DeviceLike = None, abbreviated: bool = False) -> str:
        """Return the counters of :meth:`memory_stats` as a table."""
        rows = self.memory_stats(device).items()
        return "\n".join([f"memory of {self.type}", *(f"{name:<20}{number:>20,} B" for name, number in rows)])

    def ipc_collect(self) -> None:
        """Do nothing: no memory is shared between processes."""

    def empty_cache(self) -> None:
        """Release the unused pooled memory of all used devices of this type."""
        for instance in open_instances():
            if instance.device.type == self.type:
                _memory(instance, release=True)

    # -- random numbers -----------------------------------------------------------------------------------------------
    def manual_seed(self, seed: int) -> None:
        """Seed the generators of all devices. Do nothing if no device of this type exists."""
        if self.is_available():
            manual_seed(seed)

    manual_seed_all = manual_seed

    def seed(self) -> None:
        """Seed the generators of all devices with a random number of the operating system."""
        if self.is_available():
            seed()

    seed_all = seed

    def initial_seed(self) -> int:
        """Return the seed of the current device's generator."""
        return default_generator(self._instance(None)).initial_seed()

    def get_rng_state(self, device: DeviceLike = None) -> Tensor:
        """Return the state of a device's generator."""
        return default_generator(self._instance(device)).get_state()

    def set_rng_state(self, new_state: Tensor, device: DeviceLike = None) -> None:
        """Restore the state of a device's generator."""
        default_generator(self._instance(device)).set_state(new_state)

    def get_rng_state_all(self) -> list[Tensor]:
        """Return the states of all devices' generators; an empty list without a device."""
        return [self.get_rng_state(index) for index in range(self.device_count())]

    def set_rng_state_all(self, new_states: Iterable[Tensor]) -> None:
        """Restore the states of all devices' generators."""
        for index, state in enumerate(new_states):
            self.set_rng_state(state, index)

    # -- types and submodules -----------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        from candelabra._tensor_types import DTYPES, tensor_type

        if name in DTYPES:
            return tensor_type(name, self.type)
        if name != "amp":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from candelabra.amp._of_device import amp_module

        return amp_module(self.type)

    # -- internal -----------------------------------------------------------------------------------------------------
    def _instance(self, name: DeviceLike) -> Instance:
        return instance_of_type(self.type, name)

    def __repr__(self) -> str:
        return f"<device module {self.__name__!r}>"


def _memory(instance: Instance, release: bool = False) -> dict[str, int]:
    """Return the counters of a device's backend and of those who contribute kernels to it, added.

    With ``release``, unused pooled memory is released first.
    """
    counters = dict(instance.backend.memory(instance.index, release=release))
    for found in _contributed_memory(instance, release, False):
        for name, size in found.items():
            counters[name] = counters.get(name, 0) + size
    return counters


def _reset_peak(instance: Instance) -> bool:
    """Let the peak of a device's memory be what is allocated now. Return whether a backend or plugin counts one."""
    reset = instance.backend.reset_peak(instance.index)
    return any("peak" in found for found in _contributed_memory(instance, False, True)) or reset


def _contributed_memory(instance: Instance, release: bool, reset: bool) -> list[Mapping[str, int]]:
    """Return the counters of those who contribute kernels to a device, by the hook ``candelabra_memory``."""
    from candelabra._plugins.loading import call_hook

    kind, found = instance.device.type, []
    for contribution in registry.contributing(kind):
        found.append(
            call_hook(contribution.plugin, "candelabra_memory", device_type=kind, release=release, reset=reset) or {}
        )
    return found


_modules: Final[dict[str, DeviceModule]] = {}
_lock: Final = threading.Lock()


def device_module(name: str) -> DeviceModule | None:
    """Return ``candelabra.<name>``, one object per type, or None if ``name`` is not a device type."""
    if not is_device_type(name):
        return None
    with _lock:
        return _modules.setdefault(name, DeviceModule(name))


def get_device_module(device: device | str | None = None) -> DeviceModule:
    """Return ``candelabra.<device type>`` for a device, by default for the default device.

    Raises ``RuntimeError`` if it is no device type.
    """
    name = str(get_default_device() if device is None else device).partition(":")[0]
    module = device_module(name)
    if module is None:
        raise RuntimeError(f"Invalid value of device {device!r}: it is no device type")
    return module
