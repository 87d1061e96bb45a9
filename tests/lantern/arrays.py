"""The array of both devices: a shape, and data behind a name that only this package uses."""

from typing import Any

import numpy as np


class Glow:
    """A payload. It offers the core ``shape`` and nothing else: no ``__array__``, buffer, dtype or arithmetic."""

    __slots__ = ("_device", "_error", "_hidden", "_storage", "shape")

    def __init__(self, hidden: Any, device: int, storage: Any = None, error: Exception | None = None) -> None:
        self._hidden = hidden
        self._device = device
        self._storage = hidden if storage is None else storage
        self._error = error
        self.shape: tuple[int, ...] = tuple(hidden.shape)

    def __bool__(self) -> bool:
        raise TypeError("a Glow has no truth value")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a Glow cannot be compared")

    __hash__ = None  # type: ignore[assignment]


class Queue:
    """The work given to one device and not waited for. Errors in it are raised when somebody waits."""

    def __init__(self) -> None:
        self.pending: list[tuple[str, Glow]] = []
        self.errors: list[str] = []

    def put(self, operator: str, result: Glow) -> None:
        """One result that nobody has looked at."""
        self.pending.append((operator, result))
        if result._error is not None:
            self.errors.append(f"lantern: {operator!r} failed: {result._error}")

    def drain(self) -> None:
        """Wait for all of it; RuntimeError names the first operator that failed."""
        errors, self.errors = self.errors, []
        self.pending.clear()
        if errors:
            raise RuntimeError(errors[0])


def read(value: Any, device: int | None) -> Any:
    """What a kernel computes with. A payload of another device cannot be read."""
    if isinstance(value, Glow):
        if device is not None and value._device != device:
            raise RuntimeError(f"memory of device {value._device} cannot be read from device {device}")
        return value._hidden
    if isinstance(value, (list, tuple)):
        return type(value)(read(v, device) for v in value)
    return value


def owned(result: Any) -> np.ndarray:
    """A result in memory of its own, whatever a NumPy function returned."""
    array = np.asarray(result)
    return array if array.flags.owndata and array is result else array.copy()
