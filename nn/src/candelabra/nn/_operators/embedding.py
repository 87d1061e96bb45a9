"""Embedding: selection of rows of a table, sums of bags of rows, and their gradients."""

from __future__ import annotations

from candelabra.library import by, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor


@by
def _embedding_shape(weight: Tensor, indices: Tensor, *_: Any) -> tuple[int, ...]:
    rows = shape_of(weight)
    if len(rows) != 2:
        raise RuntimeError("'weight' must be 2-D")
    return (*shape_of(indices), rows[1])


def _check_indices(weight: Tensor, indices: Tensor, *_: Any) -> None:
    if indices.numel():
        low, high = int(indices.amin().item()), int(indices.amax().item())
        if low < 0 or high >= weight.shape[0]:
            raise IndexError("index out of range in self")


@operator(_embedding_shape, check=_check_indices, public=False, method=False, out=False)
def embedding(weight: Tensor, indices: Index, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Tensor:
    """The rows of ``weight`` at ``indices``, of shape (*indices.shape, weight.shape[1]).

    The row ``padding_idx`` (-1: none) gets no gradient; ``scale_grad_by_freq`` divides the gradient of
    each row by the number of its occurrences.
    """
    ...


def _embedding_vjp(g: Tensor, weight_spec: Any, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    index_add, new_full = record("index_add"), record("new_full")

    rows, width = weight_spec.shape
    flat, rows_of = g.reshape((indices.numel(), width)), indices.reshape((indices.numel(),))
    if padding_idx >= 0:
        flat = flat.masked_fill((rows_of == padding_idx).unsqueeze(1), 0)
    if scale_grad_by_freq:
        none, ones = new_full(g, (rows,), 0), new_full(g, rows_of.shape, 1)
        flat = flat / index_add(none, 0, rows_of, ones).index_select(0, rows_of).unsqueeze(1)
    return index_add(new_full(g, (rows, width), 0), 0, rows_of, flat)


embedding.vjp(weight=_embedding_vjp)


# -- bags -------------------------------------------------------------------------------------------------------------
@by
def _bags_shape(weight: Tensor, indices: Tensor, starts: Tensor, scales: Tensor | None, *_: Any) -> tuple[int, ...]:
    rows, positions = shape_of(weight), shape_of(indices)
    vectors = [positions, shape_of(starts)]
    if len(rows) != 2 or any(len(v) != 1 for v in vectors) or (scales is not None and shape_of(scales) != positions):
        raise RuntimeError(
            "bag_sums takes a weight (rows, width), vectors of indices and starts, and a scale for each index, got "
            f"{list(rows)}, {[list(v) for v in vectors]} and {None if scales is None else list(shape_of(scales))}"
        )
    return vectors[1][0], rows[1]


@operator(_bags_shape, check=_check_indices, accepts="real floating", public=False, method=False, out=False)
def bag_sums(
    weight: Tensor, indices: Index, starts: Index, scales: Tensor | None = None, scale_grad_by_freq: bool = False
) -> Tensor:
    """The sum of the rows of ``weight`` (rows, width) in each bag of ``indices`` (n,), of shape (bags, width).

    A bag begins at its element of ``starts`` and ends where the next one begins, the last one at the end; ``starts``
    are sorted, and the first is 0. ``scales`` (n,) multiply the rows. ``scale_grad_by_freq`` is as in
    :func:`embedding`. Raises ``IndexError`` for an index that is no row, ``RuntimeError`` for other shapes.
    """
    rows = embedding.canonical(weight, indices, -1, False)
    if scales is not None:
        rows = rows * scales.unsqueeze(1)
    sums: Tensor = record("index_add")(
        record("new_full")(weight, (starts.shape[0], weight.shape[1]), 0),
        0,
        bag_of_each(starts, indices.shape[0]),
        rows,
    )
    return sums


def bag_of_each(starts: Tensor, count: int) -> Tensor:
    """Return the bag of each of ``count`` positions: the number of bags, without the first, that begin up to there."""
    new_full, others = record("new_full"), starts[1:]
    begin = record("index_add")(new_full(starts, (count + 1,), 0), 0, others, new_full(others, others.shape, 1))
    bags: Tensor = begin.cumsum(0)[:count]
    return bags


def bag_lengths(starts: Tensor, count: int) -> Tensor:
    """Return the number of positions of each bag."""
    end = record("new_full")(starts, (1,), count)
    lengths: Tensor = record("cat")((starts[1:], end[: starts.shape[0]]), 0) - starts
    return lengths


def _bag_weight_vjp(
    g: Tensor, weight_spec: Any, indices: Tensor, starts: Tensor, scales: Tensor | None, scale_grad_by_freq: bool
) -> Tensor:
    rows = g.index_select(0, bag_of_each(starts, indices.shape[0]))
    if scales is not None:
        rows = rows * scales.unsqueeze(1)
    return _embedding_vjp(rows, weight_spec, indices, -1, scale_grad_by_freq)


def _bag_scales_vjp(g: Tensor, weight: Tensor, indices: Tensor, starts: Tensor) -> Tensor:
    rows = embedding.canonical(weight, indices, -1, False)
    total: Tensor = (rows * g.index_select(0, bag_of_each(starts, indices.shape[0]))).sum(1)
    return total


bag_sums.vjp(weight=_bag_weight_vjp, scales=_bag_scales_vjp)
