"""Views of diagonals, and Vandermonde matrices."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.shapes.diagonals import diagonal_shape
from candelabra._operators.shapes.joining import cat
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL, INTEGER, dtype, int64

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor


@operator(by(lambda A, *dims: diagonal_shape(shape_of(A), *dims)), view=True, namespace="linalg")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: Dim = -2, dim2: Dim = -1) -> Tensor:
    """Return a view of the diagonals of matrices in the last two dims: ``candelabra.diagonal`` with other defaults."""
    return A.diagonal(offset, dim1, dim2)


def _wide_powers(d: dtype) -> dtype:
    """Return the dtype of powers: int64 for integers. Raise ``RuntimeError`` for bools."""
    if d.category == BOOL:
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {d.title}")
    return int64 if d.category == INTEGER else d


@by
def _vander_shape(x: Tensor, N: int | None) -> tuple[int, ...]:
    shape = shape_of(x) or (1,)
    count = shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return (*shape, count)


@operator(_vander_shape, promote=_wide_powers, namespace="linalg", out=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0 to N - 1 of the elements of (…, n): Vandermonde matrices, (…, n, N). ``N`` is n by default.

    The powers of integers are int64.
    """
    shape = _vander_shape(linalg_vander, (x, N))
    column = x.reshape((*shape[:-1], 1))
    powers = column.expand((*column.shape[:-1], shape[-1] - 1)).cumprod(-1)
    return cat((powers.new_ones(column.shape), powers), -1)
