"""Masks, and the identities that replace masked-out elements so that these do not affect a reduction."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dims
from candelabra._operators.elementwise.selection import where
from candelabra._records.callables import public
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, bool_

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra.typing import DType, Tensor

INFINITY = float("inf")


def expanded_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as a bool tensor of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.to(bool_).expand(input.shape)


def fill_masked(input: Tensor, mask: Tensor | None, identity: float) -> Tensor:
    """Return ``input`` where the mask is True and ``identity`` elsewhere, in the input's dtype."""
    if mask is None:
        return input
    out: Tensor = where(expanded_mask(input, mask), input, identity)
    return out.to(input.dtype)


def lowest(input: Tensor) -> float:
    """Return the smallest number of the input's dtype."""
    return _limit(input, -1)


def highest(input: Tensor) -> float:
    """Return the largest number of the input's dtype."""
    return _limit(input, 1)


def _limit(input: Tensor, sign: int) -> float:
    d = input.dtype
    if d.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"the identity of an extremum is not defined for {d}")
    if d.category == FLOATING:
        return sign * INFINITY
    bits = 8 * d.itemsize - d.is_signed
    return (1 << bits) - 1 if sign > 0 else -(1 << bits) * d.is_signed


def in_dtype(x: Tensor, dtype: DType | None) -> Tensor:
    """Return ``x`` in a dtype, or ``x`` itself if that is None."""
    return x if dtype is None else x.to(dtype)


SAME_SHAPE = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


@public(namespace="masked")
def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the mask that a masked operation with these arguments applies to its input, in the input's shape."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return expanded_mask(input, mask)


@public(namespace="masked")
def _output_mask(op: Callable[..., Tensor], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return True where the result of the masked operation ``op``, with these arguments, depends on any selected
    element.
    """
    mask, name = _input_mask(input, *args, **kwargs), op.__name__.removeprefix("masked_")
    if name in SAME_SHAPE:
        return mask
    dims = args[1:] if name == "norm" else args
    dim = dims[0] if dims else kwargs.get("dim", -1 if name == "median" else None)
    return mask.any(as_dims(dim, input), bool(kwargs.get("keepdim", False)))
