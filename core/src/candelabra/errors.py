"""The exceptions that are candelabra's own.

Where PyTorch raises a built-in (``RuntimeError``, ``TypeError``, ``IndexError``, ``ValueError``), so does candelabra:
every class below is a subclass of the one that a PyTorch program would catch.
"""

from __future__ import annotations


class BackendError(RuntimeError):
    """A backend is missing, broken, or was built for another version of the core."""


class DeviceUnavailable(BackendError):
    """The backend works but offers no such device here; the text says why."""


class UnsupportedOperator(NotImplementedError, RuntimeError):
    """No kernel, composite body or allowed fallback serves this operator on this device and dtype."""


class UnsupportedDType(TypeError, RuntimeError):
    """The device does not store, or does not compute in, this dtype."""


class DeviceMismatch(RuntimeError):
    """The tensors of one call live on different devices."""


class VersionMismatch(RuntimeError):
    """A tensor that the backward pass needs was changed in place after it had been saved."""


class GraphFreed(RuntimeError):
    """The backward pass reached a node whose saved values were already released."""


class OutOfMemoryError(RuntimeError):
    """The device cannot allocate, not even after its memory pool was released."""


class FallbackWarning(UserWarning):
    """An operator ran on the reference device because the tensor's own device has no kernel for it."""


class LinAlgError(RuntimeError):
    """A matrix that cannot be factored or inverted, or an iteration that did not converge."""


class IntegerDivisionByZero(RuntimeError, ZeroDivisionError):
    """An integer was divided by 0: PyTorch's RuntimeError and Python's ZeroDivisionError in one."""


class FileFormatError(RuntimeError):
    """A file is truncated, damaged, or holds something that no reader here builds.

    A RuntimeError, as PyTorch raises for unreadable files. The parts of the message stay on the exception.

    Attributes:
        file: the path, or the word for a file object.
        expected: what the format asks for at that place.
        got: what was there.
        hint: what the user can do about it, or "".
    """

    def __init__(self, file: str, expected: str, got: str, hint: str = "") -> None:
        self.file = file
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(f"cannot read {file}: expected {expected}, got {got}" + (f"; {hint}" if hint else ""))


__all__ = [
    "BackendError", "DeviceMismatch", "DeviceUnavailable", "FileFormatError", "FallbackWarning", "GraphFreed",
    "IntegerDivisionByZero", "LinAlgError", "OutOfMemoryError", "UnsupportedDType", "UnsupportedOperator",
    "VersionMismatch",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
