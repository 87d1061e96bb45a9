"""Resampling along a dim: the product with a banded matrix, of which interpolation and adaptive means are made.

Row i of the matrix has its elements in the columns ``start[i]`` to ``start[i] + weight.shape[1]``. The starts are
within bounds and do not decrease, so the columns of the matrix are a band too, and kernels of the adjoint can gather.
"""

from __future__ import annotations

from candelabra.library import by, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Tensor

Ints = tuple[int, ...]


@by
def _resampled(input: Tensor, dim: int, start: Tensor, weight: Tensor) -> Ints:
    shape = shape_of(input)
    return (*shape[:dim], shape_of(start)[0], *shape[dim + 1 :])


@by
def _adjoint_shape(grad: Tensor, dim: int, start: Tensor, weight: Tensor, size: int) -> Ints:
    shape = shape_of(grad)
    return (*shape[:dim], size, *shape[dim + 1 :])


def _weighted(x: Any, dim: int, factors: Any) -> Any:
    """Return the elements times a factor for each place along ``dim``, and 0 where the factor is 0."""
    where = record("where")

    shape = [1] * x.ndim
    shape[dim] = x.shape[dim]
    factors = factors.reshape(shape)
    return where(factors == 0, 0, x * factors)


@operator(_resampled, accepts="real floating", method=False, public=False, out=False)
def resample(input: Tensor, dim: Dim, start: Index, weight: Tensor) -> Tensor:
    """Sum ``weight[i, k] * input[start[i] + k]`` over k, along ``dim``; the result has the size ``len(start)``.

    An element whose weight is 0 is not read, so that it may be infinite or NaN. Half types compute in float32.
    """
    new_full = record("new_full")

    wide, factors = (input.float(), weight.float()) if input.dtype.is_half else (input, weight)
    total: Any = new_full(wide, (*wide.shape[:dim], start.shape[0], *wide.shape[dim + 1 :]), 0)
    for k in range(weight.shape[1]):
        total = total + _weighted(wide.index_select(dim, start + k), dim, factors.select(1, k))
    return total.to(input.dtype)


@operator(_adjoint_shape, accepts="real floating", method=False, public=False, out=False)
def resample_adjoint(grad: Tensor, dim: Dim, start: Index, weight: Tensor, size: int) -> Tensor:
    """Sum ``weight[i, k] * grad[i]`` over all i and k with ``start[i] + k == j``, along ``dim``, for each j < ``size``.

    This is the product with the transposed matrix of :func:`resample`, and skips weights of 0 as it does.
    """
    new_full, index_add = record("new_full"), record("index_add")

    wide, factors = (grad.float(), weight.float()) if grad.dtype.is_half else (grad, weight)
    total: Any = new_full(wide, (*wide.shape[:dim], size, *wide.shape[dim + 1 :]), 0)
    for k in range(weight.shape[1]):
        total = index_add(total, dim, start + k, _weighted(wide, dim, factors.select(1, k)))
    return total.to(grad.dtype)


def _weight_vjp(g: Tensor, input: Tensor, dim: int, start: Tensor, width: int) -> Tensor:
    """Return the gradient of weights: products of ``g`` and what each weight multiplies, summed over other dims."""
    stack = record("stack")

    products: Any = [g * input.index_select(dim, start + k) for k in range(width)]
    others = tuple([d for d in range(input.ndim) if d != dim])
    return stack([p.sum(others) if others else p for p in products], 1)


resample.vjp(
    input=lambda g, input_spec, dim, start, weight: resample_adjoint(g, dim, start, weight, input_spec.shape[dim]),
    weight=lambda g, input, dim, start, weight_spec: _weight_vjp(g, input, dim, start, weight_spec.shape[1]),
)
resample_adjoint.vjp(
    grad=lambda g, dim, start, weight: resample(g, dim, start, weight),
    weight=lambda g, grad, dim, start, weight_spec: _weight_vjp(grad, g, dim, start, weight_spec.shape[1]),
)
