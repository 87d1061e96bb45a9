"""Bags of rows of a table: their sums, means and maxima, and the gradients.

Bags are given by a vector of indices (n,) and the positions ``starts`` (bags,) where they begin. A bag ends where the
next one begins, the last one at n. Starts are sorted, and the first is 0.
"""

from __future__ import annotations

from candelabra.library import by, index, is_compiling, operator, record, same, shape_of
from candelabra.nn._operators.embedding import check_indices, embedding, table_gradient
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

cast = record("cast")
raise_if_nonzero = record("raise_if_nonzero")
WRONG_START = (
    "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
    "{code}"
)
WRONG_END = "offsets[-1] can not be greater than input's length({count}), but got offsets[-1] of {code}"


@by
def _bags_shape(
    weight: Tensor, indices: Tensor, starts: Tensor, scales: Tensor | None = None, *_: Any
) -> tuple[int, ...]:
    rows, positions = shape_of(weight), shape_of(indices)
    vectors = [positions, shape_of(starts)]
    if len(rows) != 2 or any(len(v) != 1 for v in vectors) or (scales is not None and shape_of(scales) != positions):
        raise RuntimeError(
            "bags are a weight (rows, width), vectors of indices and starts, and a scale for each index, got "
            f"{list(rows)}, {[list(v) for v in vectors]} and {None if scales is None else list(shape_of(scales))}"
        )
    return vectors[1][0], rows[1]


def check_starts(starts: Tensor, count: int) -> None:
    """Raise ``RuntimeError`` if bags of ``count`` indices do not begin at the first, or begin after the last."""
    if not starts.shape[0]:
        return
    if is_compiling():  # nodes of the graph
        last_start = starts[-1]
        raise_if_nonzero(starts[0], WRONG_START, RuntimeError)
        raise_if_nonzero(last_start * (last_start > count), WRONG_END.replace("{count}", str(count)), RuntimeError)
        return
    first, last = int(starts[0].item()), int(starts[-1].item())
    if first:
        raise RuntimeError(WRONG_START.format(code=first))
    if last > count:
        raise RuntimeError(WRONG_END.format(count=count, code=last))


def _check_bags(weight: Tensor, indices: Tensor, starts: Tensor, *_: Any) -> None:
    check_indices(weight, indices)
    check_starts(starts, indices.shape[0])


def _bag_of_each(starts: Tensor, count: int) -> Tensor:
    """Return the bag of each of ``count`` positions: one less than the number of bags that begin up to there.

    It is -1 before the first start, which no operator accepts as an index, and a start after the end is refused.
    """
    new_full = record("new_full")
    begin = record("index_add")(new_full(starts, (count + 1,), 0), 0, starts, new_full(starts, starts.shape, 1))
    bags: Tensor = begin.cumsum(0)[:count] - 1
    return bags


def _lengths(starts: Tensor, count: int, like: Tensor) -> Tensor:
    """Return the divisors of the mean of each bag (bags, 1): its length, and 1 for an empty bag."""
    end = record("new_full")(starts, (1,), count)
    lengths = record("cat")((starts[1:], end[: starts.shape[0]]), 0) - starts
    column: Tensor = cast(lengths.clamp_min(1), dtype=like.dtype).unsqueeze(1)
    return column


# -- sums and means ---------------------------------------------------------------------------------------------------
@operator(_bags_shape, check=_check_bags, accepts="real floating", public=False, method=False, out=False)
def bag_sums(
    weight: Tensor,
    indices: Index,
    starts: Index,
    scales: Tensor | None = None,
    mean: bool = False,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """The sum or ``mean`` of the rows of ``weight`` (rows, width) in each bag, of shape (bags, width).

    ``scales`` (n,) multiply the rows. An empty bag gives 0. ``scale_grad_by_freq`` is as in :func:`embedding`. Raises
    ``IndexError`` for an index that is no row, ``RuntimeError`` for starts out of bounds and for other shapes.
    """
    rows = embedding.canonical(weight, indices, -1, False)
    if scales is not None:
        rows = rows * scales.unsqueeze(1)
    count = indices.shape[0]
    zeros = record("new_full")(weight, (starts.shape[0], weight.shape[1]), 0)
    sums: Tensor = record("index_add")(zeros, 0, _bag_of_each(starts, count), rows)
    return sums / _lengths(starts, count, sums) if mean else sums


@operator(by(lambda grad, indices, starts, scales, rows, *_: (rows, shape_of(grad)[1])), public=False)
def bag_sums_backward(
    grad: Tensor,
    indices: Index,
    starts: Index,
    scales: Tensor | None,
    rows: int,
    mean: bool = False,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Return the gradient of the table of :func:`bag_sums`, which has ``rows`` rows: each gets those of its bags."""
    count = indices.shape[0]
    if mean:
        grad = grad / _lengths(starts, count, grad)
    chosen = grad.index_select(0, _bag_of_each(starts, count))
    if scales is not None:
        chosen = chosen * scales.unsqueeze(1)
    return table_gradient(chosen, rows, indices, -1, scale_grad_by_freq)


@operator(by(lambda grad, weight, indices, *_: shape_of(indices)), public=False)
def bag_dots(grad: Tensor, weight: Tensor, indices: Index, starts: Index, mean: bool = False) -> Tensor:
    """Return the gradient of the scales of :func:`bag_sums`: the dot products of rows and the gradients of their
    bags.
    """
    count = indices.shape[0]
    if mean:
        grad = grad / _lengths(starts, count, grad)
    rows = embedding.canonical(weight, indices, -1, False)
    total: Tensor = (rows * grad.index_select(0, _bag_of_each(starts, count))).sum(1)
    return total


bag_sums.vjp(
    weight=lambda g, weight_spec, indices, starts, scales, mean, scale_grad_by_freq: bag_sums_backward(
        g, indices, starts, scales, weight_spec.shape[0], mean, scale_grad_by_freq
    ),
    scales=lambda g, weight, indices, starts, mean: bag_dots(g, weight, indices, starts, mean),
)


# -- maxima -----------------------------------------------------------------------------------------------------------
class BagMaxima(NamedTuple):
    """The maxima of bags, and the rows of the table that they are in."""

    values: Tensor
    rows: Tensor


@by
def _maxima_shapes(*args: Any) -> Any:
    shape = _bags_shape(None, args)
    return shape, shape


@operator(
    _maxima_shapes, result=(same, index), check=_check_bags, accepts="real floating", public=False, method=False,
    out=False,
)  # fmt: skip
def bag_maxima(weight: Tensor, indices: Index, starts: Index) -> BagMaxima:
    """The maxima of the rows of ``weight`` (rows, width) in each bag, of shape (bags, width): the first of equal ones,
    or the first NaN.

    An empty bag gives 0 and row -1. Raises ``IndexError`` for an index that is no row, ``RuntimeError`` for starts out
    of bounds and for other shapes.
    """
    new_full, index_reduce, count = record("new_full"), record("index_reduce"), indices.shape[0]
    shape, bags = (starts.shape[0], weight.shape[1]), _bag_of_each(starts, count)
    rows = embedding.canonical(weight, indices, -1, False)
    values = index_reduce(new_full(weight, shape, 0), 0, bags, rows, "amax", include_self=False)
    attains = (rows == values.index_select(0, bags)) | (rows != rows)
    positions = record("new_arange")(indices, 0, 1, count, dtype=indices.dtype).unsqueeze(1)
    first = positions.expand(rows.shape).masked_fill(attains.logical_not(), count)
    found = index_reduce(new_full(indices, shape, count), 0, bags, first, "amin")
    of_none = record("cat")((indices, new_full(indices, (1,), -1)), 0)
    return BagMaxima(values, of_none.index_select(0, found.reshape((-1,))).reshape(shape))


@operator(by(lambda grad, at, rows: (rows, shape_of(grad)[1])), public=False)
def bag_maxima_backward(grad: Tensor, at: Index, rows: int) -> Tensor:
    """Return the gradient of the table of :func:`bag_maxima`, which has ``rows`` rows: ``at`` has the row of each
    maximum, or -1.
    """
    none = at < 0
    zeros = record("new_full")(grad, (rows, grad.shape[1]), 0)
    total: Tensor = record("scatter_add")(zeros, 0, at.masked_fill(none, 0), grad.masked_fill(none, 0))
    return total


bag_maxima.vjp(weight=lambda g_values, rows, weight_spec: bag_maxima_backward(g_values, rows, weight_spec.shape[0]))
