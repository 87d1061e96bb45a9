"""A hash of the bits of all elements over dims."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import reduced_shape
from candelabra._operators.creation.filled import new_full
from candelabra._operators.shapes.joining import cat
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import dtype, float64, int64, uint64

if TYPE_CHECKING:
    from candelabra.typing import Dims, Tensor


@by
def _hash_shape(input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, mode: int) -> tuple[int, ...]:
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode: {mode}")
    if input.dtype.is_complex:
        raise NotImplementedError("hash_tensor is not implemented for complex dtypes")
    return reduced_shape(shape_of(input), dim, keepdim)


def _uint64(d: dtype) -> dtype:
    return uint64


@operator(_hash_shape, result=_uint64)
def hash_tensor(input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """Return the exclusive or, over ``dim`` (all dims if empty), of the bits of all elements, as uint64.

    Floats are converted to float64, integers and bools to int64. ``mode`` must be 0.
    """
    shape = _hash_shape(hash_tensor, (input, dim, keepdim, mode))
    bits = input.to(float64).view(int64) if input.is_floating_point() else input.to(int64)
    for d in range(input.ndim) if dim is None else dim:  # type: ignore[union-attr] # canonical: a tuple
        bits = _xor(bits, d)
    return bits.reshape(shape).view(uint64).clone()


hash_tensor.no_gradient("the result is a hash")


def _xor(bits: Tensor, dim: int) -> Tensor:
    """Return the exclusive or along one dim, which is kept with size 1. Halves are combined repeatedly."""
    size = bits.shape[dim]
    if not size:
        return new_full(bits, [1 if d == dim else s for d, s in enumerate(bits.shape)], 0)
    while size > 1:
        half, odd = divmod(size, 2)
        halves = bits.narrow(dim, 0, half) ^ bits.narrow(dim, half, half)
        bits = cat([halves, bits.narrow(dim, 2 * half, 1)], dim) if odd else halves
        size = half + odd
    return bits
