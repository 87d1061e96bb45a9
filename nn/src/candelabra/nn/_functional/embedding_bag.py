"""Sums, means and maxima of bags of rows of a table."""

from __future__ import annotations

import math
import warnings

from candelabra.dtypes import int64
from candelabra.library import public, record
from candelabra.nn._functional.embedding import check_index_dtype, limit_norms, selected_rows
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

cast = record("cast")
MODES = ("sum", "mean", "max")


@public(namespace="nn.functional")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum (``mode``) of the rows of ``weight`` (rows, width) in each bag, of shape (bags, width).

    ``input`` (bags, length) contains the indices of each bag, or ``input`` (n,) those of all bags, of which each begins
    at its element of ``offsets`` and ends where the next one begins; with ``include_last_offset``, the last offset is
    the end of the last bag. An empty bag gives 0. Indices equal to ``padding_idx`` are left out.
    ``per_sample_weights``, of the input's shape, multiply the rows in the mode "sum". With ``max_norm`` the selected
    rows are first scaled down, in place, to that norm; ``scale_grad_by_freq`` divides the gradient of each row by the
    number of its occurrences.

    Raises ``ValueError`` for other shapes, modes and combinations, ``NotImplementedError`` for weights in other modes,
    and ``RuntimeError`` for ``sparse`` with ``scale_grad_by_freq``. With ``sparse`` the table's gradient is sparse.
    """
    if weight.dtype is int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=3,
        )
        weight, input = input, weight
    _check(input, weight, offsets, per_sample_weights)
    _check_mode(mode, scale_grad_by_freq, sparse)
    check_index_dtype(input, "embedding_bag")
    if max_norm is not None:
        limit_norms(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    padding = _padding_row(padding_idx, weight.shape[0])
    rows = selected_rows(weight, input, padding, bool(scale_grad_by_freq), sparse)
    kept = None if padding < 0 else input != padding
    if per_sample_weights is not None:
        rows = rows * _of_one_dtype(per_sample_weights, weight).unsqueeze(-1)
    if input.ndim == 2:
        return _reduced_rows(rows, kept, mode)
    assert offsets is not None
    starts = _starts(offsets, input.shape[0], include_last_offset)
    from candelabra import searchsorted

    positions = record("new_arange")(starts, 0, 1, input.shape[0], dtype=starts.dtype)
    bags = searchsorted(starts, positions, right=True) - 1
    return _reduced_bags(rows, kept, bags, starts.shape[0], mode)


# -- checks -----------------------------------------------------------------------------------------------------------
def _check(input: Tensor, weight: Tensor, offsets: Tensor | None, samples: Tensor | None) -> None:
    if samples is not None and tuple(input.shape) != tuple(samples.shape):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({samples.shape}) is not None, then it must have the same shape as "
            f"the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
    elif input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def _padding_row(padding_idx: int | None, rows: int) -> int:
    """Return the row that is left out, or -1."""
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, 0 through {rows - 1}")
    return padding_idx % rows


def _of_one_dtype(samples: Tensor, weight: Tensor) -> Tensor:
    if samples.dtype is not weight.dtype:
        raise RuntimeError(
            f"embedding_bag: expected per_sample_weights of the weight's dtype, {weight.dtype}, got {samples.dtype}"
        )
    return samples


def _starts(offsets: Tensor, count: int, include_last: bool) -> Tensor:
    """Return the first position of each bag."""
    if include_last:
        if not offsets.shape[0]:
            raise RuntimeError("include_last_offset: number of offsets should be at least 1")
        starts, last = offsets[:-1], offsets[-1:]
    else:
        starts, last = offsets, offsets[-1:]
    if offsets.shape[0]:
        first, end = int(offsets[0].item()), int(last.item())
        if first:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {first}"
            )
        if end > count:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length({count}), but got offsets[-1] of {end}"
            )
    return starts


# -- reductions -------------------------------------------------------------------------------------------------------
def _reduced_rows(rows: Tensor, kept: Tensor | None, mode: str) -> Tensor:
    """Return the reduction of (bags, length, width) along the length, without the rows that are not kept."""
    length = rows.shape[1]
    if not length:
        return rows.sum(1)
    if mode == "max":
        if kept is None:
            return rows.amax(1)
        empty = kept.logical_not()
        largest: Tensor = rows.masked_fill(empty.unsqueeze(-1), -math.inf).amax(1)
        return largest.masked_fill(empty.all(1, keepdim=True), 0.0)
    if kept is not None:
        rows = rows.masked_fill(kept.logical_not().unsqueeze(-1), 0.0)
    total: Tensor = rows.sum(1)
    if mode == "sum":
        return total
    counts: Any = length if kept is None else cast(kept.sum(1, keepdim=True).clamp_min(1), dtype=total.dtype)
    mean: Tensor = total / counts
    return mean


def _reduced_bags(rows: Tensor, kept: Tensor | None, bags: Tensor, count: int, mode: str) -> Tensor:
    """Return the reduction of the rows (n, width) that belong to each of ``count`` bags."""
    if kept is not None:
        selected = kept.nonzero().squeeze(1)
        rows, bags = rows.index_select(0, selected), bags.index_select(0, selected)
    zeros = rows.new_zeros((count, rows.shape[1]))
    if mode == "max":
        largest: Tensor = zeros.index_reduce(0, bags, rows, "amax", include_self=False)
        return largest
    total = zeros.index_add(0, bags, rows)
    if mode == "sum":
        return total
    sizes = bags.new_zeros((count,)).index_add(0, bags, bags.new_ones(bags.shape))
    counts: Tensor = cast(sizes.clamp_min(1), dtype=total.dtype)
    return total / counts.unsqueeze(1)
