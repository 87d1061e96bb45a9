"""Embedding: selection of rows of a table, and the gradient of the table."""

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


def check_indices(weight: Tensor, indices: Tensor, *_: Any) -> None:
    """Raise ``IndexError`` for an index that is no row."""
    if indices.numel():
        low, high = int(indices.amin().item()), int(indices.amax().item())
        if low < 0 or high >= weight.shape[0]:
            raise IndexError("index out of range in self")


@operator(_embedding_shape, check=check_indices, public=False, method=False, out=False)
def embedding(weight: Tensor, indices: Index, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Tensor:
    """The rows of ``weight`` at ``indices``, of shape (*indices.shape, weight.shape[1]).

    The row ``padding_idx`` (-1: none) gets no gradient; ``scale_grad_by_freq`` divides the gradient of
    each row by the number of its occurrences.
    """
    ...


def table_gradient(g: Tensor, rows: int, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Return the gradient of a table from those of its rows at ``indices``."""
    index_add, new_full = record("index_add"), record("new_full")

    width = g.shape[-1]
    flat, rows_of = g.reshape((indices.numel(), width)), indices.reshape((indices.numel(),))
    if padding_idx >= 0:
        flat = flat.masked_fill((rows_of == padding_idx).unsqueeze(1), 0)
    if scale_grad_by_freq:
        none, ones = new_full(g, (rows,), 0), new_full(g, rows_of.shape, 1)
        flat = flat / index_add(none, 0, rows_of, ones).index_select(0, rows_of).unsqueeze(1)
    return index_add(new_full(g, (rows, width), 0), 0, rows_of, flat)


embedding.vjp(
    weight=lambda g, weight_spec, indices, padding_idx, scale_grad_by_freq: table_gradient(
        g, weight_spec.shape[0], indices, padding_idx, scale_grad_by_freq
    )
)
