"""Linear and bilinear maps."""

from __future__ import annotations

from math import prod

from candelabra.dtypes import DTYPE_MASK
from candelabra.library import Autocast, batching, by, operator, record, shape_of, unpromoted
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

matmul = record("matmul")
Ints = tuple[int, ...]


@by
def _linear_shape(input: Tensor, weight: Tensor, bias: Tensor | None) -> Ints:
    return (*shape_of(input)[:-1], *shape_of(weight)[:-1])


@operator(_linear_shape, promote=unpromoted, namespace="nn.functional", autocast="lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: input (*, in), weight (out, in) or (in), bias (out) or ()."""
    if (input._keys ^ weight._keys) & DTYPE_MASK:
        a, b = (t.dtype.title.lower() for t in (input, weight))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    sizes, rank = input._payload.shape, len(weight._payload.shape)
    if not sizes or not rank:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if rank != 2:
        product = matmul.canonical(input, weight)
        return product if bias is None else product + bias
    batch = len(sizes) > 2  # one product of matrices, not a batch of products
    product = matmul.canonical(_rows(input) if batch else input, weight.t())
    count = weight._payload.shape[0]
    if bias is not None:
        alike = bias._payload.shape == (count,) and not (bias._keys ^ product._keys) & DTYPE_MASK
        product = product.add_(bias) if alike else product + bias
    return product.reshape((*sizes[:-1], count)) if batch else product


def _rows(x: Tensor) -> Tensor:
    """Return a matrix whose rows are the vectors along the last dim."""
    shape = x._payload.shape
    return x if len(shape) == 2 else x.reshape((prod(shape[:-1]), shape[-1]))


def _linear_input(g: Tensor, input_spec: Any, weight: Tensor) -> Tensor:
    sizes, shape = weight._payload.shape, g._payload.shape
    if len(sizes) == 1:
        return g.unsqueeze(-1) * weight.conj()
    product: Tensor = matmul.canonical(g if shape[-1] == sizes[0] else _of_product(g), weight.conj())
    return product


def _linear_weight(g: Tensor, input: Tensor, weight_spec: Any) -> Tensor:
    sizes, shape = weight_spec.shape, g._payload.shape
    if len(sizes) == 1:
        return input.conj() * g.unsqueeze(-1)
    if shape[:-1] != input._payload.shape[:-1]:  # the bias has more dims than the product
        input = input.expand((*shape[:-1], -1))
    out: Tensor = linear_weight_backward.canonical(g if shape[-1] == sizes[0] else _of_product(g), input)
    return out


def _weight_shape(grad: Tensor, input: Tensor) -> Ints:
    shape, sizes = shape_of(grad), shape_of(input)
    if not shape or shape[:-1] != sizes[:-1] or len(shape) != len(sizes):
        raise RuntimeError(
            f"linear_weight_backward takes grad (*, out) and input (*, in), got {list(shape)} and {list(sizes)}"
        )
    return shape[-1], sizes[-1]


@operator(by(_weight_shape), accepts="floating", method=False, public=False, out=False)
def linear_weight_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The sum of the outer products of grad (*, out) and input (*, in): the weight's gradient in :func:`linear`."""
    _weight_shape(grad, input)
    # Not the transpose of `input.mH @ g`: a leaf keeps this product as its gradient, and would copy a view.
    product: Tensor = matmul.canonical(_rows(grad).t(), _rows(input.conj()))
    return product


def _of_product(g: Tensor) -> Tensor:
    """Return the gradient of the product of which a bias of several elements broadcasts the only column."""
    return g.sum(-1, True)


linear.vjp(input=_linear_input, weight=_linear_weight, bias=lambda g: g)  # the engine sums over broadcast dims


@linear.batched
def _linear_of_examples(size: int, batched: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    if not batched[1] and not batched[2]:
        return linear.canonical(input, weight, bias)
    if batching.rank_of(weight, batched[1]) != 2:
        return NotImplemented
    rank = batching.rank_of(input, batched[0])
    if not batched[1]:
        product = matmul.canonical(input, weight.t())
    elif batched[0]:
        rows = batching.aligned(input, 1) if rank == 1 else input
        product = matmul.canonical(rows, batching.aligned(weight.mT, rank - 2))
        product = product.squeeze(1) if rank == 1 else product
    elif rank == 1:
        product = matmul.canonical(weight, input)
    else:
        product = matmul.canonical(input, batching.aligned(weight.mT, rank - 2))
    if bias is None:
        return product
    return product + (batching.aligned(bias, rank - batching.rank_of(bias, True)) if batched[2] else bias)


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
