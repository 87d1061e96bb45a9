"""Sums, means and maxima of bags of rows of a table."""

from __future__ import annotations

import warnings

from candelabra.dtypes import int64
from candelabra.library import public, record
from candelabra.nn._functional.embedding import check_index_dtype, limit_norms, selected_rows
from candelabra.nn._operators.bags import bag_maxima, bag_sums, check_starts
from candelabra.typing import TYPE_CHECKING, NamedTuple

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
    samples = None if per_sample_weights is None else _of_one_dtype(per_sample_weights, weight)
    if samples is not None and samples.ndim > 1:
        samples = samples.reshape((-1,))
    bags = _Bags(*_flattened(input, offsets, include_last_offset), samples)
    padding = _padding_row(padding_idx, weight.shape[0])
    if padding >= 0:
        bags = _without(bags, padding)
    if mode == "max":
        largest: Tensor = bag_maxima(weight, bags.indices, bags.starts).values
        return largest
    if sparse and weight.requires_grad:
        # The bags of a table that contains only the selected rows, each once for each occurrence
        weight = selected_rows(weight, bags.indices, -1, scale_grad_by_freq, sparse)
        positions = record("new_arange")(bags.starts, 0, 1, bags.indices.shape[0], dtype=bags.starts.dtype)
        bags, scale_grad_by_freq = _Bags(positions, bags.starts, bags.scales), False
    reduced: Tensor = bag_sums(weight, *bags, mode == "mean", bool(scale_grad_by_freq))
    return reduced


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


# -- bags -------------------------------------------------------------------------------------------------------------
class _Bags(NamedTuple):
    """The indices of all bags (n,), the first position of each bag, and the factor of each index."""

    indices: Tensor
    starts: Tensor
    scales: Tensor | None


def _flattened(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, Tensor]:
    """Return the indices of all bags, and the first position of each bag."""
    if offsets is None:
        count, length = input.shape
        starts = record("new_full")(input, (count,), 0)
        if length:
            starts = record("new_arange")(input, 0, length, count, dtype=input.dtype)
        return input.reshape((count * length,)), starts
    starts = offsets
    if include_last:
        if not offsets.shape[0]:
            raise RuntimeError("include_last_offset: number of offsets should be at least 1")
        check_starts(offsets, input.shape[0])
        starts = offsets[:-1]
    return input if starts.shape[0] else input[:0], starts


def _without(bags: _Bags, padding: int) -> _Bags:
    """Return the bags without an index."""
    check_starts(bags.starts, bags.indices.shape[0])
    kept = bags.indices != padding
    before = record("cat")((record("new_full")(bags.starts, (1,), 0), cast(kept.cumsum(0), dtype=bags.starts.dtype)), 0)
    selected = kept.nonzero().squeeze(1)
    scales = None if bags.scales is None else bags.scales.index_select(0, selected)
    return _Bags(bags.indices.index_select(0, selected), before.index_select(0, bags.starts), scales)
