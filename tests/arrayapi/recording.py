"""A device over a namespace that records which of its names each kernel uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import candelabra_arrayapi
import numpy as np
from candelabra.backend import Backend, Capabilities, DeviceInfo, Kernel, declared
from candelabra.dtypes import ALL

DTYPES = {d: np.dtype(d.name) for d in ALL if d.name != "bfloat16"}
NAMES = {held: d for d, held in DTYPES.items()}


def assign(x: Any, index: Any, values: Any) -> Any:
    """Return a copy of ``x`` with ``values`` at ``index``."""
    out = x.copy()
    out[index] = values
    return out


class Recorder:
    """A namespace or an extension of it. Its functions note that the running kernel calls them."""

    def __init__(self, xp: Any, used: dict[str, set[str]], running: list[str], prefix: str = "") -> None:
        self.xp, self.used, self.running, self.prefix = xp, used, running, prefix

    def __getattr__(self, name: str) -> Any:
        found, full = getattr(self.xp, name), self.prefix + name
        if name in ("linalg", "fft"):
            return Recorder(found, self.used, self.running, f"{name}.")
        if not callable(found) or isinstance(found, type):
            self.note(full)
            return found

        def function(*arguments: Any, **options: Any) -> Any:
            self.note(full)
            return found(*arguments, **options)

        return function

    def note(self, name: str) -> None:
        """Note that the running kernel uses a name."""
        if self.running:
            self.used[self.running[-1]].add(name)


class RecordingBackend(Backend):
    """NumPy's arrays, treated as immutable; ``used`` has the names that each kernel used."""

    name = "notebook"
    capabilities = Capabilities(frozenset(DTYPES), frozenset(DTYPES), strided=False, mutable=False)

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = defaultdict(set)
        self.running: list[str] = []

    def devices(self) -> Sequence[DeviceInfo]:
        """Return the one device."""
        return [DeviceInfo("NumPy, recorded")]

    def kernels(self) -> Mapping[str, Kernel]:
        """Return the kernels over the recording namespace."""
        table = candelabra_arrayapi.kernels(Recorder(np, self.used, self.running), DTYPES, strided=False, assign=assign)
        return {name: self.recorded(name, kernel) for name, kernel in declared(table).items()}

    def recorded(self, name: str, kernel: Callable[..., Any]) -> Kernel:
        """Return the kernel, which is known as the running one during its calls."""

        def run(*arguments: Any) -> Any:
            self.running.append(name)
            try:
                with np.errstate(all="ignore"):
                    result = kernel(*arguments)
            finally:
                self.running.pop()
            return tuple(result) if isinstance(result, list) else result

        return run

    def empty(self, index: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return zeros."""
        return np.zeros(shape, DTYPES[dtype])

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return a copy of the data."""
        return np.frombuffer(data, DTYPES[dtype]).reshape(shape).copy()

    def to_host(self, payload: Any) -> memoryview:
        """Return a copy of the content."""
        return memoryview(payload.tobytes())

    def dtype_of(self, payload: Any) -> Any:
        """Return the dtype."""
        return NAMES[payload.dtype]

    def copy_(self, destination: Any, source: Any) -> Any:
        """Return the source, since no array changes."""
        return source
