"""The product over dims."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import reduced_shape
from candelabra._operators.conversion.dtype_and_device import uncast
from candelabra._operators.creation.filled import new_full
from candelabra._operators.reductions.sums import check_tangent_shape, expand_reduced
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.permuting import inverse_permutation
from candelabra._records.promotion import accumulated, same
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import float32

if TYPE_CHECKING:
    from candelabra.typing import Dims, DType, Tensor


@operator(reduction, result=accumulated, autocast="float32")
def prod(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the product over ``dim`` (all dims if None). Integers and bools give int64.

    ``keepdim`` keeps the reduced dims with size 1; the input is cast to ``dtype`` first.
    """
    ...


def _rows(x: Tensor, dim: tuple[int, ...] | None) -> tuple[Tensor, tuple[int, ...]]:
    """Return the factors of each product along the last dim, and the order of the dims from which they come."""
    rank = len(x.shape)
    dims = tuple(range(rank)) if dim is None else dim
    order = (*(i for i in range(rank) if i not in dims), *dims)
    lead = [x.shape[i] for i in order[: rank - len(dims)]]
    return x.permute(order).reshape([*lead, -1 if x.numel() else 0]), order


def _others(x: Tensor) -> Tensor:
    """Return, for each factor along the last dim, the product of all others: of those before it and those after it.

    There is no division, because of zeros.
    """
    n = x.shape[-1]
    if not n:
        return x
    ones = new_full(x, (*x.shape[:-1], 1), 1)
    before = cat([ones, x.narrow(-1, 0, n - 1)], -1).cumprod(-1)
    return before * cat([ones, x.flip(-1).narrow(-1, 0, n - 1)], -1).cumprod(-1).flip(-1)


def _prod_back(g: Tensor, input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Tensor:
    x = input if dtype is None else input.to(dtype)
    rows, order = _rows(x, dim)
    others = _others(rows).conj().reshape([x.shape[i] for i in order]).permute(inverse_permutation(order))
    return uncast(expand_reduced(g, dim, keepdim, tuple(x.shape)) * others, input)


prod.vjp(input=_prod_back)


class ProductAlong(NamedTuple):
    """A product, and its derivative along a tangent."""

    product: Tensor
    slope: Tensor


@by
def _shapes_along(t_input: Tensor, input: Tensor, dim: Any, keepdim: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    check_tangent_shape("prod", t_input, input)
    shape = reduced_shape(shape_of(input), dim, keepdim)
    return shape, shape


@operator(_shapes_along, result=(same, same), accepts="floating", method=False, public=False)
def prod_along(t_input: Tensor, input: Tensor, dim: Dims = None, keepdim: bool = False) -> ProductAlong:
    """Return :func:`prod`, and its derivative along ``t_input``. There is no division, so that zeros are exact."""
    # A tree of products of dual numbers, (x, dx) (y, dy) = (x y, dx y + x dy).
    _shapes_along(prod_along, (t_input, input, dim, keepdim))
    if input.dtype.is_half:
        found = prod_along(t_input.to(float32), input.to(float32), dim, keepdim)
        return ProductAlong(found.product.to(input.dtype), found.slope.to(input.dtype))
    dims: Any = dim  # a tuple or None: the dims of a body are canonical
    shape = reduced_shape(shape_of(input), dims, keepdim)
    x, t = _rows(input, dims)[0], _rows(t_input, dims)[0]
    if not x.shape[-1]:
        return ProductAlong(new_full(input, shape, 1), new_full(input, shape, 0))
    while (n := x.shape[-1]) > 1:
        half, odd = n // 2, n % 2
        y, t_y = x.narrow(-1, half, half), t.narrow(-1, half, half)
        parts = x.narrow(-1, 0, half) * y, t.narrow(-1, 0, half) * y + x.narrow(-1, 0, half) * t_y
        if odd:
            parts = cat([parts[0], x.narrow(-1, n - 1, 1)], -1), cat([parts[1], t.narrow(-1, n - 1, 1)], -1)
        x, t = parts
    return ProductAlong(x.reshape(shape).clone(), t.reshape(shape).clone())


def _product_and_slope(t_input: Tensor, input: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    if dtype is not None:
        t_input, input = t_input.to(dtype), input.to(dtype)
    return prod_along.canonical(t_input, input, dim, keepdim)


prod.jvp(_product_and_slope, joint=True)
