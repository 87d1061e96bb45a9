"""Linear and bilinear maps."""

from __future__ import annotations

from math import prod

from candelabra.library import Autocast, by, operator, shape_of, unpromoted
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


@by
def _linear_shape(input: Tensor, weight: Tensor, bias: Tensor | None) -> Ints:
    return (*shape_of(input)[:-1], *shape_of(weight)[:-1])


@operator(_linear_shape, promote=unpromoted, namespace="nn.functional", autocast="lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: input (*, in), weight (out, in) or (in), bias (out) or ()."""
    if weight.dtype is not input.dtype:
        a, b = (t.dtype.title.lower() for t in (input, weight))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if input.ndim > 2 and weight.ndim == 2:
        # One product of matrices: a batch of products has a gradient of the weight for each of its matrices.
        *lead, width = input.shape
        product = input.reshape((prod(lead), width)) @ weight.t()
        return (product if bias is None else product + bias).reshape((*lead, weight.shape[0]))
    product = input @ (weight.t() if weight.ndim == 2 else weight)
    return product if bias is None else product + bias


def _bilinear_shape(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Ints:
    first, second, sizes = shape_of(input1), shape_of(input2), shape_of(weight)
    if first[:-1] != second[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {list(first)} and {list(second)}")
    if len(sizes) != 3 or sizes[1:] != (*first[-1:], *second[-1:]):
        raise RuntimeError(
            f"bilinear(): inputs of size {first[-1]} and {second[-1]} do not match weight of size {list(sizes)}"
        )
    return (*first[:-1], sizes[0])


@operator(by(_bilinear_shape), promote=unpromoted, out=False, method=False, aliases=("nn.functional.bilinear",),
          autocast=Autocast("widest"))  # fmt: skip
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[o] @ input2`` for each o: inputs (*, a) and (*, b), weight (out, a, b), bias (out)."""
    _bilinear_shape(input1, input2, weight)
    count, width, other = weight.shape
    product = input1 @ weight.permute(1, 0, 2).reshape((width, count * other))
    out = (product.reshape((*input1.shape[:-1], count, other)) * input2.unsqueeze(-2)).sum(-1, dtype=input1.dtype)
    return out if bias is None else out + bias
