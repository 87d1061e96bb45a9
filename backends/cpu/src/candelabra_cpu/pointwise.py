"""Pointwise kernels where NumPy's semantics or speed are not the ones wanted."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from candelabra.errors import IntegerDivisionByZero

from candelabra_cpu.float32 import FUNCTIONS
from candelabra_cpu.quiet import asarray, ndarray, quiet, quiet1, quiet2, quiet_into, wrapped
from candelabra_cpu.remainders import fmod, remainder
from candelabra_cpu.vectors import vectored

_strict: Final = contextvars.copy_context()
_strict.run(np.seterr, all="ignore")
_strict.run(np.seterr, divide="raise")


def _dtype(x: Any, y: Any) -> Any:
    return x.dtype if isinstance(x, ndarray) else y.dtype


def _integer_division(function: Callable[..., Any], floating: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Integers by 0 raise, where NumPy gives 0; floats by ``floating``, else as NumPy has them."""
    floating = floating or quiet2(function)

    def divide(x: Any, y: Any) -> Any:
        if _dtype(x, y).kind not in "iu":
            return floating(x, y)
        try:
            return asarray(_strict.copy().run(function, *wrapped(x, y)))
        except FloatingPointError:
            raise IntegerDivisionByZero("ZeroDivisionError: integer division or modulo by zero") from None

    return divide


def _trunc_divide(x: Any, y: Any) -> Any:
    if _dtype(x, y).kind not in "iu":
        return np.trunc(np.divide(x, y))
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def pow(x: Any, y: Any) -> Any:
    """``x ** y``; a small whole power of floats by multiplying, integers to a negative number raise."""
    d = _dtype(x, y)
    if d.kind in "iu":
        return _integer_power(x, y)
    if y.__class__ is not ndarray and d.char in "fd":
        if y == 2:
            return _square(x)
        if y == 1:
            return x.copy()
    return _power(x, y)


_square = quiet1(np.square)
_power = quiet2(np.power)


def _integer_power(x: Any, y: Any) -> Any:
    if isinstance(y, int) and y < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    x, y = wrapped(x, y)
    negative = np.less(y, 0)
    if not np.any(negative):
        return _power(x, y)
    # 1 / x**|y| cut to an integer: 0 but for the bases 1 and -1.
    size = np.power(x, np.where(negative, 0, y))
    unit = np.where(np.equal(x, 1), 1, np.where(np.equal(x, -1), 1 - 2 * (y & 1), 0))
    return asarray(np.where(negative, unit, size).astype(size.dtype))


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """A number to shift by that is out of range must not be wrapped into range: it counts as the width."""
    kernel = quiet2(function)

    def shift(x: Any, y: Any) -> Any:
        if isinstance(y, int):
            width = x.dtype.itemsize * 8
            y = y if 0 <= y < width else width
        return kernel(x, y)

    return shift


def _written(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place form that computes aside first: where the kernel may raise, the tensor stays as it was."""

    def into(x: Any, *rest: Any) -> Any:
        np.copyto(x, kernel(x, *rest))
        return x

    return into


_RAISING: dict[str, Any] = {
    "floor_divide": _integer_division(np.floor_divide),
    "remainder": _integer_division(np.remainder, remainder),
    "fmod": _integer_division(np.fmod, fmod),
    "trunc_divide": _integer_division(_trunc_divide),
    "pow": pow,
    "bitwise_left_shift": _shift(np.left_shift),
    "bitwise_right_shift": _shift(np.right_shift),
}


def _of_one_dtype(ufunc: np.ufunc) -> Callable[..., Any]:
    """For ufuncs that take a number beside bfloat16 for float32, and their result with it."""

    def function(x: Any, y: Any) -> Any:
        return ufunc(x, x.dtype.type(y) if y.__class__ is not ndarray and x.dtype.char == "E" else y)

    return function


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers come back as a copy: a kernel owes memory of its own."""
    return quiet1(lambda x: x.copy() if x.dtype.kind in "biu" else function(x))


def _but_bools(function: Callable[..., Any]) -> Callable[..., Any]:
    """Bools, which NumPy refuses or makes int8, come back as a copy."""
    return quiet1(lambda x: x.copy() if x.dtype.kind == "b" else function(x))


def _round(x: Any, decimals: int) -> Any:
    if x.dtype.kind in "biu":
        if decimals:
            raise NotImplementedError("round with decimals takes floating dtypes")
        return x.copy()
    if not decimals:
        return np.rint(x)
    scale = 10.0 ** abs(decimals)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    rounded = np.rint(wide * scale) / scale if decimals > 0 else np.rint(wide / scale) * scale
    return asarray(rounded).astype(x.dtype, copy=False)


_WORDS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
BY_BITS: Final = 1 << 12
"""Elements from which it pays to choose by bits."""


def choose(mask: Any, x: Any, y: Any) -> Any:
    """``x`` where ``mask`` holds, else ``y``: of many elements by their bits, which takes no branch.

    NumPy's own branches at each element, and is ten times slower where the mask is random.
    """
    d = _dtype(x, y) if isinstance(x, ndarray) or isinstance(y, ndarray) else None
    word = None if d is None else _WORDS.get(d.itemsize)
    if mask.size < BY_BITS or word is None:
        out = asarray(np.where(mask, *(wrapped(x, y) if d is not None else (x, y))))
        return out if d is None else out.astype(d, copy=False)  # beside bfloat16 NumPy takes a number for float64
    x, y = (v if isinstance(v, ndarray) else np.asarray(v).astype(d) for v in wrapped(x, y))
    ones = mask.astype(word)
    np.negative(ones, out=ones)
    otherwise = y.view(word)
    chosen = (x.view(word) ^ otherwise) & ones
    chosen ^= otherwise
    return chosen.view(d)


KERNELS: dict[str, Any] = {
    **_RAISING,
    "where": choose,
    **{f"{name}_": _written(kernel) for name, kernel in _RAISING.items()},
    "floor": _rounding(np.floor), "ceil": _rounding(np.ceil), "trunc": _rounding(np.trunc), "round": quiet(_round),
    # NumPy takes the output of these two by keyword only.
    "maximum_": quiet_into(lambda x, y, out: np.maximum(x, y, out=out)),
    "minimum_": quiet_into(lambda x, y, out: np.minimum(x, y, out=out)),
    "clamp_min": quiet2(_of_one_dtype(np.maximum)), "clamp_max": quiet2(_of_one_dtype(np.minimum)),
    "copysign": quiet2(_of_one_dtype(np.copysign)),
    "clamp_min_": quiet_into(lambda x, y, out: np.maximum(x, y, out=out)),
    "clamp_max_": quiet_into(lambda x, y, out: np.minimum(x, y, out=out)),
    "exp2": vectored(quiet1(np.exp2), FUNCTIONS["exp2"]),
    # Comparisons are several times as fast as NumPy's logical functions of floats.
    "logical_not": quiet1(lambda x: np.logical_not(x) if x.dtype.kind == "b" else np.equal(x, 0)),
    "conj_physical": _but_bools(np.conjugate), "sign": vectored(_but_bools(np.sign), FUNCTIONS["sign"]),
    # In the base they are ufuncs whose in-place forms refuse bools.
    "conj_physical_": _written(_but_bools(np.conjugate)), "sign_": _written(_but_bools(np.sign)),
}  # fmt: skip
