"""Functions of ``torch.nn.functional`` without documentation that programs with attention of their own import."""

from __future__ import annotations

from candelabra.library import record
from candelabra.nn._functional.masks import added_mask, warn_of_mismatch
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor

linear = record("linear")


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the projections of queries, keys and values (…, E) by thirds of ``w`` (3E, E) and ``b`` (3E)."""
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return linear.function(q, w_q, b_q), linear.function(k, w_k, b_k), linear.function(v, w_v, b_v)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the projections of queries, keys and values, each by a weight and a bias of its own."""
    return linear.function(q, w_q, b_q), linear.function(k, w_k, b_k), linear.function(v, w_v, b_v)


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """Return a mask of numbers: of a bool mask, -inf where it is True and 0 elsewhere; others are returned.

    Warns if ``other_type``, the dtype of another mask, differs. Raises ``AssertionError`` for integers.
    """
    if mask is not None and check_other and other_type is not None and other_type is not mask.dtype:
        warn_of_mismatch(mask_name, other_name)
    return added_mask(mask, mask_name, target_type)


def _none_or_dtype(input: Tensor | None) -> DType | None:
    """Return the dtype of a tensor, or None."""
    return None if input is None else input.dtype
