"""NumPy functions without floating-point warnings and without array scalars.

``numpy.errstate`` costs over a microsecond. NumPy keeps its error state in a context variable, so running a function
inside a context where everything is ignored costs 20 ns and touches nobody else's settings. One context serves all
threads; while another thread is inside it (a long kernel that released the interpreter lock) a call runs in a copy.
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


def run_in_copy(function: Callable[..., Any], *args: Any) -> Any:
    """The same in a fresh copy of the context, for threads that meet."""
    return _context.copy().run(function, *args)


def quiet1(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of one array."""

    def kernel(x: Any) -> Any:
        try:
            out = run(function, x)
        except RuntimeError:
            out = run_in_copy(function, x)
        return out if out.__class__ is ndarray else asarray(out)

    return kernel


def quiet2(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of two operands; a Python integer that the dtype cannot hold wraps, as in PyTorch."""

    def kernel(x: Any, y: Any) -> Any:
        try:
            out = run(function, x, y)
        except RuntimeError:
            out = run_in_copy(function, x, y)
        except OverflowError:
            out = run_in_copy(function, *wrapped(x, y))
        return out if out.__class__ is ndarray else asarray(out)

    return kernel


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of any arguments."""

    def kernel(*args: Any) -> Any:
        try:
            out = run(function, *args)
        except RuntimeError:
            out = run_in_copy(function, *args)
        return out if out.__class__ is ndarray or out.__class__ is tuple else asarray(out)

    return kernel


def quiet_into(function: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of a ufunc: the result goes into the first array."""

    def kernel(x: Any, *rest: Any) -> Any:
        try:
            return run(function, x, *rest, x)
        except RuntimeError:
            return run_in_copy(function, x, *rest, x)
        except OverflowError:
            return run_in_copy(function, *wrapped(x, *rest), x)

    return kernel


class ByDtype:
    """A kernel that is chosen by the dtype when a call is resolved, instead of at each call."""

    def __init__(self, for_dtype: Callable[[dtype], Callable[..., Any]]) -> None:
        self.for_dtype = for_dtype

    def __call__(self, *args: Any) -> Any:
        from candelabra_cpu.backend import FROM_NUMPY

        first = next(a for a in args if isinstance(a, ndarray))
        return self.for_dtype(FROM_NUMPY[first.dtype])(*args)


def beside_numbers(kernel: Callable[..., Any]) -> ByDtype:
    """A kernel of two operands whose result is bfloat16 beside Python numbers too: NumPy makes it float32 there."""

    def rounded(x: Any, y: Any) -> Any:
        out = kernel(x, y)
        return out if x.__class__ is y.__class__ else out.astype((x if y.__class__ is not ndarray else y).dtype)

    chosen = getattr(kernel, "for_dtype", lambda d: kernel)
    return ByDtype(lambda d: rounded if d is bfloat16 else chosen(d))


def wrapped(*operands: Any) -> tuple[Any, ...]:
    """Python integers beside integer arrays, reduced to the array's range."""
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
