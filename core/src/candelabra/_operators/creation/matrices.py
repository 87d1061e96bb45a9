"""Matrices computed from numbers: the identity, and the indices of triangles."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._codegen.arguments import as_device, as_size
from candelabra._operators.creation.ranges import arange
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import INTEGER, get_default_dtype, int64

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Tensor


# -- the identity -----------------------------------------------------------------------------------------------------
def _matrix_shape(n: int, m: int) -> tuple[int, int]:
    if n < 0 or m < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n if n < 0 else m}")
    return n, m


@operator(by(lambda n, m, *_: _matrix_shape(n, m)), promote=unpromoted, method=False, out=False, public=False)
def eye(n: int, m: int, *, dtype: DType, device: Device) -> Tensor:
    """Return the ``n`` × ``m`` matrix with ones on its diagonal and zeros elsewhere."""
    ...


@public(public=False, factory=True)
def eye_inferred(n: int, m: int | None = None, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the ``n`` × ``m`` matrix with ones on its diagonal and zeros elsewhere.

    By default it is square and has the default dtype.
    """
    rows = as_size(n)
    rows, columns = _matrix_shape(rows, rows if m is None else as_size(m))
    return eye.function(rows, columns, dtype=dtype or get_default_dtype(), device=device)


eye_overloads = overloads("eye", eye_inferred, method=False)


@operator(by(lambda input, n, m, *_: _matrix_shape(n, m)), promote=unpromoted, out=False, public=False)
def new_eye(input: Tensor, n: int, m: int, *, dtype: DType | None = None) -> Tensor:
    """Return the ``n`` × ``m`` matrix with ones on its diagonal, on the device of ``input``, by default in its
    dtype.
    """
    return eye.function(n, m, dtype=dtype or input.dtype, device=input._instance)


# -- the indices of triangles -----------------------------------------------------------------------------------------
def _sum_of_clamped(stop: int, limit: int) -> int:
    """Return the sum of ``min(max(i, 0), limit)`` over all i below ``stop``."""
    ramp = min(max(stop, 0), limit + 1)
    return ramp * (ramp - 1) // 2 + max(stop - limit - 1, 0) * limit


@by
def _index_pairs(row: int, col: int, offset: int, upper: bool, *_: object) -> tuple[int, int]:
    end = offset if upper else offset + 1
    below = _sum_of_clamped(end + row, col) - _sum_of_clamped(end, col)  # elements per row, from 0 to col
    return 2, row * col - below if upper else below


@operator(_index_pairs, promote=unpromoted, method=False, out=False, public=False)
def triangle_indices(row: int, col: int, offset: int, upper: bool, *, dtype: DType, device: Device) -> Tensor:
    """Return the rows and columns of a matrix's elements on or below the diagonal ``offset``, in C order.

    If ``upper``, the elements on or above that diagonal.
    """
    rows = arange.function(0, 1, row, dtype=int64, device=device).reshape((row, 1))
    columns = arange.function(0, 1, col, dtype=int64, device=device)
    inside = columns - rows >= offset if upper else columns - rows <= offset
    return inside.nonzero().t().contiguous().to(dtype)


for _record in (eye, new_eye, triangle_indices):
    _record.no_gradient("computed from numbers")


def _triangle(name: str, row: int, col: int, offset: int, dtype: DType | None, device: Device) -> Tensor:
    for title, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{title} must be non-negative, got{size}")
    target = dtype or int64
    if target.category != INTEGER:
        raise NotImplementedError(f"\"{name}\" not implemented for '{target.title}'")
    upper = name == "triu_indices"
    return triangle_indices.function(row, col, offset, upper, dtype=target, device=as_device(device))


@public(method=False, factory=True)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the indices of a ``row`` × ``col`` matrix's lower triangle up to the diagonal ``offset``: shape (2, n).

    They are in C order. Raises ``RuntimeError`` for negative sizes, ``NotImplementedError`` for dtypes that are not
    integer.
    """
    return _triangle("tril_indices", row, col, offset, dtype, device)


@public(method=False, factory=True)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the indices of a matrix's upper triangle, starting at the diagonal ``offset``; see
    :func:`tril_indices`.
    """
    return _triangle("triu_indices", row, col, offset, dtype, device)
