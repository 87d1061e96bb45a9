"""Operators that reverse, rotate or roll elements along dims."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Ints
from candelabra._layout import wrap_dim
from candelabra._operators.conversion.copies import clone
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.permuting import transpose
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import DistinctDims, Tensor


@operator(like_input)
def flip(input: Tensor, *dims: DistinctDims) -> Tensor:
    """Return a copy with the elements in reverse order along ``dims``."""
    ...


flip.vjp(input=lambda g, dims: flip.canonical(g, dims))


@by
def _at_least_2d(input: Tensor) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return shape


@operator(_at_least_2d)
def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the columns in reverse order."""
    _at_least_2d(fliplr, (input,))
    return flip.canonical(input, (1,))


@by
def _at_least_1d(input: Tensor) -> Ints:
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("Input must be >= 1-d.")
    return shape


@operator(_at_least_1d)
def flipud(input: Tensor) -> Tensor:
    """Return a copy with the rows in reverse order."""
    _at_least_1d(flipud, (input,))
    return flip.canonical(input, (0,))


@by
def _rotated(input: Tensor, k: int, dims: Sequence[int]) -> Ints:
    shape = shape_of(input)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if len(shape) < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {len(shape)}")
    first, second = wrap_dim(dims[0], len(shape)), wrap_dim(dims[1], len(shape))
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    sizes = list(shape)
    if k % 2:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


@operator(_rotated)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy rotated by ``k`` times 90 degrees in the plane of two dims, from the first towards the second."""
    _rotated(rot90, (input, k, dims))
    first, second = [wrap_dim(d, input.ndim) for d in dims]
    turns = k % 4
    if turns == 2:
        return flip.canonical(input, (first, second))
    if turns:
        return transpose.canonical(flip.canonical(input, (second if turns == 1 else first,)), first, second)
    return clone(input)


def _as_tuple(value: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)  # type: ignore[return-value]


@by
def _rolled(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None) -> Ints:
    shape = shape_of(input)
    if dims is None:
        return shape
    count, along = len(_as_tuple(shifts)), len(_as_tuple(dims))
    if not count:
        raise RuntimeError("`shifts` required")
    if count != along:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {count}, dims:{along}")
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return shape


@operator(_rolled)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Return elements shifted cyclically along ``dims``, or along the flattened tensor if ``dims`` is None."""
    if dims is None:
        return reshape(roll(reshape(input, (input.numel(),)), shifts, 0), tuple(input.shape))
    _rolled(roll, (input, shifts, dims))
    out = input
    for shift, along in zip(_as_tuple(shifts), _as_tuple(dims), strict=True):
        dim = wrap_dim(along, input.ndim)
        size = out.shape[dim]
        k = shift % size if size else 0
        if k:
            out = cat([narrow(out, dim, size - k, k), narrow(out, dim, 0, size - k)], dim)
    return out if out is not input else clone(input)
