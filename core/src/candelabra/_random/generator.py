"""Generators, which supply the seed and the offset of every draw.

A generator is two integers: the seed and the number of Philox counters that were consumed. A draw reserves its counters
under a lock, and the kernel is a pure function of ``(seed, offset)``. So threads never get the same numbers, and the
same seed gives the same numbers on every device. Each device has its own default generator, and :func:`manual_seed`
seeds all of them, so the draws of one device do not depend on those of another.

Specification: ``docs/notes/0001-random-numbers.md``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance, device, open_device
from candelabra._dispatch.deferring import changes_state
from candelabra._dispatch.fallback import reference_device
from candelabra._dispatch.tracing import note_break, tracer_here
from candelabra._plugins import registry
from candelabra._random.counters import counters_used
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import uint8

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

_WORDS: Final = 1 << 64
_STATE_BYTES: Final = 16
_CONTROLLED: Final = "a generator is created, seeded, read or set to a state"
"""Why a function is not compiled: a graph repeats draws only."""


def _note_control() -> None:
    note_break(_CONTROLLED)
    changes_state()


class Generator:
    """A stream of random numbers: a seed, and the number of counters that were consumed.

    A generator can be used with any device, since its numbers do not depend on the device; ``device`` is for
    information only. As in PyTorch, a new generator has a fixed seed: two of them give the same numbers until they are
    seeded.
    """

    __slots__ = ("__weakref__", "_device", "_lock", "_offset", "_seed", "_taken")

    def __init__(self, device: device | str | int | None = None) -> None:
        _note_control()
        self._start(device, _NEW_SEED, 0)

    def _start(self, device: device | str | int | None, seed: int, offset: int) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._seed = seed
        self._offset = offset
        self._taken = -1
        """The offset of the last draw."""

    @property
    def device(self) -> device:
        """The device that the generator was created for, by default the default device."""
        return open_device(self._device).device

    def manual_seed(self, seed: int) -> Generator:
        """Restart from ``seed``, -2**63 to 2**64 - 1 (negative ones modulo 2**64), and return the generator."""
        _note_control()
        number = as_seed(seed)
        with self._lock:
            self._seed, self._offset = number, 0
        return self

    def seed(self) -> int:
        """Restart from a random seed of the operating system, and return the seed."""
        number = random_seed()
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int:
        """Return the seed."""
        return self._seed

    def get_offset(self) -> int:
        """Return the number of counters that were consumed since the generator was seeded."""
        _note_control()
        return self._offset

    def set_offset(self, offset: int) -> Generator:
        """Move to another position of the same stream, and return the generator."""
        _note_control()
        if not 0 <= offset < _WORDS:
            raise RuntimeError(f"offset must be in [0, 2**64), got {offset}")
        with self._lock:
            self._offset = int(offset)
        return self

    def take(self, counters: int) -> tuple[int, int]:
        """Reserve the next ``counters`` counters and return (seed, offset) for a kernel. Thread-safe."""
        with self._lock:
            seed, offset = self._seed, self._offset
            if offset + counters >= _WORDS:
                raise RuntimeError(
                    f"the generator is exhausted: offset {offset} + {counters} exceeds 2**64 - 1; seed it again"
                )
            self._offset = offset + counters
            self._taken = offset
        return seed, offset

    def give_back(self, offset: int) -> None:
        """Undo a draw that failed, unless there has been another one since."""
        with self._lock:
            if self._taken == offset:
                self._offset = offset

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor of 16 elements in the host's memory: seed and offset, little-endian."""
        _note_control()
        with self._lock:
            seed, offset = self._seed, self._offset
        return _as_bytes(seed.to_bytes(8, "little") + offset.to_bytes(8, "little"), self._device)

    def set_state(self, new_state: Tensor) -> Generator:
        """Restore a state that :meth:`get_state` returned, and return the generator."""
        _note_control()
        seed, offset = _from_bytes(new_state)
        with self._lock:
            self._seed, self._offset = seed, offset
        return self

    def clone_state(self) -> Generator:
        """Return another generator at the same position of the same stream."""
        _note_control()
        return _restored(self._device, self._seed, self._offset)

    def __reduce__(self) -> tuple[Any, ...]:
        where = self._device if self._device is None else str(self.device)
        return _restored, (where, self._seed, self._offset)

    def __repr__(self) -> str:
        return f"<candelabra.Generator seed={self._seed} offset={self._offset}>"


_NEW_SEED: Final = 67280421310721  # PyTorch's default_rng_seed_val: an unseeded generator is reproducible


def _restored(where: Any, seed: int, offset: int) -> Generator:
    out = Generator.__new__(Generator)  # a device's own generator may be created within a graph
    out._start(where, seed, offset)
    return out


def as_seed(seed: Any) -> int:
    """Return a seed modulo 2**64. Raise TypeError if it is not a number, ValueError outside -2**63 … 2**64 - 1."""
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise TypeError(f"manual_seed expected an int, but got {type(seed).__name__}") from error
    if not -(_WORDS >> 1) <= number < _WORDS:
        raise ValueError(f"Overflow when unpacking long long: a seed must be in [-2**63, 2**64), got {number}")
    return number % _WORDS


def random_seed() -> int:
    """Return a random seed of the operating system, of 63 bits, so that it fits a signed integer."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def _as_bytes(data: bytes, where: Any) -> Tensor:
    home = open_device(where)
    host = home if home.backend.capabilities.host else reference_device(home) or home
    payload = host.backend.from_host(host.index, memoryview(data), (len(data),), uint8)
    return wrap(payload, host.keys_for(uint8))


def _from_bytes(state: Any) -> tuple[int, int]:
    if not isinstance(state, Tensor):
        raise TypeError(f"expected a candelabra.ByteTensor, but got {type(state).__name__}")
    if state.dtype is not uint8:
        raise TypeError(f"RNG state must be a candelabra.ByteTensor, got {state.dtype}")
    data = bytes(state._instance.backend.to_host(state._fresh()._payload))
    if len(data) != _STATE_BYTES:
        raise RuntimeError(f"RNG state is wrong size: expected {_STATE_BYTES} bytes, but got {len(data)}")
    return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")


# -- the default generators -------------------------------------------------------------------------------------------
class _Defaults:
    """One generator per device, all with one seed. The generator of a device is created at its first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed: int | None = None
        self.by_device: dict[device, Generator] = {}


_defaults: Final = _Defaults()


def default_generator(instance: Instance | None = None) -> Generator:
    """Return the default generator of a device (None: of the default device)."""
    place = _real(open_device() if instance is None else instance).device
    found = _defaults.by_device.get(place)
    if found is not None:
        return found
    with _defaults.lock:
        if _defaults.seed is None:
            _defaults.seed = random_seed()
        return _defaults.by_device.setdefault(place, _restored(place, _defaults.seed, 0))


def _real(instance: Instance) -> Instance:
    """Return the device itself, or for a level of a function transform the real device below it."""
    while instance.depth:
        instance = instance.backend.instance_below(instance)  # type: ignore[attr-defined]
    return instance


def take_counters(
    name: str, generator: Any, instance: Instance, kind: str, n: int, dtype: str = "int64", span: int = 1
) -> tuple[int, int]:
    """Reserve the counters for ``n`` values, and return the seed and the offset.

    The generator is the given one or that of the device. Raises ``TypeError`` for another object.
    """
    if generator is None:
        generator = default_generator(instance)
    elif not isinstance(generator, Generator):
        raise TypeError(f"{name}(): argument 'generator' must be Generator, not {type(generator).__name__}")
    for repeat in repeats:
        n *= repeat()
    counters = counters_used(kind, n, dtype, span)
    changes_state()
    tracer = tracer_here()
    if tracer is not None:
        return tracer.draw(generator, counters)
    place: tuple[int, int] = generator.take(counters)
    return place


repeats: Final[list[Callable[[], int]]] = []
"""Functions that return how often a draw repeats: ``vmap`` may draw for each example. Empty until vmap is used."""


def give_back(generator: Any, instance: Instance, offset: int) -> None:
    """Return the counters of a draw that failed, so that a call that raises draws nothing."""
    (default_generator(instance) if generator is None else generator).give_back(offset)


def __getattr__(name: str) -> Generator:
    """Return ``candelabra.default_generator``, the default generator of the host, which PyTorch's programs use."""
    if name != "host_generator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return default_generator(open_device(registry.reference_device()))


def default_generators() -> list[Generator]:
    """Return every default generator in use, including that of the default device."""
    default_generator()
    with _defaults.lock:
        return list(_defaults.by_device.values())


def manual_seed(seed: int) -> Generator:
    """Seed the default generator of every device, and return that of the default device.

    ``seed`` is -2**63 to 2**64 - 1; negative ones are taken modulo 2**64.
    """
    number = as_seed(seed)
    with _defaults.lock:
        _defaults.seed = number
        for generator in _defaults.by_device.values():
            generator.manual_seed(number)
    return default_generator()


def seed() -> int:
    """Seed the default generator of every device with a random number of the operating system, and return it."""
    number = random_seed()
    manual_seed(number)
    return number


def initial_seed() -> int:
    """Return the seed of the default device's default generator."""
    return default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default device's default generator, as a uint8 tensor."""
    return default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore the default device's default generator to a state that :func:`get_rng_state` returned."""
    default_generator().set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[device | str] | None = None, enabled: bool = True) -> Iterator[None]:
    """Restore the default generators at the end of the block to their states before it.

    ``devices`` limits this to some devices (None: all, including those that are first used inside the block).
    """
    if not enabled:
        yield
        return
    _note_control()
    default_generator()
    chosen = None if devices is None else {open_device(d).device for d in devices}
    with _defaults.lock:
        seed = _defaults.seed
        before = {d: (g._seed, g._offset) for d, g in _defaults.by_device.items() if chosen is None or d in chosen}
    try:
        yield
    finally:
        with _defaults.lock:
            if chosen is None:
                _defaults.seed = seed
            for place, generator in _defaults.by_device.items():
                if place in before:
                    generator._seed, generator._offset = before[place]
                elif chosen is None and seed is not None:
                    generator._seed, generator._offset = seed, 0
