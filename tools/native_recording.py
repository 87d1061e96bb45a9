"""A device that records calls of the kernels of candelabra-native, and computes nothing.

``native_kernels`` runs programs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from candelabra.backend import Capabilities, DeviceInfo, Kernel
from candelabra.dtypes import ALL, dtype
from candelabra.library import OPERATORS
from candelabra_clike import CLikeBackend, StridedArray
from candelabra_native.pack.calls import CallError, RecordedCall, recorded
from candelabra_native.pack.replaying import DryEngine
from candelabra_native.processor import level
from candelabra_native.thresholds import threshold


class RecordingBackend(CLikeBackend):
    """The backend of one device. ``calls`` are the distinct calls of kernels that candelabra-native contributes."""

    name = "recording"
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL))

    def __init__(self) -> None:
        self.dry: Final = DryEngine(level())
        self.calls: Final[dict[str, RecordedCall]] = {}
        self.unwritten: Final[set[str]] = set()
        """The operators whose arguments have no notation."""

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a processor that computes nothing")]

    def engine(self, index: int) -> DryEngine:
        return self.dry

    def kernels(self) -> Mapping[str, Kernel]:
        kernels = dict(super().kernels())
        for name, kernel in kernels.items():
            record = OPERATORS.get(name) or OPERATORS[name.removesuffix("_")]
            if not record.view and threshold(name) is not None:
                kernels[name] = RecordedKernel(self, name, kernel)
        return kernels

    def record(self, name: str, d: dtype, arguments: Sequence[Any]) -> None:
        """Record a call."""
        rows = name not in OPERATORS and not OPERATORS[name.removesuffix("_")].inplace
        try:
            call = recorded(name, d, [_simplest(a, rows) for a in arguments])
        except CallError:
            self.unwritten.add(name)
        else:
            self.calls.setdefault(str(call), call)


class RecordedKernel:
    """A kernel of the device, with its calls recorded."""

    def __init__(self, backend: RecordingBackend, name: str, kernel: Any) -> None:
        self._backend = backend
        self._name = name
        self._kernel = kernel

    def for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        """Return the function for a dtype, or None."""
        choose = getattr(self._kernel, "for_dtype", None)
        function = self._kernel if choose is None else choose(d)
        if function is None:
            return None

        def recording(*arguments: Any) -> Any:
            self._backend.record(self._name, d, arguments)
            return function(*arguments)

        return recording

    def __call__(self, *arguments: Any) -> Any:
        first = next(a for a in _flat(arguments) if isinstance(a, StridedArray))
        function = self.for_dtype(first.dtype)
        return NotImplemented if function is None else function(*arguments)


def _simplest(value: Any, rows: bool) -> Any:
    """Return an argument with which the same kernel is chosen, so that calls that differ in it are one.

    Floats, such as a learning rate, have three digits. An optimizer's step over rows depends on their number, not on
    their shapes.
    """
    if rows and isinstance(value, list | tuple) and all(isinstance(each, StridedArray) for each in value):
        return [each.engine.empty((8,), each.dtype) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _flat(arguments: Sequence[Any]) -> list[Any]:
    return [each for a in arguments for each in (a if isinstance(a, list | tuple) else [a])]
