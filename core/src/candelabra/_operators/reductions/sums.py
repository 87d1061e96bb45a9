"""Sums and means over dims, with and without NaN, and counts."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.conversion.dtype_and_device import uncast
from candelabra._operators.shapes.expanding import expand
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import accumulated, index
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import FLOATING, float32, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dims, DType, Shape, Tensor


def expand_reduced(x: Tensor, dim: tuple[int, ...] | None, keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    """Expand a reduced tensor to the shape from which it was reduced: the adjoint of a sum."""
    if dim is not None and not keepdim and shape:  # a 0-d tensor needs no dims of size 1
        x = x.view(tuple(1 if i in dim else s for i, s in enumerate(shape)))
    out: Tensor = expand.canonical(x, shape)
    return out


def reduced_count(shape: tuple[int, ...], dim: Dims) -> int:
    """Return the number of elements that a reduction over ``dim`` (canonical) combines into one."""
    total = 1
    for i, size in enumerate(shape):
        if dim is None or i in dim:  # type: ignore[operator] # canonical: a tuple
            total *= size
    return total


@operator(reduction, result=accumulated, autocast=Autocast("float32"))
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the sum over ``dim`` (all dims if None), pairwise or in a wider dtype. Integers and bools sum to int64.

    ``keepdim`` keeps the reduced dims with size 1; the input is cast to ``dtype`` first.
    """
    ...


def _sum_back(g: Tensor, input_spec: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Tensor:
    if dtype is not None:
        g = uncast(g, input_spec)
    return expand_reduced(g, dim, keepdim, input_spec.shape)


sum.vjp(input=_sum_back)


def check_tangent_shape(name: str, t_input: Tensor, input: Tensor) -> None:
    """Raise ``RuntimeError`` unless a tangent has the shape of its input."""
    if shape_of(t_input) != shape_of(input):
        raise RuntimeError(
            f"{name}: the tangent must have the shape of the input, {list(shape_of(input))}, got "
            f"{list(shape_of(t_input))}"
        )


def sum_of_products(x: Tensor, y: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """Return ``sum(x * y)`` over ``dim`` (canonical) of two tensors of one shape. Real products over the last dims are
    added as they are computed.
    """
    from candelabra._operators.linalg.products.vectors import linalg_vecdot

    rank = len(x.shape)
    dims: Any = tuple(range(rank)) if dim is None else dim
    count = len(dims)
    lead = tuple(x.shape[: rank - count])
    if not count or min(dims) < rank - count or not x.numel() or x.is_complex():
        return sum(x * y, dim, keepdim)
    found = linalg_vecdot.canonical(x.reshape((*lead, -1)), y.reshape((*lead, -1)), -1)
    return found.reshape((*lead, *[1] * count)) if keepdim else found


def _mean_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of a :func:`reduction`. Raise ``RuntimeError`` unless ``dtype`` is floating or complex."""
    dtype = args[3]
    if dtype is not None and dtype.category < FLOATING:
        raise RuntimeError(
            f"{op.name}(): could not infer output dtype. Optional dtype must be either a floating point or complex "
            f"dtype. Got: {dtype.title}"
        )
    result: tuple[int, ...] = reduction(op, args)
    return result


@operator(_mean_shape, accepts="floating")
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the arithmetic mean over ``dim`` (all dims if None); NaN over no elements.

    ``keepdim`` keeps the reduced dims with size 1; the input is cast to ``dtype`` first.
    """
    _mean_shape(mean, (input, dim, keepdim, dtype))
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtype)
    if input.dtype.is_half:  # in float32, the sum and the count do not overflow
        return mean(input.to(float32), dim, keepdim).to(input.dtype)
    return sum(input, dim, keepdim) / reduced_count(input.shape, dim)


def _mean_back(g: Tensor, input_spec: Any, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    g = g / max(reduced_count(input_spec.shape, dim), 1)
    return expand_reduced(g if g.dtype is input_spec.dtype else g.to(input_spec.dtype), dim, keepdim, input_spec.shape)


mean.vjp(input=_mean_back)


def _nan_to_zero(input: Tensor, dtype: DType | None) -> Tensor:
    """Return the input in ``dtype``, with 0 for NaN."""
    if dtype is not None:
        input = input.to(dtype)
    return input.masked_fill(input.isnan(), 0) if input.dtype.category >= FLOATING else input


@operator(reduction, result=accumulated, accepts="real")
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the sum over ``dim`` (all dims if None) with NaN replaced by 0. Integers and bools sum to int64."""
    return _nan_to_zero(input, dtype).sum(dim, keepdim)


@operator(reduction, accepts="floating")
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the mean over ``dim`` (all dims if None) of the elements that are not NaN, or NaN if all are."""
    counted = input.isnan().logical_not().sum(dim, keepdim)
    values = _nan_to_zero(input, dtype)
    if values.dtype.is_half:  # in float32, the sum and the count do not overflow
        return (values.to(float32).sum(dim, keepdim) / counted).to(values.dtype)
    return values.sum(dim, keepdim) / counted


@operator(reduction, result=index)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements over ``dim`` (all dims if None) that are not 0, as int64. NaN is not 0."""
    return (input != 0).sum(dim, dtype=int64)


count_nonzero.no_gradient("the result is a count")


@by
def _expandable_shape(input: Tensor, size: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``size``. Raise ``RuntimeError`` unless it expands to the input's shape."""
    shape = shape_of(input)
    lead = len(shape) - len(size)
    if lead < 0 or any(w not in (1, s) for w, s in zip(size, shape[lead:], strict=True)):
        raise RuntimeError(f"size {list(size)} is not expandable to size {list(shape)}.")
    return size


@operator(_expandable_shape, result=accumulated, is_function=False, out=False)
def sum_to_size(input: Tensor, *size: Shape) -> Tensor:
    """Sum over the dims that an expansion from ``size`` to the shape of this tensor repeats.

    Raises ``RuntimeError`` if ``size`` does not expand to this shape.
    """
    target: tuple[int, ...] = _expandable_shape(sum_to_size, (input, size))
    if not target:
        return input.sum()
    lead = input.ndim - len(target)
    repeated = [lead + i for i, w in enumerate(target) if w == 1 != input.shape[lead + i]]
    if repeated:
        input = input.sum(repeated, True)
    return input.sum(tuple(range(lead))) if lead else input
