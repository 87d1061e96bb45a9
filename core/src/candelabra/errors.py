"""The exceptions of candelabra.

If PyTorch raises a built-in exception (``RuntimeError``, ``TypeError``, ``IndexError``, ``ValueError``), so does
candelabra. Every class below is a subclass of the exception that a PyTorch program catches.
"""

from __future__ import annotations


class BackendError(RuntimeError):
    """A backend is missing or broken, or was built for another version of the core."""


class DeviceUnavailable(BackendError):
    """The backend works, but has no such device on this machine. The text contains the reason."""


class UnsupportedOperator(NotImplementedError, RuntimeError):
    """No kernel, composite body or allowed fallback serves this operator on this device and dtype."""


class UnsupportedDType(TypeError, RuntimeError):
    """The device does not store, or does not compute in, this dtype."""


class UnsupportedLayout(RuntimeError, ValueError):
    """A function creates tensors of another layout only. PyTorch's factories and windows raise different classes."""


class DeviceMismatch(RuntimeError):
    """The tensors of one call are on different devices."""


class VersionMismatch(RuntimeError):
    """A tensor that the backward pass needs was modified in place after it was saved."""


class GraphFreed(RuntimeError):
    """The backward pass reached a node whose saved values have been released."""


class OutOfMemoryError(RuntimeError):
    """The device cannot allocate memory, even after it has released its memory pool."""


class FallbackWarning(UserWarning):
    """An operator ran on the reference device because the tensor's own device has no kernel for it."""


class LinAlgError(RuntimeError):
    """A matrix that cannot be factored or inverted, or an iteration that did not converge."""


class IntegerDivisionByZero(RuntimeError, ZeroDivisionError):
    """An integer division by 0. It is both PyTorch's RuntimeError and Python's ZeroDivisionError."""


class FileFormatError(RuntimeError):
    """A file is truncated or damaged, or contains an object that is not supported.

    It is a RuntimeError, as in PyTorch. The parts of the message are attributes.

    Attributes:
        file: the path, or a description of a file object.
        expected: the content that the format requires. Long texts are shortened, because a file may determine them.
        got: the actual content, shortened too.
        hint: advice for the user, or "".
    """

    def __init__(self, file: str, expected: str, got: str, hint: str = "") -> None:
        self.file = file
        self.expected = expected = _shortened(expected)
        self.got = got = _shortened(got)
        self.hint = hint
        super().__init__(f"cannot read {file}: expected {expected}, got {got}" + (f"; {hint}" if hint else ""))


def _shortened(text: str) -> str:
    return text if len(text) <= 1000 else f"{text[:700]} … {text[-200:]}"


__all__ = [
    "BackendError", "DeviceMismatch", "DeviceUnavailable", "FileFormatError", "FallbackWarning", "GraphFreed",
    "IntegerDivisionByZero", "LinAlgError", "OutOfMemoryError", "UnsupportedDType", "UnsupportedLayout",
    "UnsupportedOperator", "VersionMismatch",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
