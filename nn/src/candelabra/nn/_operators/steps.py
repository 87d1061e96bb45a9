"""Optimizer steps: the new values of one parameter and of its optimizer state.

Each step is a function that works in place; the operator is that function applied to copies. Optimizers call the
operator's form over rows (``over_rows``), one row of tensors for each parameter: a device may have one kernel for all.
"""

from __future__ import annotations

import math

from candelabra import is_grad_enabled
from candelabra.library import Operator, operator, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def common_shape(*args: Any) -> tuple[int, ...]:
    """Return the shape of all tensors. Raises ``RuntimeError`` if shapes differ: a step does not broadcast."""
    shapes = [shape_of(a) for a in args if hasattr(a, "shape")]
    for shape in shapes[1:]:
        if shape != shapes[0]:
            raise RuntimeError(
                f"expected the shape of the parameter, {list(shapes[0])}, of its gradient and of the optimizer's "
                f"state, got {list(shape)}"
            )
    return shapes[0]


def step_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the parameter's shape, for every output."""
    shape = common_shape(*args)
    outputs = len(op.schema.outputs)
    return shape if outputs == 1 else (shape,) * outputs


# -- gradient descent -------------------------------------------------------------------------------------------------
def descend(param: Tensor, grad: Tensor, lr: float, weight_decay: float, maximize: bool) -> Tensor:
    """``p -= lr * (g + weight_decay * p)``, in place; ``maximize`` negates g. A recorded step may have a tensor lr."""
    g = _decayed(param, grad, weight_decay, maximize)
    return param.sub_(g, alpha=lr) if type(lr) is float else param.sub_(g * lr)


def _decayed(param: Tensor, grad: Tensor, weight_decay: float, maximize: bool) -> Tensor:
    g = -grad if maximize else grad
    return g.add(param, alpha=weight_decay) if weight_decay else g


@operator(step_shape, accepts="real floating", public=False, out=False)
def sgd_step(param: Tensor, grad: Tensor, lr: float, weight_decay: float, maximize: bool) -> Tensor:
    """Gradient descent without momentum: :func:`descend`."""
    common_shape(param, grad)
    updated = param.clone()
    descend(updated, grad, lr, weight_decay, maximize)
    return updated


class MomentumStep(NamedTuple):
    """The parameter, and the decaying sum of its gradients."""

    param: Tensor
    buffer: Tensor


def descend_with_momentum(
    param: Tensor,
    grad: Tensor,
    buffer: Tensor,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> Tensor:
    """``b = momentum * b + (1 - dampening) * g``, ``p -= lr * b``, in place, g as for :func:`descend`.

    ``nesterov``: ``p -= lr * (g + momentum * b)``. Sutskever et al., ICML 2013.
    """
    g = _decayed(param, grad, weight_decay, maximize)
    buffer.mul_(momentum)
    buffer.add_(g, alpha=1 - dampening)
    step = g.add(buffer, alpha=momentum) if nesterov else buffer
    return param.sub_(step, alpha=lr) if type(lr) is float else param.sub_(step * lr)


@operator(step_shape, result=(same, same), accepts="real floating", public=False, out=False)
def momentum_step(
    param: Tensor,
    grad: Tensor,
    buffer: Tensor,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> MomentumStep:
    """Gradient descent with momentum: :func:`descend_with_momentum`."""
    common_shape(param, grad, buffer)
    updated = MomentumStep(param.clone(), buffer.clone())
    descend_with_momentum(
        updated.param, grad, updated.buffer, lr, momentum, dampening, weight_decay, nesterov, maximize
    )  # fmt: skip
    return updated


# -- Adam -------------------------------------------------------------------------------------------------------------
class AdamStep(NamedTuple):
    """The parameter, and the decaying averages of its gradients and of their squares."""

    param: Tensor
    mean: Tensor
    square: Tensor


class AMSGradStep(NamedTuple):
    """As :class:`AdamStep`, and the largest average of squares so far."""

    param: Tensor
    mean: Tensor
    square: Tensor
    largest: Tensor


def descend_adaptively(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
    *,
    largest: Tensor | None = None,
) -> Tensor:
    """Adam (Kingma & Ba, ICLR 2015), in place; ``step`` counts from 1.

    ``decoupled``: the decay is applied to the parameter (Loshchilov & Hutter, ICLR 2019), and not to the gradient.
    With ``largest``, the largest average of squares so far is used (Reddi et al., ICLR 2018). A recorded step
    overwrites nothing that its derivative needs.
    """
    if decoupled and weight_decay:
        param.mul_(1 - lr * weight_decay)
    g = _decayed(param, grad, 0.0 if decoupled else weight_decay, maximize)
    mean.lerp_(g, 1 - beta1)
    square.mul_(beta2)
    square.addcmul_(g, g, value=1 - beta2)
    # Both averages start at 0, so they are biased towards 0: correct that (section 3 of the paper).
    correction = math.sqrt(1 - beta2**step)
    if is_grad_enabled():
        if largest is not None:
            square = largest.maximum(square)
            largest.copy_(square)
        return param.sub_(mean / (square.sqrt() / correction + eps) * (lr / (1 - beta1**step)))
    if largest is not None:
        square = largest.copy_(largest.maximum(square))
    root = square.sqrt()
    root.div_(correction)
    root.add_(eps)
    return param.addcdiv_(mean, root, value=-lr / (1 - beta1**step))


def descend_by_largest(
    param: Tensor, grad: Tensor, mean: Tensor, square: Tensor, largest: Tensor, *options: Any
) -> Tensor:
    """:func:`descend_adaptively` with the largest average of squares so far, in place."""
    return descend_adaptively(param, grad, mean, square, *options, largest=largest)


@operator(step_shape, result=(same,) * 3, accepts="real floating", public=False, out=False)
def adam_step(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> AdamStep:
    """Adam: :func:`descend_adaptively`."""
    common_shape(param, grad, mean, square)
    updated = AdamStep(param.clone(), mean.clone(), square.clone())
    descend_adaptively(
        updated.param, grad, updated.mean, updated.square, step, lr, beta1, beta2, eps, weight_decay, decoupled,
        maximize,
    )  # fmt: skip
    return updated


@operator(step_shape, result=(same,) * 4, accepts="real floating", public=False, out=False)
def amsgrad_step(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    largest: Tensor,
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> AMSGradStep:
    """Adam with ``amsgrad``: :func:`descend_adaptively`."""
    common_shape(param, grad, mean, square, largest)
    updated = AMSGradStep(param.clone(), mean.clone(), square.clone(), largest.clone())
    descend_by_largest(
        updated.param, grad, updated.mean, updated.square, updated.largest, step, lr, beta1, beta2, eps, weight_decay,
        decoupled, maximize,
    )  # fmt: skip
    return updated


for _step, _in_place in (
    (sgd_step, descend),
    (momentum_step, descend_with_momentum),
    (adam_step, descend_adaptively),
    (amsgrad_step, descend_by_largest),
):
    _step.no_gradient("an optimizer's step is not differentiable").in_place(_in_place)
