"""Resampling along a dim: the product with a banded matrix, of which interpolation and adaptive means are made.

Row i of the matrix has its elements in the columns ``start[i]`` to ``start[i] + len(weight[i])``. The starts do not
decrease, so the columns of the matrix are a band too, and the derivative is the product with the transpose.
"""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import int64
from candelabra.library import by, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Dim, Sequence, Tensor

Ints = tuple[int, ...]
Rows = tuple[tuple[float, ...], ...]


class Band(NamedTuple):
    """A banded matrix: the column in which each row starts, and the same number of elements of each row."""

    start: Ints
    weight: Rows


def band_of(rows: Sequence[dict[int, float]], columns: int) -> Band:
    """Return the matrix whose row i has the elements ``{column: value}`` of ``rows[i]``."""
    width = max([max(row) - min(row) + 1 for row in rows], default=0)
    start = tuple([min(min(row), columns - width) for row in rows])
    weight = tuple([
        tuple([row.get(s + k, 0.0) for k in range(width)]) for s, row in zip(start, rows, strict=True)
    ])  # fmt: skip
    return Band(start, weight)


@lru_cache(256)
def transposed(start: Ints, weight: Rows, columns: int) -> Band:
    """Return the transpose of a matrix with ``columns`` columns."""
    rows: list[dict[int, float]] = [{} for _ in range(columns)]
    for i, (s, row) in enumerate(zip(start, weight, strict=True)):
        for k, w in enumerate(row):
            if w:
                rows[s + k][i] = w
    last = 0
    for column in rows:  # A column without elements starts where the one before it does.
        if column:
            last = min(column)
        else:
            column[last] = 0.0
    return band_of(rows, len(start))


@lru_cache(256)
def averages(size: int, count: int) -> Band:
    """Return the matrix whose row i averages the elements floor(i * size / count) to ceil((i + 1) * size / count)."""
    rows = []
    for i in range(count):
        first, end = i * size // count, -(-(i + 1) * size // count)
        rows.append(dict.fromkeys(range(first, end), 1 / (end - first)))
    return band_of(rows, size)


@by
def _resampled(input: Tensor, dim: int, start: Ints, weight: Rows) -> Ints:
    shape = shape_of(input)
    return (*shape[:dim], len(start), *shape[dim + 1 :])


@operator(_resampled, accepts="real floating", method=False, public=False, out=False)
def resample(input: Tensor, dim: Dim, start: Ints, weight: Rows) -> Tensor:
    """Sum ``weight[i][k] * input[start[i] + k]`` over k, along ``dim``; the result has the size ``len(start)``.

    An element whose weight is 0 is not read, so that it may be infinite or NaN. Starts are within bounds and do not
    decrease, and all rows of ``weight`` have the same length. Half types compute in float32.
    """
    where = record("where")

    wide = input.float() if input.dtype.itemsize == 2 else input
    shape = [1] * input.ndim
    shape[dim] = len(start)
    total: Any = None
    for k, column in enumerate(zip(*weight, strict=True)):
        factors = wide.new_tensor(column).reshape(shape)
        values = wide.index_select(dim, input.new_tensor([s + k for s in start], dtype=int64))
        term = where(factors == 0, 0, values * factors) if 0 in column else values * factors
        total = term if total is None else total + term
    return total.to(input.dtype)


resample.vjp(
    input=lambda g, input_spec, dim, start, weight: resample(g, dim, *transposed(start, weight, input_spec.shape[dim]))
)
