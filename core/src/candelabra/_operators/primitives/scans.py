"""Running sums and products along a dim."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._keys import NO_GRAD, state
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import accumulated
from candelabra._records.record import operator
from candelabra._records.rules import like_input

if TYPE_CHECKING:
    from candelabra.typing import Dim, DType, Tensor


@operator(like_input, result=accumulated, inplace=True)
def cumsum(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Tensor:
    """Running sums along ``dim``. Integers and bools give int64."""
    ...


cumsum.vjp(input=lambda g, dim, input_spec: g.flip(dim).cumsum(dim).flip(dim).to(input_spec.dtype))


@operator(like_input, result=accumulated, inplace=True)
def cumprod(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Tensor:
    """Running products along ``dim``. Integers and bools give int64."""
    ...


def _cumprod_back(g: Tensor, input: Tensor, out: Tensor, dim: int, dtype: DType | None) -> Tensor:
    # d out[j] / d x[i] = prod of x[k] over k <= j, k != i: out[j] / x[i] without zeros. Before the first zero that
    # holds, too (out is 0 from there on). At the first zero it is the product that leaves it out; after it, 0.
    x = input if dtype is None else input.to(dtype)
    zeros = x == 0
    if not x.shape:
        back = g
    elif not zeros.any().item():
        back = _sums_from_here(g * out.conj(), dim) / x.conj()
    elif state.bits & NO_GRAD:
        rank = zeros.cumsum(dim)
        first = zeros & (rank == 1)
        others = x.masked_fill(first, 1)
        at_first = _sums_from_here(g * others.cumprod(dim).conj(), dim).masked_fill(first.logical_not(), 0)
        before = _sums_from_here(g * out.conj(), dim) / others.masked_fill(rank > 0, 1).conj()
        back = before.masked_fill(rank > 0, 0) + at_first
    else:
        back = _cumprod_back_of_zeros(g, x, dim)
    return back if back.dtype is input.dtype else back.to(input.dtype)


def _sums_from_here(x: Tensor, dim: int) -> Tensor:
    return x.flip(dim).cumsum(dim).flip(dim)


def _cumprod_back_of_zeros(g: Tensor, x: Tensor, dim: int) -> Tensor:
    # A sum over j of outer terms without any division, so that it can be differentiated where there are zeros; O(n^2).
    x, g = x.movedim(dim, -1), g.movedim(dim, -1)
    n = x.shape[-1]
    columns = []
    for i in range(n):
        before = x.narrow(-1, 0, i).prod(-1, keepdim=True)
        after = x.narrow(-1, i + 1, n - i - 1).cumprod(-1)
        slope = cat([before, before * after], -1)
        columns.append((g.narrow(-1, i, n - i) * slope.conj()).sum(-1, True))
    out: Tensor = cat(columns, -1).movedim(-1, dim)
    return out


cumprod.vjp(input=_cumprod_back)
