"""``scatter_reduce`` and ``index_reduce``: sums, products, means and extrema of the values with equal indices."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.indexing.gather_scatter import (
    cropped,
    scatter_add,
    scatter_extreme,
    scattered_shape,
    without_scattered,
)
from candelabra._operators.indexing.index_operators import fits_slices, index_select
from candelabra._records.promotion import identical
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import BOOL, COMPLEX, INTEGER, dtype, int64

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Tensor

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _reduced(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Return the reduction for checked arguments; ``src`` has the shape of ``index``."""
    if reduce in ("prod", "amax", "amin"):
        return scatter_extreme.canonical(input, dim, index, src, reduce, include_self)
    start = input if include_self else without_scattered(input, dim, index)
    total = scatter_add.canonical(start, dim, index, src)
    if reduce == "sum":
        return total
    real = src.dtype.to_real()
    own = new_full(input, tuple(input.shape), int(include_self), dtype=real)
    count = scatter_add(own, dim, index, new_full(src, tuple(src.shape), 1, dtype=real)).clamp_min(1)
    return total // count if total.dtype.category == INTEGER else total / count


def _check_reduction(reduce: str, d: dtype) -> None:
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if (d.category == COMPLEX and reduce in ("amax", "amin")) or (d.category == BOOL and reduce == "mean"):
        raise NotImplementedError(f"\"scatter_reduce_{reduce}\" not implemented for '{d.title}'")


def _scatter_reduced(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> tuple[int, ...]:
    _check_reduction(reduce, input.dtype)
    return scattered_shape(input, dim, index, src)


@operator(by(_scatter_reduced), promote=identical, inplace=True, out="exact")
def scatter_reduce(
    input: Tensor, dim: Dim, index: Index, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return ``input`` with the elements of ``src`` reduced into the positions ``index`` along ``dim``: sum, prod,
    mean, amax or amin.

    ``include_self=False`` excludes the elements of ``input`` that ``index`` selects. Means of integers are rounded
    down. Raises ``RuntimeError`` for another ``reduce``, different dtypes and indices out of bounds,
    ``NotImplementedError`` for extrema of complex numbers and means of bools.
    """
    _scatter_reduced(input, dim, index, src, reduce, include_self)
    return _reduced(input, dim, index, cropped(src, tuple(index.shape)), reduce, include_self)


_fits_slices = fits_slices(RuntimeError)


@by
def _index_reduced(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> tuple[int, ...]:
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    shape: tuple[int, ...] = _fits_slices(index_reduce, (input, dim, index, source))
    return shape


@operator(_index_reduced, promote=identical, accepts="real numeric", inplace=True, out="exact")
def index_reduce(
    input: Tensor, dim: Dim, index: Index, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return ``input`` with the slices of ``source`` reduced into the positions ``index`` along ``dim``: prod, mean,
    amax or amin.

    ``include_self=False`` excludes the slices of ``input`` that ``index`` selects. Raises ``RuntimeError`` for another
    ``reduce``, different dtypes and shapes that do not fit, ``IndexError`` for indices out of bounds.
    """
    _index_reduced(index_reduce, (input, dim, index, source, reduce, include_self))
    # Selecting from 0, 1, 2, … gives the same indices, with the error of index operators for those out of bounds.
    numbers = new_arange(input, 0, 1, input.shape[dim] if input.ndim else 1, dtype=int64)
    checked = index_select(numbers, 0, index)
    sizes = [index.numel() if d == dim else 1 for d in range(input.ndim)]
    return _reduced(input, dim, checked.reshape(sizes).expand(source.shape), source, reduce, include_self)
