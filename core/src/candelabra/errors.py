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
