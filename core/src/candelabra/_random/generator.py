"""Generators: where the seed and the offset of every draw come from.

A generator is two integers, the seed and the count of Philox counters that were drawn so far. A draw takes its counters
first, under a lock, and the kernel that follows is a pure function of ``(seed, offset)``: threads never share a number,
and the same seed gives the same numbers on every device. Each device has a default generator of its own, and
:func:`manual_seed` seeds them all, so what one device draws does not depend on what another one drew.

Specification: ``docs/notes/0001-random-numbers.md``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance, device, open_device
from candelabra._dispatch.fallback import reference_device
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import uint8

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

_WORDS: Final = 1 << 64
_STATE_BYTES: Final = 16


class Generator:
    """A stream of random numbers: a seed, and how many counters were drawn.

    ``device`` is where the generator is at home; as its numbers are the same everywhere, it serves any device. A new
    generator has a fixed seed, as in PyTorch: two of them give the same numbers until they are seeded differently.
    """

    __slots__ = ("__weakref__", "_device", "_lock", "_offset", "_seed")

    def __init__(self, device: device | str | int | None = None) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._seed = _NEW_SEED
        self._offset = 0

    @property
    def device(self) -> device:
        """The device that the generator was made for; the default device unless one was named."""
        return open_device(self._device).device

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from ``seed``, -2**63 to 2**64 - 1 (negative ones modulo 2**64). Returns the generator."""
        number = as_seed(seed)
        with self._lock:
            self._seed, self._offset = number, 0
        return self

    def seed(self) -> int:
        """Start anew from a seed that the operating system draws, and return it."""
        number = random_seed()
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int:
        """The seed that the generator started from."""
        return self._seed

    def get_offset(self) -> int:
        """How many counters were drawn since the generator was seeded."""
        return self._offset

    def set_offset(self, offset: int) -> Generator:
        """Go to another place of the same stream."""
        if not 0 <= offset < _WORDS:
            raise RuntimeError(f"offset must be in [0, 2**64), got {offset}")
        with self._lock:
            self._offset = int(offset)
        return self

    def take(self, counters: int) -> tuple[int, int]:
        """Reserve the next ``counters`` counters: (seed, offset), what a kernel is given. Threads get disjoint ones."""
        with self._lock:
            seed, offset = self._seed, self._offset
            if offset + counters >= _WORDS:
                raise RuntimeError(
                    f"the generator is used up: offset {offset} + {counters} passes 2**64 - 1; seed it anew"
                )
            self._offset = offset + counters
        return seed, offset

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor of 16 elements in the host's memory: seed and offset, little-endian."""
        with self._lock:
            seed, offset = self._seed, self._offset
        return _as_bytes(seed.to_bytes(8, "little") + offset.to_bytes(8, "little"), self._device)

    def set_state(self, new_state: Tensor) -> None:
        """Go back to a state that :meth:`get_state` returned."""
        seed, offset = _from_bytes(new_state)
        with self._lock:
            self._seed, self._offset = seed, offset

    def clone_state(self) -> Generator:
        """Another generator at the same place of the same stream."""
        return _restored(self._device, self._seed, self._offset)

    def __reduce__(self) -> tuple[Any, ...]:
        where = self._device if self._device is None else str(self.device)
        return _restored, (where, self._seed, self._offset)

    def __repr__(self) -> str:
        return f"<candelabra.Generator seed={self._seed} offset={self._offset}>"


_NEW_SEED: Final = 67280421310721  # PyTorch's default_rng_seed_val: a generator nobody seeded is the same every time


def _restored(where: Any, seed: int, offset: int) -> Generator:
    out = Generator(where)
    out._seed, out._offset = seed, offset
    return out


def as_seed(seed: Any) -> int:
    """A seed modulo 2**64. TypeError for what is no number, ValueError beyond -2**63 … 2**64 - 1."""
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise TypeError(f"manual_seed expected an int, but got {type(seed).__name__}") from error
    if not -(_WORDS >> 1) <= number < _WORDS:
        raise ValueError(f"Overflow when unpacking long long: a seed is in [-2**63, 2**64), got {number}")
    return number % _WORDS


def random_seed() -> int:
    """A seed that the operating system draws; 63 bits, so that it fits a signed integer elsewhere."""
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
    """One generator per device, all of one seed; those of devices not used yet are made from it later."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed: int | None = None
        self.by_device: dict[device, Generator] = {}


_defaults: Final = _Defaults()


def default_generator(instance: Instance | None = None) -> Generator:
    """The default generator of a device (None: of the default device)."""
    place = (open_device() if instance is None else instance).device
    found = _defaults.by_device.get(place)
    if found is not None:
        return found
    with _defaults.lock:
        if _defaults.seed is None:
            _defaults.seed = random_seed()
        return _defaults.by_device.setdefault(place, _restored(place, _defaults.seed, 0))


def default_generators() -> list[Generator]:
    """Every default generator in use, that of the default device among them."""
    default_generator()
    with _defaults.lock:
        return list(_defaults.by_device.values())


def manual_seed(seed: int) -> Generator:
    """Seed the default generator of every device; returns that of the default device.

    ``seed`` is -2**63 to 2**64 - 1, negative ones count from 2**64 down.
    """
    number = as_seed(seed)
    with _defaults.lock:
        _defaults.seed = number
        for generator in _defaults.by_device.values():
            generator.manual_seed(number)
    return default_generator()


def seed() -> int:
    """Seed the default generator of every device with a number that the operating system draws, and return it."""
    number = random_seed()
    manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed of the default device's default generator."""
    return default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default device's default generator, as a uint8 tensor."""
    return default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default device's default generator back into a state that :func:`get_rng_state` returned."""
    default_generator().set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[device | str] | None = None, enabled: bool = True) -> Iterator[None]:
    """Inside the block draw as you like: afterwards the default generators are where they were before it.

    ``devices`` limits that to some devices (None: all, those that are first used inside the block too).
    """
    if not enabled:
        yield
        return
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
