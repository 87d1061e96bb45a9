"""Masks and identities: what stands where a mask is False so that a reduction does not see it."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.primitives import arithmetic
from candelabra._records.callables import public
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, bool_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor

INFINITY = float("inf")


def canonical_dims(dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """``dim`` as sorted non-negative ints; None and ``()`` are all. ``RuntimeError`` for one that is named twice."""
    if dim is None or dim == ():
        return tuple(range(rank))
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        wrapped = wrap_dim(d, rank)
        if wrapped in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        dims.append(wrapped)
    return tuple(sorted(dims))


def canonical_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as a bool tensor of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    mask = mask if mask.dtype is bool_ else mask.to(bool_)
    return mask if mask.shape == input.shape else mask.expand(input.shape)


_NORMALIZATIONS = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


@public(namespace="masked")
def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask that a masked operation with these arguments applies to its input, in the input's shape."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return canonical_mask(input, mask)


@public(namespace="masked")
def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where the result of the masked operation ``op``, called with these arguments, is made of anything."""
    mask = _input_mask(input, *args, **kwargs)
    if op.__name__ in _NORMALIZATIONS:
        return mask
    dims = args[1:] if op.__name__ == "norm" else args
    dim = dims[0] if dims else kwargs.get("dim", -1 if op.__name__ == "median" else None)
    return mask.any(canonical_dims(dim, input.ndim), bool(kwargs.get("keepdim", False)))


def least(input: Tensor) -> Any:
    """What no element is less than."""
    return _limit(input, -1)


def greatest(input: Tensor) -> Any:
    """What no element is greater than."""
    return _limit(input, 1)


def _limit(input: Tensor, sign: int) -> Any:
    kind = input.dtype.category
    if kind in (BOOL, COMPLEX):
        raise NotImplementedError(f"an identity of extremes is not defined for {input.dtype}")
    if kind == FLOATING:
        return sign * INFINITY
    bits = 8 * input.element_size()
    if not _signed(input):
        return (1 << bits) - 1 if sign > 0 else 0
    return (1 << bits - 1) - 1 if sign > 0 else -(1 << bits - 1)


def _signed(input: Tensor) -> bool:
    return not input.dtype.name.startswith("uint")


def combined(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """``input`` where the mask is True, ``identity`` (a number) elsewhere."""
    if mask is None:
        return input
    out: Tensor = arithmetic.where.function(canonical_mask(input, mask), input, identity)
    return out if out.dtype is input.dtype else out.to(input.dtype)


def summed_dtype(input: Tensor) -> Any:
    """The dtype of sums and products: int64 for integers and bools."""
    from candelabra.dtypes import int64

    return int64 if input.dtype.category <= INTEGER else input.dtype
