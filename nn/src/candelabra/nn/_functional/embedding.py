"""Embedding: selection of rows of a table."""

from __future__ import annotations

from candelabra.library import NO_GRAD, mode, overloads, public, state
from candelabra.nn._operators import embedding as lookup
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@public(namespace="nn.functional")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` (rows, width) at the indices ``input`` (int64 or int32), of shape (*input.shape, width).

    The row ``padding_idx`` gets no gradient. With ``max_norm`` the selected rows are first scaled down, in place, to
    that norm. With ``sparse`` the gradient of the table is a sparse tensor that contains
    the selected rows. Raises ``RuntimeError`` for ``sparse`` with ``scale_grad_by_freq``.
    """
    if isinstance(padding_idx, bool) or (
        padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]
    ):
        raise AssertionError("Padding_idx must be within num_embeddings")
    check_index_dtype(input, "embedding")
    if max_norm is not None:
        limit_norms(weight, input, max_norm, norm_type)
    row = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return selected_rows(weight, input, row, bool(scale_grad_by_freq), sparse)


def selected_rows(weight: Tensor, input: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    """Return the rows of a table at the indices ``input``; with ``sparse``, the gradient of the table is sparse."""
    if sparse and weight.requires_grad and not state.bits & NO_GRAD:
        if scale_grad_by_freq:
            raise RuntimeError("embedding(): scale_grad_by_freq is not supported with sparse gradients")
        from candelabra.nn._functional.sparse_rows import SparseRows

        chosen: Tensor = SparseRows.apply(weight, input, padding_idx)
        return chosen
    out: Tensor = lookup.embedding.canonical(weight, input, padding_idx, scale_grad_by_freq)
    return out


def check_index_dtype(indices: Tensor, function: str) -> None:
    """Raise ``RuntimeError`` unless the indices are int64 or int32."""
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.dtype.title} instead (while checking arguments for {function})"
        )


def limit_norms(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the selected rows down to ``max_norm``, in place and without recording."""
    with mode(include=NO_GRAD):
        indices = input.reshape((-1 if input.numel() else 0,))
        rows = lookup.embedding(weight, indices)
        if norm_type == float("inf"):
            norms = rows.abs().amax(1, True)
        else:
            norms = (rows.abs() ** norm_type).sum(1, True) ** (1.0 / norm_type)
        scale = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1.0)
        weight.index_put_((indices,), rows * scale)


@public(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows of ``input`` at ``indices`` down to the norm ``max_norm``, in place; see ``embedding``."""
    check_index_dtype(indices, "embedding_renorm_")
    limit_norms(input, indices, max_norm, norm_type)
    return input


def rows_of_table(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """``nn.functional.embedding`` with the table first, and -1 for no ``padding_idx``."""
    return embedding(indices, weight, None if padding_idx < 0 else padding_idx, None, 2.0, scale_grad_by_freq, sparse)


embedding_of_table = overloads("embedding", rows_of_table, method=False)
