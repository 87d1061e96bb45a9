"""Connectionist temporal classification: targets and lengths in all the forms that PyTorch accepts."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from candelabra.dtypes import int64
from candelabra.library import float32_on_host, public, record
from candelabra.nn._operators.losses import REDUCTIONS, check_reduction
from candelabra.nn._operators.temporal_classification import alignment_losses
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

new_arange = record("new_arange")


def _lengths(name: str, lengths: Any, log_probs: Tensor, limit: int | None) -> tuple[Tensor, list[int]]:
    """Return lengths as an int64 tensor on the device of the log-probabilities, and as numbers."""
    known: list[int] | None = None
    if not hasattr(lengths, "shape"):
        known = [int(length) for length in lengths]  # no value of a tensor is read
        lengths = log_probs.new_tensor(lengths, dtype=int64)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype.name == "bool":
        raise RuntimeError(f"{name} must be integral")
    lengths = lengths.to(log_probs.device, int64).reshape((-1,))
    values: list[int] = lengths.tolist() if known is None else known
    if len(values) != log_probs.shape[1]:
        raise RuntimeError(f"{name} must be of size batch_size")
    for value in values:
        if value < 0 or (limit is not None and value > limit):
            bound = "at least 0" if value < 0 else f"at most {limit}"
            raise RuntimeError(f"Expected {name} to have value {bound}, but got value {value}")
    return lengths, values


def _rows(targets: Tensor, lengths: Tensor, values: list[int]) -> Tensor:
    """Return targets, one row for each sequence (N, S) or all in one vector, as rows of the longest length."""
    longest = max(values)
    if targets.ndim == 2:
        if targets.shape[0] != len(values):
            raise RuntimeError(
                f"Expected tensor to have size {len(values)} at dimension 0, but got size {targets.shape[0]} for "
                "argument #2 'targets'"
            )
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
                "argument #2 'targets'"
            )
        return targets[:, :longest]
    if targets.ndim != 1:
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 "
                           "'targets'")  # fmt: skip
    if targets.shape[0] != sum(values):
        raise RuntimeError(
            f"Expected tensor to have size {sum(values)} at dimension 0, but got size {targets.shape[0]} for argument "
            "#2 'targets'"
        )
    if not longest:
        return targets.reshape((len(values), 0))
    offsets = (lengths.cumsum(0) - lengths).unsqueeze(1)
    places = (offsets + new_arange(targets, 0, 1, longest, dtype=int64)).clamp_max(targets.shape[0] - 1)
    return targets.index_select(0, places.reshape((-1,))).reshape(places.shape)


@public(namespace="nn.functional")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The connectionist temporal classification loss of labels that are not aligned to the input (Graves et al., 2006).

    Log-probabilities (T, N, C), or (T, C) without a batch, of C classes, of which ``blank`` separates labels; targets
    (N, S), or all labels in one vector; lengths (N) of both. ``"mean"`` divides each loss by the target's length first.
    As in PyTorch, the gradient is that of normalized log-probabilities: through ``log_softmax`` it is exact.
    ``zero_infinity``: losses of targets that do not fit into their input are 0, and so are their gradients.

    Raises ``RuntimeError`` for sizes, lengths and classes that do not belong together.
    """
    check_reduction(reduction)
    log_probs = float32_on_host(log_probs)
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    batched = log_probs.ndim == 3
    if log_probs.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 or 3 dimensions, but got {log_probs.ndim}-dimensional tensor for argument #1 "
                           "'log_probs'")  # fmt: skip
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets if targets.ndim == 2 else targets.unsqueeze(0)
    if log_probs.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"ctc_loss() is not implemented for {log_probs.dtype.title}")
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    taken, _ = _lengths("input_lengths", input_lengths, log_probs, log_probs.shape[0])
    spelled, values = _lengths("target_lengths", target_lengths, log_probs, None)
    rows = _rows(targets.to(log_probs.device, int64), spelled, values)
    losses = alignment_losses(log_probs, rows, taken, spelled, blank, zero_infinity)
    impossible = losses == inf if zero_infinity else None
    if log_probs.requires_grad:
        losses = losses + _normalization(log_probs, taken)
    if impossible is not None:
        losses = losses.masked_fill(impossible, 0)
    if reduction == "mean":
        return (losses / spelled.clamp_min(1).to(losses.dtype)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses if batched else losses.squeeze(0)


@public(name="ctc_loss", method=False)
def numbered_ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int | str = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """``nn.functional.ctc_loss`` with a reduction that may be a number: 0 for none, 1 for the mean, 2 for the sum."""
    if type(reduction) is int and 0 <= reduction < len(REDUCTIONS):
        reduction = REDUCTIONS[reduction]
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, str(reduction), zero_infinity)


def _normalization(log_probs: Tensor, lengths: Tensor) -> Tensor:
    """Return zeros (N) with the gradient of the classes' total probability, summed over the times.

    The derivative by log-probabilities then contains ``exp(log_probs)``, as PyTorch's does, which takes them to be
    normalized. After ``log_softmax`` it makes no difference.
    """
    clock = new_arange(log_probs, 0, 1, log_probs.shape[0], dtype=int64).unsqueeze(1)
    total = log_probs.exp().sum(2).masked_fill(clock >= lengths, 0).sum(0)
    made: Tensor = total - total.detach()
    return made
