"""Tensors flipped and turned by quarters."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.fronts.shaping import flip
from candelabra._operators.primitives import creation, views
from candelabra._records.callables import public
from candelabra._tensor import Tensor


@public
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order, in a copy."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order, in a copy."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """``k`` quarter turns in the plane of two dims, from the first towards the second, in a copy."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = wrap_dim(dims[0], input.ndim), wrap_dim(dims[1], input.ndim)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 2:
        return flip(input, first, second)
    if turns:
        turned = flip(input, second if turns == 1 else first)
        return views.transpose(turned, first, second)
    return creation.clone(input)
