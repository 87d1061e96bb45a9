"""``all`` and ``any``: whether all elements over dims are nonzero, or at least one."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._records.record import operator
from candelabra._records.rules import reduction
from candelabra.dtypes import bool_, dtype, uint8

if TYPE_CHECKING:
    from candelabra.typing import DistinctDims, Tensor


def _bool_or_uint8(d: dtype) -> dtype:
    """Return the dtype of the result: uint8 for uint8, else bool."""
    return uint8 if d is uint8 else bool_


@operator(reduction, result=_bool_or_uint8)
def all(input: Tensor, dim: DistinctDims | None = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements over ``dim`` (all dims if None) are nonzero; True over no elements.

    The result is bool, for uint8 it is uint8. Unlike other reductions, ``all`` and ``any`` reduce no dims if ``dim`` is
    empty.
    """
    ...


@operator(reduction, result=_bool_or_uint8)
def any(input: Tensor, dim: DistinctDims | None = None, keepdim: bool = False) -> Tensor:
    """Return whether any element over ``dim`` (all dims if None) is nonzero; False over no elements. See
    :func:`all`.
    """
    ...


all.no_gradient("the result is a truth value")
any.no_gradient("the result is a truth value")
