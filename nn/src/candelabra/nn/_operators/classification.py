"""The losses of classes that are known: one number of each vector of log-probabilities, and the gradient back to it."""

from __future__ import annotations

from candelabra.library import by, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Index, Shape, Tensor

Ints = tuple[int, ...]


class ClassLosses(NamedTuple):
    """The loss of each target, and 1 where it counts, 0 where it is ignored."""

    losses: Tensor
    weights: Tensor


def targets_of(input: Tensor, target: Tensor) -> Ints:
    """The shape of targets: one for each vector of classes. Raises ``RuntimeError`` where they are others."""
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

    Nothing is differentiated through the weights, which do not depend on the input. ``IndexError`` for a target that is
    no class.
    """
    cast = record("cast")

    targets_of(input, target)
    kept, safe = _kept(target, ignored)
    scores = input.gather(1, safe.unsqueeze(1)).squeeze(1)
    # An ignored class may be at -inf, and 0 * inf is NaN: so it is filled, not multiplied.
    return ClassLosses((-scores).masked_fill(kept.logical_not(), 0), cast(kept, dtype=input.dtype))


def _kept(target: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
    """Which targets count, and the targets with class 0 for those that don't."""
    where = record("where")

    kept = target != ignored
    return kept, where(kept, target, 0)


@operator(
    by(lambda grad, target, shape, ignored: shape), accepts="real floating", method=False, public=False, out=False
)
def class_losses_backward(grad: Tensor, target: Index, shape: Shape, ignored: int) -> Tensor:
    """Zeros of ``shape`` (N, C, *) with minus the gradient of each loss (N, *) at its class.

    The targets are those of :func:`class_losses`, and so within bounds.
    """
    new_full, scatter_add = record("new_full"), record("scatter_add")

    kept, safe = _kept(target, ignored)
    values = (-grad).masked_fill(kept.logical_not(), 0)
    return scatter_add(new_full(grad, shape, 0), 1, safe.unsqueeze(1), values.unsqueeze(1))


class_losses.vjp(
    input=lambda g_losses, target, input_spec, ignored: class_losses_backward(
        g_losses, target, input_spec.shape, ignored
    )
)
class_losses_backward.vjp(grad=lambda g, target, ignored: class_losses(g, target, ignored).losses)
