"""Functions of the standard that create arrays. The default dtypes are PyTorch's: float32, int64, complex64, bool."""

from __future__ import annotations

import math
from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._device import open_device
from candelabra._operators.creation import ranges
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, named
from candelabra.dtypes import default_for_category, dtype, int64

Shape = int | tuple[int, ...]


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Array:
    """Return ``obj`` (a number, nested sequences, an array of any library) as an array that shares its memory if
    possible.

    ``copy=True`` always copies; ``copy=False`` raises ``ValueError`` if a copy is needed. Raises ``OverflowError`` for
    an int outside the range of all integer dtypes.
    """
    if type(obj) in (bool, int, float, complex):
        if copy is False:
            raise ValueError("asarray(): a Python number needs a copy, which copy=False forbids")
        return full((), obj, dtype=dtype, device=device)
    if isinstance(obj, Tensor) and copy is not False:  # autograd records it; copies of candelabra.asarray are leaves
        return arrayed(obj.to(device=device, dtype=dtype, copy=bool(copy)), obj)
    return arrayed(named("asarray")(obj, dtype=dtype, device=device, copy=copy), obj)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array over the memory of any object with ``__dlpack__``, or a copy if ``device`` is another device."""
    return arrayed(named("from_dlpack")(x, device=device, copy=copy), x)


def _filled_with(name: str, doc: str) -> Callable[..., Array]:
    def function(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Array:
        return arrayed(named(name)(shape, dtype=dtype, device=device))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _like(name: str, doc: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Array:
        return arrayed(named(name)(x, dtype=dtype, device=device))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


zeros = _filled_with("zeros", "Zeros in the given shape; the default floating dtype unless given.")
ones = _filled_with("ones", "Ones in the given shape; the default floating dtype unless given.")
empty = _filled_with("empty", "An array of unspecified content; the default floating dtype unless given.")
zeros_like = _like("zeros_like", "Zeros in the shape of ``x``, and in its dtype and on its device unless given.")
ones_like = _like("ones_like", "Ones in the shape of ``x``, and in its dtype and on its device unless given.")
empty_like = _like("empty_like", "An array of unspecified content in the shape of ``x``, dtype and device likewise.")


def full(shape: Shape, fill_value: Any, *, dtype: dtype | None = None, device: Any = None) -> Array:
    """Return an array of the given shape filled with ``fill_value``, by default in the default dtype of its kind.

    Raises ``OverflowError`` for an int outside the range of the default integer dtype.
    """
    if dtype is None and type(fill_value) is int and not -(1 << 63) <= fill_value < 1 << 63:
        raise OverflowError(f"{fill_value} does not fit the default integer dtype int64: pass dtype=")
    return arrayed(named("full")(shape, fill_value, dtype=dtype, device=device))


def full_like(x: Tensor, /, fill_value: Any, *, dtype: dtype | None = None, device: Any = None) -> Array:
    """Return an array of the shape of ``x`` filled with ``fill_value``, by default in its dtype and on its device."""
    return arrayed(named("full_like")(x, fill_value, dtype=dtype, device=device))


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: dtype | None = None, device: Any = None
) -> Array:
    """Return ``start``, ``start + step``, … before ``stop``; it is empty if the step leads away from ``stop``.

    With one argument, the numbers start at 0. The dtype is int64 if all arguments are ints, else the default floating
    dtype. Raises ``ValueError`` for a step of 0.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange() expects a nonzero step, got 0")
    whole = all(isinstance(v, int) for v in (start, stop, step))
    length = -((start - stop) // step) if whole else math.ceil((stop - start) / step)
    d = dtype or (int64 if whole else default_for_category(2))
    result = ranges.arange(start, step, max(0, int(length)), dtype=d, device=open_device(device))
    return arrayed(result)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: dtype | None = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, which ``endpoint=False`` excludes."""
    complex_ends = isinstance(start, complex) or isinstance(stop, complex)
    d = dtype or default_for_category(3 if complex_ends else 2)
    count = num if endpoint or not num else num + 1
    if complex_ends or d.is_complex:
        first, last = complex(start), complex(stop)
        real_and_imaginary = [
            ranges.linspace(a, b, count, dtype=d.to_real(), device=open_device(device))
            for a, b in ((first.real, last.real), (first.imag, last.imag))
        ]
        result = named("complex")(*real_and_imaginary)
    else:
        result = ranges.linspace(start, stop, count, dtype=d, device=open_device(device))
    return arrayed(result if count == num else result[:num])


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Array:
    """Return a matrix with ones on the ``k``-th diagonal and zeros elsewhere; it is square unless ``n_cols`` is
    given.
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return arrayed(named("eye")(n_rows, columns, dtype=dtype, device=device))
    result = zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        named("diagonal")(result, k).fill_(1)
    return result


def tril(x: Tensor, /, *, k: int = 0) -> Array:
    """Return the matrices in the last two dims with zeros above the ``k``-th diagonal."""
    return arrayed(named("tril")(x, k))


def triu(x: Tensor, /, *, k: int = 0) -> Array:
    """Return the matrices in the last two dims with zeros below the ``k``-th diagonal."""
    return arrayed(named("triu")(x, k))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinates of the grid that vectors of one dtype span: "xy" (Cartesian) or "ij" (matrix) order.

    Raises ``ValueError`` for vectors of different dtypes, for arrays that are not vectors, and for another
    ``indexing``.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid() expects indexing 'xy' or 'ij', not {indexing!r}")
    if len({x.dtype for x in arrays}) > 1 or any(x.ndim > 1 for x in arrays):
        raise ValueError("meshgrid() expects one-dimensional arrays of one dtype")
    if not arrays:
        return ()
    return tuple(arrayed(grid) for grid in named("meshgrid")(*arrays, indexing=indexing))
