"""Sums, means and spreads beyond the plain ones: without NaN, in pairs, of what is not 0."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._codegen.arguments import as_shape
from candelabra._layout import reduced_shape
from candelabra._operators.fronts.reductions import std, var
from candelabra._operators.primitives import reductions
from candelabra._records.callables import public
from candelabra._records.promotion import accumulated, index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import FLOATING, int64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor
    from candelabra.typing import Dim, Dims, DType


def _without_nan(input: Tensor, dtype: DType | None) -> Tensor:
    if dtype is not None:
        input = input.to(dtype)
    return input.masked_fill(input.isnan(), 0) if input.dtype.category >= FLOATING else input


@operator(reduction, result=accumulated, accepts="real")
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over ``dim`` (all dims when None) with NaN counted as 0. Integers and bools sum to int64."""
    return _without_nan(input, dtype).sum(dim, keepdim)


@operator(reduction, accepts="floating")
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean over ``dim`` (all dims when None) of the elements that are not NaN; NaN where there are none."""
    counted = input.isnan().logical_not().sum(dim, keepdim)
    return _without_nan(input, dtype).sum(dim, keepdim) / counted


@operator(reduction, result=index)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements over ``dim`` (all dims when None) are not 0, as int64. NaN is not 0."""
    return (input != 0).sum(dim, dtype=int64)


count_nonzero.no_gradient("the result is a count")


class Extremes(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


@by
def _both_extremes(input: Tensor, dim: int | None, keepdim: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = shape_of(input)
    if dim is None and 0 in shape:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity")
    if dim is not None and shape and not shape[dim]:
        raise IndexError(f"aminmax(): Expected reduction dim {dim} to have non-zero size.")
    reduced = reduced_shape(shape, None if dim is None else (dim,), keepdim)
    return reduced, reduced


@operator(_both_extremes, result=(same, same), accepts="real", out=True)
def aminmax(input: Tensor, *, dim: Dim | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest element along ``dim`` (of all when None) as a pair ``(min, max)``; NaN spreads.

    Ties share the gradient evenly. Raises ``RuntimeError`` of no elements, ``IndexError`` of a dim without any.
    """
    _both_extremes(aminmax, (input, dim, keepdim))
    dims = None if dim is None else (dim,)
    return Extremes(reductions.amin(input, dims, keepdim), reductions.amax(input, dims, keepdim))


@public
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The pair (variance, mean) over ``dim``; see :func:`candelabra.var` for the arguments."""
    return _with_mean(var, input, dim, unbiased, keepdim, correction)


@public
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The pair (standard deviation, mean) over ``dim``; see :func:`candelabra.std` for the arguments."""
    return _with_mean(std, input, dim, unbiased, keepdim, correction)


def _with_mean(
    spread: Any, input: Tensor, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None
) -> tuple[Tensor, Tensor]:
    spreads = spread(input, dim, unbiased, keepdim, correction=correction)
    return spreads, reductions.mean(input, None if isinstance(dim, bool) else dim, keepdim)


@public(is_function=False)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the dims that an expansion from ``size`` (ints, or one tuple) would have repeated.

    Raises ``RuntimeError`` where ``size`` does not expand to this shape.
    """
    wanted = as_shape(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    shape = tuple(input.shape)
    lead = len(shape) - len(wanted)
    if lead < 0 or any(w not in (1, s) for w, s in zip(wanted, shape[lead:], strict=True)):
        raise RuntimeError(f"size {list(wanted)} is not expandable to size {list(shape)}.")
    if not shape:
        return input.sum()
    repeated = [lead + i for i, w in enumerate(wanted) if w == 1 != shape[lead + i]]
    summed = input.sum(repeated, True) if repeated else input
    return summed.sum(list(range(lead))) if lead else summed
