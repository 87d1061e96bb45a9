"""Losses of classes: cross entropy and negative log-likelihood, and one-hot encodings.

``class_losses`` selects one log-probability for each target. It has kernels and a derivative; the public losses are
composites over it.
"""

from __future__ import annotations

from candelabra.dtypes import int64
from candelabra.library import batching, by, highest, index, operator, record, same, shape_of, unpromoted
from candelabra.nn._operators.losses import check_reduction, legacy_reduction, loss_rule, reduced
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Index, Shape, Tensor

where, cast = record("where"), record("cast")
new_full, scatter_add = record("new_full"), record("scatter_add")
log_softmax = record("log_softmax")

Ints = tuple[int, ...]


# -- one number of each vector ----------------------------------------------------------------------------------------


class ClassLosses(NamedTuple):
    """The loss of each target, and 1 where it counts, 0 where it is ignored."""

    losses: Tensor
    weights: Tensor


def targets_of(input: Tensor, target: Tensor) -> Ints:
    """Return the shape of the targets. Raises ``RuntimeError`` unless there is one for each vector of classes."""
    classes, shape = shape_of(input), shape_of(target)
    if len(classes) < 2 or (classes[0], *classes[2:]) != shape:
        raise RuntimeError(
            f"expected a target for each vector along dim 1 of {list(classes)}, got targets of shape {list(shape)}"
        )
    return shape


@operator(
    by(lambda input, target, ignored: (targets_of(input, target),) * 2),
    result=(same, same),
    accepts="real floating",
    method=False,
    public=False,
    out=False,
)
def class_losses(input: Tensor, target: Index, ignored: int) -> ClassLosses:
    """``-input[n, target[n, …], …]``, and 0 where the target is ``ignored``: input (N, C, *), target (N, *).

    The weights do not depend on the input and have no gradient. Raises ``IndexError`` for a target that is not a class.
    """
    targets_of(input, target)
    kept, safe = _kept(target, ignored)
    scores = input.gather(1, safe.unsqueeze(1)).squeeze(1)
    # The value of an ignored class may be -inf, and 0 * inf is NaN: so it is filled, not multiplied.
    return ClassLosses((-scores).masked_fill(kept.logical_not(), 0), cast(kept, dtype=input.dtype))


def _kept(target: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
    """Return which targets count, and the targets with class 0 in place of those that do not."""
    kept = target != ignored
    return kept, where(kept, target, 0)


@operator(
    by(lambda grad, target, shape, ignored: shape), accepts="real floating", method=False, public=False, out=False
)
def class_losses_backward(grad: Tensor, target: Index, shape: Shape, ignored: int) -> Tensor:
    """Zeros of ``shape`` (N, C, *), with the negative gradient of each loss (N, *) at its class.

    The targets are those of :func:`class_losses`, so they are within bounds.
    """
    kept, safe = _kept(target, ignored)
    values = (-grad).masked_fill(kept.logical_not(), 0)
    return scatter_add(new_full(grad, shape, 0), 1, safe.unsqueeze(1), values.unsqueeze(1))


class_losses.vjp(
    input=lambda g_losses, target, input_spec, ignored: class_losses_backward.canonical(
        g_losses, target, input_spec.shape, ignored
    )
)
class_losses_backward.vjp(grad=lambda g, target, ignored: class_losses(g, target, ignored).losses)
for _record in (class_losses, class_losses_backward):
    _record.batched(batching.with_examples_along_dim_0(_record))


def _weighted_shapes(input: Tensor, target: Tensor, weight: Tensor, ignored: int) -> tuple[Ints, Ints]:
    shape, weights, count = targets_of(input, target), shape_of(weight), shape_of(input)[1]
    if weights != (count,):
        raise RuntimeError(f"expected a weight for each of {count} classes, got weights of shape {list(weights)}")
    return shape, shape


@operator(by(_weighted_shapes), result=(same, same), accepts="real floating", method=False, public=False, out=False)
def weighted_class_losses(input: Tensor, target: Index, weight: Tensor, ignored: int) -> ClassLosses:
    """:func:`class_losses` times the weights of the targets' classes (C), and these weights."""
    _weighted_shapes(input, target, weight, ignored)
    losses = class_losses.canonical(input, target, ignored).losses
    kept, safe = _kept(target, ignored)
    weights = weight.index_select(0, safe.reshape((-1,))).reshape(safe.shape)
    left_out = kept.logical_not()
    return ClassLosses((losses * weights).masked_fill(left_out, 0), weights.masked_fill(left_out, 0))


def _weight_vjp(
    input: Tensor, target: Tensor, weight_spec: Any, ignored: int, g_losses: Any = None, g_weights: Any = None
) -> Tensor:
    """Add what each target passes on to the weight of its class: its loss, and 1 as its weight."""
    losses, ones = class_losses.canonical(input, target, ignored)
    each = None if g_losses is None else g_losses * losses
    if g_weights is not None:
        each = g_weights * ones if each is None else each + g_weights * ones
    _, safe = _kept(target, ignored)
    zeros = new_full(input, weight_spec.shape, 0)
    out: Tensor = scatter_add(zeros, 0, safe.reshape((-1,)), each.reshape((-1,)))  # type: ignore[union-attr]
    return out


weighted_class_losses.vjp(
    input=lambda g_losses, target, weights, input_spec, ignored: class_losses_backward.canonical(
        g_losses * weights, target, input_spec.shape, ignored
    ),
    weight=_weight_vjp,
)


class MeanClassLoss(NamedTuple):
    """The mean of the losses of the targets that count, and their number."""

    loss: Tensor
    number: Tensor


def _no_dims(input: Tensor, target: Tensor, ignored: int) -> tuple[Ints, Ints]:
    targets_of(input, target)
    return (), ()


@operator(by(_no_dims), result=(same, same), accepts="real floating", method=False, public=False, out=False)
def mean_class_loss(input: Tensor, target: Index, ignored: int) -> MeanClassLoss:
    """The mean of :func:`class_losses`, NaN if all targets are ignored; one node for the loss of most classifiers."""
    losses, weights = class_losses.canonical(input, target, ignored)
    number = weights.sum()
    return MeanClassLoss(losses.sum() / number, number)


def _mean_class_loss_vjp(g_loss: Tensor, target: Tensor, number: Tensor, input_spec: Any, ignored: int) -> Tensor:
    each: Tensor = (g_loss / number).expand(target._payload.shape)
    out: Tensor = class_losses_backward.canonical(each, target, input_spec.shape, ignored)
    return out


mean_class_loss.vjp(input=_mean_class_loss_vjp)
mean_class_loss.jvp(lambda t_input, target, ignored: (mean_class_loss.canonical(t_input, target, ignored).loss, None))


def _nll_shape(input: Tensor, target: Tensor, *_: Any) -> Ints:
    """Return the shape of the losses of :func:`nll_loss`."""
    if not shape_of(input):
        raise ValueError(f"Expected 1 or more dimensions (got {len(shape_of(input))})")
    _check_classes(input, target)
    return shape_of(target)


def _cross_entropy_shape(input: Tensor, target: Tensor, *_: Any) -> Ints:
    """Return the shape of the losses of :func:`cross_entropy`."""
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("cross_entropy(): input must have a dimension of classes, but it is 0-dimensional")
    if shape == shape_of(target):
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype.title}"
            )
        return (*shape[:1], *shape[2:]) if len(shape) > 1 else ()
    return _nll_shape(input, target)


def _check_targets(input: Tensor, target: Tensor, weight: Any, size_average: Any, ignore_index: int, *_: Any) -> None:
    """Raise ``IndexError`` for the first target that is neither a class nor ignored, if there is one."""
    if target.dtype.is_floating_point:
        return
    count = input.shape[1 if input.ndim > 1 else 0]
    for value in target.reshape((-1,)).tolist():
        if value != ignore_index and not 0 <= value < count:
            raise IndexError(f"Target {value} is out of bounds.")


# -- public losses ----------------------------------------------------------------------------------------------------
@operator(loss_rule(_cross_entropy_shape), check=_check_targets, promote=highest, out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
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

    ``weight`` (C) weights the classes, and the mean is then a weighted mean; targets equal to ``ignore_index`` are
    left out; ``label_smoothing`` mixes the target with the uniform distribution (Szegedy et al., 2016).
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    scores, targets = input._payload.shape, target._payload.shape
    if len(scores) != 2 or targets != scores[:1] or not target._keys & int64.bit:  # else nothing is left to check
        _cross_entropy_shape(input, target)
    classes = 1 if len(scores) > 1 else 0
    if tuple(scores) == tuple(targets):
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _cross_entropy_of_probabilities(input, target, weight, classes, reduction, label_smoothing)
    logs = log_softmax.canonical(input, classes)
    if label_smoothing == 0.0:
        return _nll(logs, target, weight, ignore_index, reduction)
    return _smoothed(logs, target, weight, classes, ignore_index, reduction, label_smoothing)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, classes: int, reduction: str, smoothing: float
) -> Tensor:
    check_reduction(reduction)
    count = input.shape[classes]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / count
    logs = log_softmax.function(input, classes)
    scored = logs * target if weight is None else logs * target * _class_weights(weight, input, classes)
    losses = -scored.sum(classes)
    return losses.sum() / (input.numel() // max(count, 1)) if reduction == "mean" else reduced(losses, reduction)


def _class_weights(weight: Tensor, input: Tensor, classes: int) -> Tensor:
    """Return class weights in a shape that broadcasts to the input's."""
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
    losses, weights = _selected(logs, target, weight, ignore_index)
    everywhere = logs if weight is None else logs * _class_weights(weight, logs, classes)
    uniform = (-everywhere.sum(classes)).masked_fill(target == ignore_index, 0)
    mixed = losses * (1 - smoothing) + uniform * (smoothing / logs.shape[classes])
    return mixed.sum() / weights.sum() if reduction == "mean" else reduced(mixed, reduction)


@operator(
    loss_rule(_nll_shape),
    check=_check_targets,
    promote=highest,
    out=False,
    namespace="nn.functional",
    autocast="float32",
)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probability, in ``input`` (N, C, *) or (C), of each target (N, *); see :func:`cross_entropy`."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _nll_shape(input, target)
    return _nll(input, target, weight, ignore_index, reduction)


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Return :func:`nll_loss` of checked shapes."""
    if weight is None and len(input._payload.shape) > 1:
        if not target._keys & int64.bit:
            target = cast(target, dtype=int64)
        if reduction == "mean":
            loss: Tensor = mean_class_loss.canonical(input, target, ignore_index).loss
            return loss
        losses = class_losses.canonical(input, target, ignore_index).losses
        return reduced(losses, reduction)
    losses, weights = _selected(input, target, weight, ignore_index)
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def _check_classes(input: Tensor, target: Tensor) -> None:
    """Raise PyTorch's errors for targets that are no classes of the input, in PyTorch's order."""
    shape, classes = list(input.shape), list(target.shape)
    if len(shape) > 1 and shape[:1] != classes[:1]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({classes[0] if classes else 0})."
        )
    expected = [shape[0], *shape[2:]]
    if len(shape) <= 2 and len(classes) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(shape) == 4 and len(classes) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(classes)}"
        )
    if len(shape) not in (1, 4) and classes != expected:
        raise RuntimeError(f"Expected target size {expected}, got {classes}")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.title}")
    if len(shape) == 1 and classes not in ([], [1]):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {classes[0]}")
    if len(shape) == 4 and classes != expected:
        raise RuntimeError(f"size mismatch (got input: {shape} , target: {classes}")


def _selected(logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Return the loss of each target, and its weight, which is 0 if it is ignored."""
    if weight is not None:
        _class_weights(weight, logs, 1 if logs.ndim > 1 else 0)
        if weight.dtype is not logs.dtype:
            raise RuntimeError(f"expected scalar type {logs.dtype.title} but found {weight.dtype.title}")
    if target.dtype is not int64:
        target = cast(target, dtype=int64)
    single = logs.ndim == 1
    if single:
        logs, shape = logs.unsqueeze(0), tuple(target.shape)
        target = target.reshape((1,))
    if weight is None:
        losses, weights = class_losses.canonical(logs, target, ignore_index)
    else:
        losses, weights = weighted_class_losses.canonical(logs, target, weight, ignore_index)
    if single and not shape:
        losses, weights = losses.squeeze(0), weights.squeeze(0)
    return losses, weights


@by
def _encoded_shape(tensor: Tensor, num_classes: int) -> Ints | None:
    return None if num_classes < 0 else (*shape_of(tensor), num_classes)


@operator(_encoded_shape, promote=unpromoted, result=index, data_dependent=True, out=False, namespace="nn.functional")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A last dim of ``num_classes`` (by default one more than the largest class) that is 1 at the class, else 0."""
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
    classes = record("new_arange")(tensor, 0, 1, num_classes, dtype=int64)
    return cast(tensor.unsqueeze(-1) == classes, dtype=int64)


@one_hot.batched
def _one_hot_of_examples(size: int, batched: Any, tensor: Tensor, num_classes: int) -> Tensor:
    if num_classes < 0:
        raise RuntimeError("vmap: one_hot() needs num_classes, as the largest class of each example may differ")
    return one_hot(tensor, num_classes)
