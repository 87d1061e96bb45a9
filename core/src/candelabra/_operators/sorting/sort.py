"""Sorting along a dim. NaN is the largest, and equal elements keep their order."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._operators.indexing.gather_scatter import gather, scatter_src
from candelabra._operators.reductions.extrema import ValuesAndIndices
from candelabra._records.promotion import index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor


@by
def two_like_input(input: Tensor, *_: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the input's shape for both results."""
    return shape_of(input), shape_of(input)


@operator(two_like_input, result=(same, index), accepts="real", out=True)
def sort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False) -> ValuesAndIndices:
    """Return ``(values, indices)`` in order along ``dim``; NaN is the largest. Equal elements keep their order.

    ``stable`` is accepted for compatibility with PyTorch: the sort is always stable.
    """
    ...


def _sort_back(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int) -> Tensor:
    out: Tensor = scatter_src(new_full(g_values, input_spec.shape, 0), dim, indices, g_values)
    return out


def gather_along(t_input: Tensor, indices: Tensor, dim: int) -> tuple[Tensor, None]:
    """Return the tangent of values that were gathered along ``dim``, and None for that of their indices."""
    return gather(t_input, dim, indices), None


sort.vjp(input=_sort_back)
sort.jvp(gather_along)


@operator(like_input, result=index, accepts="real")
def argsort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that would sort ``input`` along ``dim``; see :func:`sort`."""
    return sort(input.detach(), dim, descending, stable).indices


@operator(like_input, accepts="real", public=False, out=False)
def ordered(input: Tensor, dim: Dim) -> Tensor:
    """Return only the values in ascending order along ``dim``, NaN last."""
    return sort(input, dim).values


@operator(like_input, accepts="real")
def msort(input: Tensor) -> Tensor:
    """Return the values in ascending order along the first dim, NaN last."""
    return ordered(input, 0)


def gather_adjoint(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int) -> Tensor:
    """Return the gradient of a tensor from which values were gathered along ``dim``: the sum of ``g_values`` at
    ``indices``.
    """
    return new_full(g_values, input_spec.shape, 0).scatter_add(dim, indices, g_values)
