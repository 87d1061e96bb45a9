"""Combinations of a vector's elements and the Cartesian product of vectors."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._operators.shapes.expanding import meshgrid
from candelabra._operators.shapes.joining import cat, stack
from candelabra._operators.shapes.views import alias
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import int64
from candelabra.errors import OutOfMemoryError

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


MAX_LENGTH = 1 << 16
"""The most elements of a combination."""


def _count(n: int, r: int, with_replacement: bool) -> int:
    """Return the number of ways to choose ``r`` of ``n`` elements. Raise ``OutOfMemoryError`` from 2**48 on."""
    n = n + r - 1 if n and with_replacement else n
    count = 1 if r <= n else 0
    for i in range(min(r, n - r)):  # the number at least doubles until the middle, so this ends soon
        count = count * (n - i) // (i + 1)
        if count >= 2**48:
            raise OutOfMemoryError(f"combinations(): there are 2**48 or more combinations of {r} elements")
    return count


@by
def _combinations(input: Tensor, r: int, with_replacement: bool) -> tuple[int, ...]:
    shape = shape_of(input)
    if len(shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    return (_count(shape[0], r, with_replacement), r) if r else (0,)


@operator(_combinations, method=False, out=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of ``r`` elements of a vector, one row each, in the order of :mod:`itertools`.

    Raises ``RuntimeError`` if ``input`` is not 1-d or ``r`` is negative, and ``OutOfMemoryError`` for 2**48 or more
    combinations or for very long ones.
    """
    _combinations(combinations, (input, r, with_replacement))
    if not r:
        return new_full(input, (0,), 0)
    count = _count(input.shape[0], r, with_replacement)
    if not count:
        return new_full(input, (0, r), 0)
    if r > MAX_LENGTH:
        raise OutOfMemoryError(f"combinations(): {r} elements are more than {MAX_LENGTH}, one step each")
    return input.take(_chosen_indices(input, r, with_replacement))


def _chosen_indices(input: Tensor, r: int, with_replacement: bool) -> Tensor:
    """Return the indices of the elements of each combination, one row each.

    The rows for r elements are those for r - 1 elements, each followed by every index that may follow its last.
    """
    n = input.shape[0]
    rows = new_arange(input, 0, 1, n, dtype=int64).unsqueeze(1)
    for length in range(2, r + 1):
        smallest = rows.select(1, -1) + (0 if with_replacement else 1)
        ends = (n - smallest).cumsum(0)  # cumulative counts of the rows that continue each row
        numbers = new_arange(input, 0, 1, _count(n, length, with_replacement), dtype=int64)
        parents = sorted_place(ends, numbers, True)
        last = n - ends.take(parents) + numbers
        rows = cat([rows.index_select(0, parents), last.unsqueeze(1)], 1)
    return rows


@public(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all choices of one element from each vector, one row each. For a single vector, the result is that vector.

    Raises ``RuntimeError`` for tensors that are not 1-d.
    """
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return alias(tensors[0])
    rows = stack(meshgrid(*tensors, indexing="ij"), -1)
    return rows.reshape(rows.numel() // len(tensors), len(tensors))
