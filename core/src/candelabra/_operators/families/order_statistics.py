"""The k-th, the middle, the most frequent, the largest few along one dim: records. NaN counts as the largest.

Which of equal elements' indices is reported is the same on every device: the one that a stable sort puts there.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.primitives import arithmetic, creation
from candelabra._operators.primitives.indexing import scatter_add
from candelabra._operators.primitives.sorting import sort
from candelabra._records.promotion import index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra.dtypes import BOOL, FLOATING, dtype, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.typing import Dim

Pair = tuple[tuple[int, ...], tuple[int, ...]]


class Chosen(NamedTuple):
    """The values and where they stand."""

    values: Tensor
    indices: Tensor


def _picked_back(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int, keepdim: bool) -> Tensor:
    """The gradient goes to where the values were picked."""
    if not keepdim and input_spec.shape:
        g_values, indices = g_values.unsqueeze(dim), indices.unsqueeze(dim)
    return picked_back(g_values, indices, input_spec, dim)


def picked_back(g_values: Tensor, indices: Tensor, input_spec: Any, dim: int) -> Tensor:
    """The gradient of values picked along ``dim`` (that dim kept): zeros, and ``g_values`` at their places."""
    zeros = creation.full(input_spec.shape, 0, dtype=g_values.dtype, device=g_values.device)
    out: Tensor = scatter_add(zeros, dim, indices, g_values)
    return out


def _one_of_each(input: Tensor, dim: int, keepdim: bool) -> Pair:
    shape = shape_of(input)
    reduced = tuple(1 if d == dim else s for d, s in enumerate(shape) if keepdim or d != dim)
    return reduced, reduced


@operator(like_input, accepts="real", public=False, out=False)
def ordered(input: Tensor, dim: Dim) -> Tensor:
    """The values alone in ascending order along ``dim``, NaN last."""
    values: Tensor = sort(input, dim).values
    return values


@by
def _kth(input: Tensor, k: int, dim: int, keepdim: bool) -> Pair:
    shape = shape_of(input)
    if not 1 <= k <= (shape[dim] if shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return _one_of_each(input, dim, keepdim)


@operator(_kth, result=(same, index), accepts="real numeric", out=True)
def kthvalue(input: Tensor, k: int, dim: Dim = -1, keepdim: bool = False) -> Chosen:
    """The ``k``-th smallest element along ``dim``, counted from 1, and its index.

    Raises ``RuntimeError`` where the dim has fewer than ``k`` elements.
    """
    _kth(kthvalue, (input, k, dim, keepdim))
    found = sort(input, dim)
    if not input.ndim:
        return _whole(found)
    return _cut(found.values.narrow(dim, k - 1, 1), found.indices.narrow(dim, k - 1, 1), dim, keepdim)


def _cut(values: Tensor, places: Tensor, dim: int, keepdim: bool) -> Chosen:
    """One value per slice along ``dim`` and its place, in memory of their own; the dim goes unless kept."""
    if keepdim:
        return Chosen(values.clone(), places.clone())
    return Chosen(values.squeeze(dim).clone(), places.squeeze(dim).clone())


def _whole(found: Any) -> Chosen:
    return Chosen(found.values, found.indices)


def _middle_rule(name: str) -> Any:
    @by
    def middle(input: Tensor, dim: int, keepdim: bool) -> Pair:
        shape = shape_of(input)
        if shape and not shape[dim]:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        return _one_of_each(input, dim, keepdim)

    return middle


_median_rule, _nanmedian_rule, _mode_rule = (_middle_rule(name) for name in ("median", "nanmedian", "mode"))


@operator(_median_rule, result=(same, index), accepts="real numeric", public=False)
def median_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> Chosen:
    """The middle element along ``dim``, of two the lower, and its index; NaN where there is one."""
    _median_rule(median_dim, (input, dim, keepdim))
    found = sort(input, dim)
    if not input.ndim:
        return _whole(found)
    size = input.shape[dim]
    middle = (size - 1) // 2
    if input.dtype.category < FLOATING:
        return _cut(found.values.narrow(dim, middle, 1), found.indices.narrow(dim, middle, 1), dim, keepdim)
    missing = input.isnan().sum(dim, True)  # they stand last in order: the first of them
    return _cut(*_taken(found, dim, arithmetic.where.function(missing > 0, size - missing, middle)), dim, keepdim)


def _taken(found: Any, dim: int, place: Tensor) -> tuple[Tensor, Tensor]:
    return found.values.gather(dim, place), found.indices.gather(dim, place)


@operator(_nanmedian_rule, result=(same, index), accepts="real numeric", public=False)
def nanmedian_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> Chosen:
    """The middle element along ``dim`` without NaN, of two the lower, and its index; NaN where all are."""
    _nanmedian_rule(nanmedian_dim, (input, dim, keepdim))
    if input.dtype.category < FLOATING or not input.ndim:
        found: Chosen = median_dim(input, dim, keepdim)
        return found
    present = input.isnan().logical_not().sum(dim, True)
    place = (present - 1).clamp(min=0).div(2, rounding_mode="floor")
    return _cut(*_taken(sort(input, dim), dim, place), dim, keepdim)


@operator(_mode_rule, result=(same, index), accepts="real", out=True)
def mode(input: Tensor, dim: Dim = -1, keepdim: bool = False) -> Chosen:
    """The most frequent element along ``dim``, of several the smallest, and its last index. Every NaN is distinct.

    Raises ``IndexError`` where ``dim`` has no elements.
    """
    _mode_rule(mode, (input, dim, keepdim))
    if not input.ndim:
        return Chosen(input.clone(), creation.full((), 0, dtype=int64, device=input.device))
    values, order = (x.movedim(dim, -1) for x in sort(input, dim))
    count = values.shape[-1]
    places = creation.arange(0, 1, count, dtype=int64, device=input.device)
    fresh = (values != values.roll(1, -1)) | (places == 0)
    starts = arithmetic.where.function(fresh, places, 0).cummax(-1).values
    best = (places - starts).argmax(-1, True)  # the first of the longest runs, which ends there
    values, indices = values.gather(-1, best), order.gather(-1, best)
    return _cut(values.movedim(-1, dim), indices.movedim(-1, dim), dim, keepdim)


def _no_bool(d: dtype) -> dtype:
    if d.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes")
    return d


@by
def _largest(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Pair:
    shape = shape_of(input)
    if not 0 <= k <= (shape[dim] if shape else 1):
        raise RuntimeError("selected index k out of range")
    found = tuple(k if d == dim else s for d, s in enumerate(shape))
    return found, found


@operator(_largest, promote=_no_bool, result=(same, index), accepts="real", out=True)
def topk(input: Tensor, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True) -> Chosen:
    """The ``k`` largest (or smallest) elements along ``dim`` and their indices, in order; of equal ones the first.

    Raises ``RuntimeError`` where the dim has fewer than ``k`` elements, and of bools.
    """
    _largest(topk, (input, k, dim, largest, sorted))
    values, indices = sort(input, dim, largest)
    if input.ndim:
        values, indices = values.narrow(dim, 0, k), indices.narrow(dim, 0, k)
    return Chosen(values.clone(), indices.clone())


for _pick in (kthvalue, median_dim, nanmedian_dim, mode):
    _pick.vjp(input=_picked_back)
topk.vjp(input=picked_back)


def _evenly_back(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """All elements that equal the result share its gradient."""
    hits = (input == out) | (input.isnan() & out.isnan())
    return g / hits.sum().to(g.dtype) * hits


@by
def _scalar(input: Tensor) -> tuple[int, ...]:
    return ()


@operator(_scalar, accepts="real numeric", public=False)
def median_all(input: Tensor) -> Tensor:
    """The middle one of all elements, of two the lower; NaN where there is one. Ties share the gradient."""
    return _middle(input, median_dim)


@operator(_scalar, accepts="real numeric", public=False)
def nanmedian_all(input: Tensor) -> Tensor:
    """As :func:`median_all`, of the elements that are not NaN."""
    return _middle(input, nanmedian_dim)


def _middle(input: Tensor, along: Any) -> Tensor:
    if not input.numel():
        lowest = -(1 << (8 * input.element_size() - 1)) if input.dtype.category < FLOATING else float("nan")
        return creation.full((), lowest, dtype=input.dtype, device=input.device)
    out: Tensor = along(input.reshape(-1), 0).values
    return out


median_all.vjp(input=_evenly_back)
nanmedian_all.vjp(input=_evenly_back)
