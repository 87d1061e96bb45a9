"""Whether all elements over dims are nonzero, or any."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._records.record import operator
from candelabra._records.rules import reduction
from candelabra.dtypes import bool_, dtype, uint8

if TYPE_CHECKING:
    from candelabra.typing import DistinctDims, Tensor


def _bool_or_uint8(d: dtype) -> dtype:
    """The result is bool, of uint8 uint8."""
    return uint8 if d is uint8 else bool_


@operator(reduction, result=_bool_or_uint8)
def all(input: Tensor, dim: DistinctDims | None = None, keepdim: bool = False) -> Tensor:
    """Whether all elements over ``dim`` (all dims when None) are nonzero; True over no elements.

    The result is bool, of uint8 uint8. Unlike other reductions, these two reduce nothing over an empty ``dim``.
    """
    ...


@operator(reduction, result=_bool_or_uint8)
def any(input: Tensor, dim: DistinctDims | None = None, keepdim: bool = False) -> Tensor:
    """Whether any element over ``dim`` (all dims when None) is nonzero; False over no elements. See :func:`all`."""
    ...


all.no_gradient("the result is a truth value")
any.no_gradient("the result is a truth value")
