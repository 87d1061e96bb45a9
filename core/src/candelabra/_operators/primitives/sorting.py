"""Order: sort, and what is read off a sorted tensor."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.primitives.indexing import scatter_src
from candelabra._records.promotion import index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor


class Sorted(NamedTuple):
    """The values in order, and where each of them stood."""

    values: Tensor
    indices: Tensor


@by
def _like_both(input: Tensor, *_: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = shape_of(input)
    return shape, shape


@operator(_like_both, result=(same, index), accepts="real", out=True)
def sort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """``(values, indices)`` in order along ``dim``; NaN counts as the largest. Equal elements always keep their order.

    ``stable`` is accepted for PyTorch's sake: the order is stable with and without it.
    """
    ...


def _sort_back(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int) -> Tensor:
    from candelabra._operators.primitives.creation import full

    zeros = full(input_spec.shape, 0, dtype=g_values.dtype, device=g_values.device)
    out: Tensor = scatter_src(zeros, dim, indices, g_values)
    return out


sort.vjp(input=_sort_back)


@operator(like_input, result=index, accepts="real")
def argsort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that would sort ``input`` along ``dim``; see :func:`sort`."""
    return sort(input.detach(), dim, descending, stable).indices


def chosen(input: Tensor, dim: int, order: Tensor, keepdim: bool) -> Sorted:
    """The values at the places ``order`` (one per slice along ``dim``, that dim kept), and the places."""
    values = input.gather(dim, order)
    return Sorted(values, order) if keepdim or not input.ndim else Sorted(values.squeeze(dim), order.squeeze(dim))
