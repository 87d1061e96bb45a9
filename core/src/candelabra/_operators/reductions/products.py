"""The product over dims."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.conversion.dtype_and_device import uncast
from candelabra._operators.creation.filled import new_full, zeroed
from candelabra._operators.reductions.sums import expand_reduced
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.permuting import inverse_permutation
from candelabra._records.promotion import accumulated
from candelabra._records.record import operator
from candelabra._records.rules import reduction

if TYPE_CHECKING:
    from candelabra.typing import Dims, DType, Tensor


@operator(reduction, result=accumulated, autocast="float32")
def prod(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the product over ``dim`` (all dims if None). Integers and bools give int64.

    ``keepdim`` keeps the reduced dims with size 1; the input is cast to ``dtype`` first.
    """
    ...


def _prod_back(g: Tensor, input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Tensor:
    # The derivative with respect to an element is the product of all others. It is computed without division, because
    # of zeros: the product of the elements before it times the product of those after it.
    x = input if dtype is None else input.to(dtype)
    rank = len(x.shape)
    dims = tuple(range(rank)) if dim is None else dim
    remaining = tuple(i for i in range(rank) if i not in dims)
    order = (*remaining, *dims)
    flat = x.permute(order).reshape([x.shape[i] for i in remaining] + [-1 if x.numel() else 0])
    n = flat.shape[-1]
    if n:
        ones = new_full(flat, (*flat.shape[:-1], 1), 1)
        before = cat([ones, flat.narrow(-1, 0, n - 1)], -1).cumprod(-1)
        after = cat([ones, flat.flip(-1).narrow(-1, 0, n - 1)], -1).cumprod(-1).flip(-1)
        flat = (before * after).conj()
    others = flat.reshape([x.shape[i] for i in order]).permute(inverse_permutation(order))
    return uncast(expand_reduced(g, dim, keepdim, tuple(x.shape)) * others, input)


prod.vjp(input=_prod_back)


def _prod_along(
    t_input: Tensor, input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None, out: Tensor
) -> Tensor:
    # A tree of products: (x, dx) (y, dy) = (x y, dx y + x dy), without division, as above.
    x, t = (input, t_input) if dtype is None else (input.to(dtype), t_input.to(dtype))
    rank = len(x.shape)
    dims = tuple(range(rank)) if dim is None else dim
    remaining = tuple(i for i in range(rank) if i not in dims)
    lead = [x.shape[i] for i in remaining]
    x, t = (part.permute((*remaining, *dims)).reshape([*lead, -1 if x.numel() else 0]) for part in (x, t))
    while (n := x.shape[-1]) > 1:
        half = n // 2
        (x, y, *x_left), (t, t_y, *t_left) = ([*part.split([half, half, n % 2][: 2 + n % 2], -1)] for part in (x, t))
        x, t = cat([x * y, *x_left], -1), cat([t * y + x * t_y, *t_left], -1)
    return t.reshape(out.shape) if x.numel() else zeroed(out)


prod.jvp(_prod_along)
