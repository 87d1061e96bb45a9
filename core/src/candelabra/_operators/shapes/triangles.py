"""Triangles of matrices: ``tril`` and ``triu``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Ints
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@by
def _matrices(input: Tensor, diagonal: int) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("tril/triu: input tensor must have at least 2 dimensions")
    return shape


@operator(_matrices, inplace=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the elements on and below diagonal number ``diagonal`` of the last two dims; zeros elsewhere."""
    ...


@operator(_matrices, inplace=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the elements on and above diagonal number ``diagonal`` of the last two dims; zeros elsewhere."""
    ...


tril.vjp(input=lambda g, diagonal: tril(g, diagonal))
triu.vjp(input=lambda g, diagonal: triu(g, diagonal))
