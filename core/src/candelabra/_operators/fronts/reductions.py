"""Reductions that PyTorch overloads: ``max``, ``min``, ``var`` and ``std``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.out import store
from candelabra._operators.primitives import reductions
from candelabra._records.callables import public
from candelabra._tensor import Tensor
from candelabra.dtypes import uint8

if TYPE_CHECKING:
    from collections.abc import Sequence


@public(name="all")
def all_(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Any:
    """Whether all elements over ``dim`` are nonzero; True for none. The result is bool, of uint8 uint8."""
    return _truth(reductions.all, input, dim, keepdim, out)


@public(name="any")
def any_(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Any:
    """Whether any element over ``dim`` is nonzero; False for none. The result is bool, of uint8 uint8."""
    return _truth(reductions.any, input, dim, keepdim, out)


def _truth(record: Any, input: Tensor, dim: Any, keepdim: bool, out: Tensor | None) -> Any:
    if dim == ():  # the one reduction for which no dims means none
        found = input != 0
    else:
        found = record.function(input, dim, keepdim)
    if input.dtype is uint8:
        found = found.to(uint8)
    return found if out is None else store(record.name, found, out)


def _correction(dim: Any, unbiased: bool | None, correction: float | None) -> tuple[Any, float]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = float(unbiased)
    return dim, 1 if correction is None else correction


@public
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Any:
    """The variance over ``dim``; divides by ``n - correction`` (1 when None; ``unbiased``: its older name)."""
    dim, correction = _correction(dim, unbiased, correction)
    return store("var", reductions.var(input, dim, correction=correction, keepdim=keepdim), out)


@public
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Any:
    """The standard deviation over ``dim``; see :func:`var`."""
    dim, correction = _correction(dim, unbiased, correction)
    return store("std", reductions.std(input, dim, correction=correction, keepdim=keepdim), out)
