"""Medians, as PyTorch overloads them, and sorting along the first dim."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.out import store
from candelabra._operators.families import order_statistics
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public
def msort(input: Tensor, *, out: Tensor | None = None) -> Any:
    """The values in ascending order along the first dim."""
    return store("msort", order_statistics.ordered(input, 0), out)


@public
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The middle element, of two the lower; with ``dim`` a pair (values, indices). NaN where there is one.

    Raises ``IndexError`` where ``dim`` has no elements.
    """
    if dim is None:
        return store("median", order_statistics.median_all(input), out)
    return store("median", order_statistics.median_dim(input, dim, keepdim), out)


@public
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """As :func:`median` of the elements that are not NaN; NaN where all are."""
    if dim is None:
        return store("nanmedian", order_statistics.nanmedian_all(input), out)
    return store("nanmedian", order_statistics.nanmedian_dim(input, dim, keepdim), out)
