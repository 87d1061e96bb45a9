"""``autograd.grad``: gradients of tensors with respect to tensors, also for a batch of gradients of the outputs."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING
from candelabra._autograd.api import TensorOrTensors, as_tuple, captured, gradients_of
from candelabra._keys import NO_GRAD

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the sum of the gradients of ``outputs`` with respect to each of ``inputs``, without accumulating them.

    An input that the outputs do not depend on raises RuntimeError. With ``allow_unused`` its gradient is None, and with
    ``materialize_grads`` it is zero. ``is_grads_batched``: ``grad_outputs`` have another dim in front, and so do the
    results, which one backward pass under ``vmap`` computes for all examples. ``only_inputs`` is ignored, with a
    warning if it is False. As ``torch.autograd.grad``.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use candelabra.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if materialize_grads:
        outputs, inputs = as_tuple(outputs, "outputs"), as_tuple(inputs, "inputs")
    unused = bool(allow_unused) or materialize_grads
    run_pass = batched if is_grads_batched else captured
    found = gradients_of(outputs, inputs, grad_outputs, retain_graph, create_graph, unused, run_pass)
    if materialize_grads:
        found = [x.detach() * 0 if g is None else g for g, x in zip(found, inputs, strict=True)]
    return tuple(found)


def batched(
    outputs: tuple[Tensor, ...],
    gradients: tuple[Tensor | None, ...],
    targets: tuple[Tensor, ...],
    keep: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """As :func:`captured`, for gradients with a batch dim in front; the engine runs once, in a level of ``vmap``."""
    from candelabra._dispatch.levels import active_frames  # few programs differentiate batches
    from candelabra._transforms.level import modes_of_level
    from candelabra._transforms.vmap import vmap

    for position, g in enumerate(gradients):
        if g is None:
            raise RuntimeError(
                f"is_grads_batched=True needs grad_outputs with a batch dim, got None for output {position}"
            )
    depth = len(active_frames())
    unused: list[int] = []

    def one(*rows: Tensor) -> list[Tensor]:
        exclude = NO_GRAD if create_graph else 0
        with modes_of_level(depth, NO_GRAD & ~exclude, exclude):
            found = captured(outputs, rows, targets, keep, create_graph)
        unused[:] = [i for i, g in enumerate(found) if g is None]
        return [g for g in found if g is not None]

    found = iter(vmap(one)(*gradients))
    return [None if i in unused else next(found) for i in range(len(targets))]
