"""Kernels from NumPy functions: they emit no floating-point warnings and return arrays, never array scalars.

``numpy.errstate`` takes more than a microsecond. NumPy stores its error state in a context variable, so a function that
runs inside a context with all errors ignored takes 20 ns more and does not change the caller's error state. All threads
share one context. A context can only be entered once at a time, so a call uses a copy of it while another thread is
inside, for example in a long kernel that released the interpreter lock.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from candelabra.dtypes import bfloat16, dtype

_context: Final = contextvars.copy_context()
_context.run(np.seterr, all="ignore")
run: Final = _context.run
ndarray: Final = np.ndarray
asarray: Final = np.asarray
UFUNCS: Final[dict[Callable[..., Any], np.ufunc]] = {}
"""The ufunc of each kernel that calls nothing else. A kernel around it calls the ufunc itself, in one frame less."""


def run_in_context_copy(function: Callable[..., Any], *args: Any) -> Any:
    """Call ``function`` with errors ignored, in a copy of the context: for calls while another thread is inside it."""
    return _context.copy().run(function, *args)


def _registered(kernel: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, np.ufunc):
        UFUNCS[kernel] = function
    return kernel


def unary_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function of one array."""

    def kernel(x: Any) -> Any:
        try:
            out = run(function, x)
        except RuntimeError:
            out = run_in_context_copy(function, x)
        return out if out.__class__ is ndarray else asarray(out)

    return _registered(kernel, function)


def binary_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function of two operands. A Python integer outside the dtype's range wraps around."""

    def kernel(x: Any, y: Any) -> Any:
        try:
            out = run(function, x, y)
        except RuntimeError:
            out = run_in_context_copy(function, x, y)
        except OverflowError:
            out = run_in_context_copy(function, *wrap_scalars(x, y))
        return out if out.__class__ is ndarray else asarray(out)

    return _registered(kernel, function)


def numpy_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function of any arguments."""

    def kernel(*args: Any) -> Any:
        try:
            out = run(function, *args)
        except RuntimeError:
            out = run_in_context_copy(function, *args)
        return out if out.__class__ is ndarray or out.__class__ is tuple else asarray(out)

    return kernel


def inplace_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the in-place kernel of a ufunc, which writes the result into the first array."""

    def kernel(x: Any, *rest: Any) -> Any:
        try:
            return run(function, x, *rest, x)
        except RuntimeError:
            return run_in_context_copy(function, x, *rest, x)
        except OverflowError:
            return run_in_context_copy(function, *wrap_scalars(x, *rest), x)

    return _registered(kernel, function)


def inplace_after_computing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an in-place kernel that computes the result before writing: if it raises, the tensor is unchanged."""

    def into(x: Any, *rest: Any) -> Any:
        value = kernel(x, *rest)
        if value.shape != x.shape:
            raise ValueError(f"the result has shape {value.shape}, the tensor has {x.shape}")
        np.copyto(x, value)
        return x

    return into


class KernelPerDtype:
    """A kernel that is selected by dtype when dispatch resolves a call, instead of at each call."""

    def __init__(self, for_dtype: Callable[[dtype], Callable[..., Any]]) -> None:
        self.for_dtype = for_dtype

    def __call__(self, *args: Any) -> Any:
        from candelabra_cpu.backend import FROM_NUMPY

        first = next(a for a in args if isinstance(a, ndarray))
        return self.for_dtype(FROM_NUMPY[first.dtype])(*args)


def keep_dtype_with_scalars(kernel: Callable[..., Any]) -> KernelPerDtype:
    """Wrap a binary kernel: bfloat16 with a Python number gives bfloat16, where NumPy returns float32."""

    def rounding_kernel(x: Any, y: Any) -> Any:
        out = kernel(x, y)
        return out if x.__class__ is y.__class__ else out.astype((x if y.__class__ is not ndarray else y).dtype)

    for_dtype = getattr(kernel, "for_dtype", lambda d: kernel)
    return KernelPerDtype(lambda d: rounding_kernel if d is bfloat16 else for_dtype(d))


def wrap_scalars(*operands: Any) -> tuple[Any, ...]:
    """Wrap Python integers among the operands around to the range of the integer array that they are combined with."""
    d = next(o.dtype for o in operands if isinstance(o, ndarray))
    return tuple(_wrap(o, d) for o in operands)


def _wrap(value: Any, d: Any) -> Any:
    if not isinstance(value, int) or d.kind not in "iu":
        return value
    bits = d.itemsize * 8
    value &= (1 << bits) - 1
    if d.kind == "i" and value >= 1 << (bits - 1):
        value -= 1 << bits
    return d.type(value)
