"""Order statistics along a dim: the k-th smallest, the median, the mode, the k largest. NaN is the largest.

The index of equal elements is the same on every device: the one at which a stable sort puts them.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import reduced_shape
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.selection import where
from candelabra._operators.reductions.extrema import ValuesAndIndices
from candelabra._operators.reductions.sums import sum_of_products
from candelabra._operators.sorting.sort import gather_adjoint, gather_along, sort
from candelabra._records.overloads import overloads
from candelabra._records.promotion import index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL, FLOATING, dtype, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, Tensor

Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def _reduced(input: Tensor, dim: int, keepdim: bool) -> Shapes:
    reduced = reduced_shape(shape_of(input), (dim,), keepdim)
    return reduced, reduced


def _copied(values: Tensor, indices: Tensor, dim: int, keepdim: bool) -> ValuesAndIndices:
    """Return values and indices in new memory, without ``dim`` of size 1 unless ``keepdim``."""
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return ValuesAndIndices(values.clone(), indices.clone())


def _gather_back(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int, keepdim: bool) -> Tensor:
    if not keepdim and input_spec.shape:
        g_values, indices = g_values.unsqueeze(dim), indices.unsqueeze(dim)
    return gather_adjoint(g_values, indices, input_spec, dim)


def _gather_along(t_input: Tensor, indices: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, None]:
    if keepdim or not t_input.ndim:
        return gather_along(t_input, indices, dim)
    return gather_along(t_input, indices.unsqueeze(dim), dim)[0].squeeze(dim), None


# -- the k-th smallest and the k largest ------------------------------------------------------------------------------
@by
def _kth_shapes(input: Tensor, k: int, dim: int, keepdim: bool) -> Shapes:
    shape = shape_of(input)
    if not 1 <= k <= (shape[dim] if shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return _reduced(input, dim, keepdim)


@operator(_kth_shapes, result=(same, index), accepts="real numeric", out=True)
def kthvalue(input: Tensor, k: int, dim: Dim = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the ``k``-th smallest element along ``dim``, counted from 1, and its index.

    Raises ``RuntimeError`` if the dim has fewer than ``k`` elements.
    """
    _kth_shapes(kthvalue, (input, k, dim, keepdim))
    ordered = sort(input, dim)
    if not input.ndim:
        return ordered
    return _copied(ordered.values.narrow(dim, k - 1, 1), ordered.indices.narrow(dim, k - 1, 1), dim, keepdim)


def _no_bool(d: dtype) -> dtype:
    if d.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes")
    return d


@by
def _topk_shapes(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Shapes:
    shape = shape_of(input)
    if not 0 <= k <= (shape[dim] if shape else 1):
        raise RuntimeError("selected index k out of range")
    result = tuple(k if d == dim else s for d, s in enumerate(shape))
    return result, result


@operator(_topk_shapes, promote=_no_bool, result=(same, index), accepts="real", out=True)
def topk(input: Tensor, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """Return the ``k`` largest (or smallest) elements along ``dim`` and their indices, in order. Of equal elements, the
    first.

    Raises ``RuntimeError`` for bools, and if the dim has fewer than ``k`` elements.
    """
    _topk_shapes(topk, (input, k, dim, largest, sorted))
    values, indices = sort(input, dim, largest)
    if input.ndim:
        values, indices = values.narrow(dim, 0, k), indices.narrow(dim, 0, k)
    return ValuesAndIndices(values.clone(), indices.clone())


topk.vjp(input=gather_adjoint)
topk.jvp(gather_along)


# -- medians and the mode ---------------------------------------------------------------------------------------------
def _nonempty_shapes(op: Operator[..., Any], args: tuple[Any, ...]) -> Shapes:
    input, dim, keepdim = args
    shape = shape_of(input)
    if shape and not shape[dim]:
        raise IndexError(f"{op.name.removesuffix('_dim')}(): Expected reduction dim {dim} to have non-zero size.")
    return _reduced(input, dim, keepdim)


@operator(_nonempty_shapes, result=(same, index), accepts="real numeric", out=True, public=False)
def median_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> ValuesAndIndices:
    """Return the median along ``dim``, the lower of two, and its index; NaN if any element is.

    Raises ``IndexError`` if ``dim`` has no elements.
    """
    _nonempty_shapes(median_dim, (input, dim, keepdim))
    ordered = sort(input, dim)
    if not input.ndim:
        return ordered
    size = input.shape[dim]
    middle = (size - 1) // 2
    if input.dtype.category < FLOATING:
        return _copied(ordered.values.narrow(dim, middle, 1), ordered.indices.narrow(dim, middle, 1), dim, keepdim)
    missing = input.isnan().sum(dim, True)  # NaN is sorted last; the result is the first NaN
    position = where(missing > 0, size - missing, middle)
    return _copied(ordered.values.gather(dim, position), ordered.indices.gather(dim, position), dim, keepdim)


@operator(_nonempty_shapes, result=(same, index), accepts="real numeric", out=True, public=False)
def nanmedian_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> ValuesAndIndices:
    """Return the median along ``dim`` of the elements that are not NaN, the lower of two, and its index; NaN if all
    are.
    """
    _nonempty_shapes(nanmedian_dim, (input, dim, keepdim))
    if input.dtype.category < FLOATING or not input.ndim:
        return median_dim(input, dim, keepdim)
    present = input.isnan().logical_not().sum(dim, True)
    position = (present - 1).clamp(min=0).div(2, rounding_mode="floor")
    ordered = sort(input, dim)
    return _copied(ordered.values.gather(dim, position), ordered.indices.gather(dim, position), dim, keepdim)


@by
def _scalar(input: Tensor) -> tuple[int, ...]:
    return ()


@operator(_scalar, accepts="real numeric", public=False)
def median_all(input: Tensor) -> Tensor:
    """Return the median of all elements, the lower of two; NaN if any element is. Equal elements share the gradient
    evenly.
    """
    return median_dim(input.reshape(-1), 0).values if input.numel() else _median_of_none(input)


@operator(_scalar, accepts="real numeric", public=False)
def nanmedian_all(input: Tensor) -> Tensor:
    """Return the median of all elements that are not NaN, the lower of two; NaN if all are."""
    return nanmedian_dim(input.reshape(-1), 0).values if input.numel() else _median_of_none(input)


def _median_of_none(input: Tensor) -> Tensor:
    """Return NaN, or the smallest integer of the dtype, as in PyTorch."""
    lowest = -(1 << (8 * input.element_size() - 1)) if input.dtype.category < FLOATING else float("nan")
    return new_full(input, (), lowest)


def _ties_back(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of the input, which all elements that equal the result share."""
    ties = (input == out) | (input.isnan() & out.isnan())
    return g / ties.sum().to(g.dtype) * ties


def _ties_along(t_input: Tensor, input: Tensor, out: Tensor) -> Tensor:
    return sum_of_products(_ties_back(new_full(out, (), 1), input, out), t_input, None)


median_all.vjp(input=_ties_back)
nanmedian_all.vjp(input=_ties_back)
median_all.jvp(_ties_along)
nanmedian_all.jvp(_ties_along)
median = overloads("median", median_all, median_dim)
nanmedian = overloads("nanmedian", nanmedian_all, nanmedian_dim)


@operator(_nonempty_shapes, result=(same, index), accepts="real", out=True)
def mode(input: Tensor, dim: Dim = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the most frequent element along ``dim``, the smallest of several, and its last index. NaNs are distinct.

    Raises ``IndexError`` if ``dim`` has no elements.
    """
    _nonempty_shapes(mode, (input, dim, keepdim))
    if not input.ndim:
        return ValuesAndIndices(input.clone(), new_full(input, (), 0, dtype=int64))
    values, order = (x.movedim(dim, -1) for x in sort(input, dim))
    positions = new_arange(input, 0, 1, values.shape[-1], dtype=int64)
    starts = (values != values.roll(1, -1)) | (positions == 0)  # starts of runs of equal elements
    run = positions - where(starts, positions, 0).cummax(-1).values  # the offset of each element in its run
    last = run.argmax(-1, True)  # the end of the first of the longest runs
    return _copied(values.gather(-1, last).movedim(-1, dim), order.gather(-1, last).movedim(-1, dim), dim, keepdim)


for _record in (kthvalue, median_dim, nanmedian_dim, mode):
    _record.vjp(input=_gather_back)
    _record.jvp(_gather_along)
