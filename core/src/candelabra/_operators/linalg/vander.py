"""The Vandermonde matrix."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.creation.filled import new_full
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import accumulated
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import int64, promote_types

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@by
def _vander_shape(x: Tensor, N: int | None, increasing: bool) -> tuple[int, ...]:
    shape = shape_of(x)
    if len(shape) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    return (shape[0], shape[0] if N is None else N)


@operator(_vander_shape, result=accumulated, method=False, out=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector: its powers from N - 1 down to 0 as columns, or up if ``increasing``.

    ``N`` is the vector's size by default; integers and bools give int64. Raises ``RuntimeError`` if ``x`` is not a
    vector, and for a negative ``N``.
    """
    rows, columns = _vander_shape(vander, (x, N, increasing))
    x = x.to(promote_types(x.dtype, int64))
    powers = new_full(x, (rows, min(columns, 1)), 1)
    if columns > 1:
        powers = cat((powers, x.unsqueeze(1).expand(-1, columns - 1).cumprod(1)), 1)
    return powers if increasing else powers.flip(1)
