"""Losses of classes, as in ``torch.nn.functional``: cross entropy, and what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra import unsqueeze
from candelabra.dtypes import PYTHON_NAMES, int64
from candelabra.library import record
from candelabra.nn._functional.losses import check_reduction, legacy_reduction, reduced
from candelabra.nn._operators.classification import class_losses

if TYPE_CHECKING:
    from candelabra import Tensor

where = record("where")
cast = record("cast")
log_softmax = record("log_softmax")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits (N, C, *) or (C) and classes (N, *), or probabilities in the logits' shape.

    ``weight`` (C) counts classes differently, and the mean is then over the weights; targets equal to ``ignore_index``
    count for nothing; ``label_smoothing`` mixes the target with the uniform distribution (Szegedy et al., 2016).
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.ndim:
        raise RuntimeError("cross_entropy(): input must have a dimension of classes, but it is 0-dimensional")
    classes = 1 if input.ndim > 1 else 0
    same_shape = tuple(input.shape) == tuple(target.shape)
    if same_shape and target.is_floating_point():
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _against_probabilities(input, target, weight, classes, reduction, label_smoothing)
    logs: Tensor = log_softmax(input, classes)
    if label_smoothing == 0.0:
        return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return _smoothed(logs, target, weight, classes, ignore_index, reduction, label_smoothing)


def _against_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, classes: int, reduction: str, smoothing: float
) -> Tensor:
    check_reduction(reduction)
    count = input.shape[classes]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / count
    logs = log_softmax(input, classes)
    scored = logs * target if weight is None else logs * target * _per_class(weight, input, classes)
    losses = -scored.sum(classes)
    return losses.sum() / (input.numel() // max(count, 1)) if reduction == "mean" else reduced(losses, reduction)


def _per_class(weight: Tensor, input: Tensor, classes: int) -> Tensor:
    """Class weights in a shape that broadcasts to the input's."""
    count = input.shape[classes]
    if tuple(weight.shape) != (count,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {count} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    return weight.reshape((1,) * classes + (count,) + (1,) * (input.ndim - classes - 1))


def _smoothed(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    classes: int,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    losses, weights, kept = _picked(logs, target, weight, ignore_index)
    everywhere = logs if weight is None else logs * _per_class(weight, logs, classes)
    uniform = (-everywhere.sum(classes)).masked_fill(kept.logical_not(), 0)
    mixed = losses * (1 - smoothing) + uniform * (smoothing / logs.shape[classes])
    return mixed.sum() / weights.sum() if reduction == "mean" else reduced(mixed, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability, in ``input`` (N, C, *) or (C), of each target (N, *); see :func:`cross_entropy`."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input.ndim:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    if weight is None and input.ndim > 1:
        losses, weights = _unweighted(input, target, ignore_index)
    else:
        losses, weights, _ = _picked(input, target, weight, ignore_index)
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def _check_classes(input: Tensor, target: Tensor) -> None:
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {PYTHON_NAMES[target.dtype.name]}")
    shape, classes = list(input.shape), list(target.shape)
    if input.ndim == 1:
        if classes not in ([], [1]):
            raise RuntimeError(f"0D or 1D target tensor of size 1 expected for an input of size {shape}, got {classes}")
        return
    if classes and shape[0] != classes[0]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({classes[0]}).")
    if input.ndim == 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim == 4 and target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    wanted = [shape[0], *shape[2:]]
    if classes != wanted:
        if input.ndim == 4:
            raise RuntimeError(f"size mismatch (got input: {shape}, target: {classes})")
        raise RuntimeError(f"Expected target size {wanted}, got {classes}")


def _unweighted(logs: Tensor, target: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Per target: its loss, and 1, or 0 where it is ignored."""
    _check_classes(logs, target)
    if target.dtype is not int64:
        target = cast(target, dtype=int64)
    try:
        losses, weights = class_losses(logs, target, ignore_index)
    except (IndexError, RuntimeError):
        _refuse(target[target != ignore_index], logs.shape[1])
        raise
    return losses, weights.detach()


def _refuse(target: Tensor, count: int) -> None:
    """Raise ``IndexError`` for the first target that is none of ``count`` classes, if there is one."""
    bad = [int(t) for t in target.reshape((-1,)).tolist() if not 0 <= t < count]
    if bad:
        raise IndexError(f"Target {bad[0]} is out of bounds.") from None


def _picked(logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor, Tensor]:
    """Per target: its loss, its weight (0 where ignored), and whether it counts."""
    _check_classes(logs, target)
    if weight is not None:
        _per_class(weight, logs, 1 if logs.ndim > 1 else 0)
    if target.dtype is not int64:
        target = cast(target, dtype=int64)
    single = logs.ndim == 1
    if single:
        logs, shape = unsqueeze(logs, 0), tuple(target.shape)
        target = target.reshape((1,))
    kept = target != ignore_index
    safe = where(kept, target, 0)
    try:
        scores = logs.gather(1, unsqueeze(safe, 1)).squeeze(1)
    except (IndexError, RuntimeError):
        _refuse(safe, logs.shape[1])
        raise
    if weight is None:
        weights = cast(kept, dtype=logs.dtype)
    else:
        weights = weight.index_select(0, safe.reshape((-1,))).reshape(safe.shape) * cast(kept, dtype=weight.dtype)
    # An ignored class may be at -inf, and 0 * inf is NaN: so it is filled, not multiplied.
    losses = -(scores if weight is None else scores * weights).masked_fill(kept.logical_not(), 0)
    if single and not shape:
        losses, weights, kept = losses.squeeze(0), weights.squeeze(0), kept.squeeze(0)
    return losses, weights, kept


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A last dim of ``num_classes`` (by default one more than the largest class) that is 1 at the class, else 0."""
    new_arange = record("new_arange")

    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not tensor.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        if int(tensor.amin().item()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        largest = int(tensor.amax().item())
        if num_classes == -1:
            num_classes = largest + 1
        elif num_classes <= largest:
            raise RuntimeError("Class values must be smaller than num_classes.")
    places = new_arange(tensor, 0, 1, num_classes, dtype=int64)
    encoded: Tensor = cast(unsqueeze(tensor, -1) == places, dtype=int64)
    return encoded
