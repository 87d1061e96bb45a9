"""Indices of nonzero elements, and indices per dim of flat indices."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._codegen.arguments import as_shape
from candelabra._geometry import Ints
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.selection import where
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import index
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of, unchecked
from candelabra._tensor import Tensor
from candelabra.dtypes import INTEGER, int64


@operator(unchecked, result=index, data_dependent=True, out="exact", public=False)
def nonzero(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements, one row each in C order: a tensor of shape (n, ``input.ndim``)."""
    ...


@public(out="exact", public=False)
def nonzero_tuple(input: Tensor, *, as_tuple: bool) -> Tensor | tuple[Tensor, ...]:
    """Return a 1-d tensor of indices for each dim with ``as_tuple``; a 0-d tensor is treated as a vector."""
    if not as_tuple:
        return nonzero(input)
    return tuple(nonzero(input if input.ndim else input.reshape(1)).unbind(1))


nonzero_overloads = overloads("nonzero", nonzero, nonzero_tuple, aliases=("argwhere",))


@by
def _static_rows(input: Tensor, size: int, fill_value: int) -> Ints:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return size, len(shape_of(input))


@operator(_static_rows, result=index)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the first ``size`` rows of :func:`nonzero`. If there are fewer, the remaining rows are ``fill_value``."""
    _static_rows(nonzero_static, (input, size, fill_value))
    # The k-th nonzero element is the first element at which the cumulative count of nonzero elements is k.
    counts = (input != 0).flatten().cumsum(0)
    flat = sorted_place(counts, new_arange(input, 1, 1, size, dtype=int64), False)
    rows = new_full(input, (size, input.ndim), fill_value, dtype=int64)
    if not rows.numel():
        return rows
    indices = unraveled(flat, tuple(input.shape))
    columns = [where(flat < input.numel(), column, fill_value).unsqueeze(1) for column in indices]
    return cat(columns, 1)


for _record in (nonzero, nonzero_static):
    _record.no_gradient("the result is an index")


def unraveled(indices: Tensor, shape: Ints) -> list[Tensor]:
    """Return the indices per dim of flat int64 ``indices`` into a tensor of ``shape``."""
    result: list[Tensor] = []
    stride = 1
    for size in reversed(shape):
        result.append((indices // stride) % max(size, 1))
        stride *= max(size, 1)
    return result[::-1]


@public(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return the indices per dim of flat ``indices`` into a tensor of ``shape``: an int64 tensor for each dim.

    Raises ``TypeError`` for indices that are not integers, ``ValueError`` for a negative size.
    """
    if indices.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    return tuple(unraveled(indices.to(int64), as_shape(sizes)))
