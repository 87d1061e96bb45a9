"""``backward`` and the gradients of tensors: check the users' arguments and run the engine."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.accumulating import accumulate
from candelabra._autograd.engine import PassWatcher, run
from candelabra._autograd.filling import filled_like
from candelabra._autograd.node import Node
from candelabra._keys import DEFERRED, DEVICE_SHIFT, FUNCTION_MODE, NO_GRAD, NO_OVERRIDE, state, switch
from candelabra._overrides import in_use
from candelabra.dtypes import COMPLEX_BITS, DTYPE_MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor

TensorOrTensors = Any
Pass = Callable[..., "list[Tensor | None]"]
"""A function with the parameters of :func:`captured`."""


class _Interception(threading.local):
    """What runs the backward passes of a thread, if another function than :func:`pass_of` does."""

    run: Callable[[tuple[Any, ...], tuple[Any, ...], bool], bool] | None = None
    """A function of outputs, gradients and ``retain_graph``; it returns False if it has declined the pass."""


interception: Final = _Interception()


def as_tuple(value: Any, argument: str, absent: bool = False) -> tuple[Any, ...]:
    """Return one tensor or several as a tuple. ``absent``: they may be None."""
    if hasattr(value, "_payload"):
        return (value,)
    found = tuple(value) if hasattr(value, "__iter__") else (value,)
    for item in found:
        if not hasattr(item, "_payload") and (item is not None or not absent):
            raise TypeError(f"{argument} must be a Tensor or a sequence of Tensors, got {type(item).__name__}")
    return found


def _roots(outputs: tuple[Tensor, ...], gradients: Sequence[Tensor | None]) -> list[tuple[Node, Any]]:
    """Return the nodes of the outputs, each with its gradient. A list of gradients is emptied."""
    if len(gradients) != len(outputs):
        raise RuntimeError(f"Mismatch in length: got {len(outputs)} outputs and {len(gradients)} gradients for them")
    roots = []
    for number, (out, g) in enumerate(zip(outputs, gradients, strict=True)):
        node = out._fresh()._node
        if node is None:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
        roots.append((node, _gradient_for(number, out, g)))
    if isinstance(gradients, list):
        gradients.clear()
    return roots


def _gradient_for(number: int, out: Tensor, g: Tensor | None) -> Tensor:
    if g is None:
        shape = out._payload.shape
        if shape and out.numel() != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, this one has shape "
                f"{list(out.shape)}; pass its gradient"
            )
        if out._keys & COMPLEX_BITS:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
        ones: Tensor = filled_like(out, 1, tuple(shape))
        return ones
    if g._fresh()._payload.shape != out._payload.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {g.shape} and output[{number}] has a "
            f"shape of {out.shape}."
        )
    different = g._keys ^ out._keys
    if different & COMPLEX_BITS and g.dtype.is_complex != out.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{number}] has a dtype of {g.dtype} and output[{number}] has a dtype of {out.dtype}."
        )
    if different >> DEVICE_SHIFT and g.device != out.device:
        raise RuntimeError(
            f"grad_output[{number}] is on {g.device} and output[{number}] on {out.device}: move it with "
            f".to('{out.device}')"
        )
    return g.to(out.dtype) if different & DTYPE_MASK else g


def backward(
    tensors: TensorOrTensors,
    grad_tensors: TensorOrTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: TensorOrTensors = None,
    inputs: TensorOrTensors = None,
) -> None:
    """Accumulate the gradients of ``tensors`` into the leaves (or only ``inputs``) that they depend on.

    ``grad_tensors``: the gradients of non-scalar ``tensors``. ``retain_graph`` keeps saved values for another pass
    (default: ``create_graph``); ``create_graph`` records the pass itself, for higher derivatives. ``grad_variables`` is
    the old name of ``grad_tensors``. As ``torch.autograd.backward``.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    outputs = as_tuple(tensors, "tensors")
    gradients = (None,) * len(outputs) if grad_tensors is None else as_tuple(grad_tensors, "grad_tensors", True)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run = interception.run
        if run is None or create_graph or not run(outputs, gradients, keep):
            pass_of(outputs, gradients, keep, create_graph)
        return
    targets = as_tuple(inputs, "inputs")
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for target, g in zip(targets, captured(outputs, gradients, targets, keep, create_graph), strict=True):
        if g is not None:
            _into_grad(target, g, create_graph)


def _into_grad(target: Tensor, g: Tensor, create_graph: bool) -> None:
    node = target._node
    if node is not None and node.is_leaf:
        accumulate(node, g, create_graph)
        return
    present = target.grad
    target._grad = (g if create_graph else g.detach().clone()) if present is None else present + g


def gradients_of(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    run_pass: Pass | None = None,
) -> list[Tensor | None]:
    """Return the gradients of ``outputs`` with respect to ``inputs``; ``candelabra.autograd.grad`` describes them.

    ``run_pass`` runs the backward pass in another way than :func:`captured`, with the same arguments.
    """
    outs, targets = as_tuple(outputs, "outputs"), as_tuple(inputs, "inputs")
    gradients = (None,) * len(outs) if grad_outputs is None else as_tuple(grad_outputs, "grad_outputs", True)
    keep = create_graph if retain_graph is None else retain_graph
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    results = (run_pass or captured)(outs, gradients, targets, keep, create_graph)
    for position, g in enumerate(results):
        if g is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                f"if this is the desired behavior. (It is number {position} of inputs, shape "
                f"{list(targets[position].shape)}.)"
            )
    return results


def grad_up_to(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    gradients: Sequence[Tensor],
    create_graph: bool = False,
    watcher: PassWatcher | None = None,
) -> list[Tensor | None]:
    """Return the gradients of inputs as if these were leaves, although one may depend on another. The graph is kept.

    The first ``gradients`` are removed from a list, so that they live no longer than in :func:`backward`. A ``watcher``
    sees the nodes that have run, and says what is returned for a gradient.
    """
    return captured(tuple(outputs), gradients, tuple(inputs), True, create_graph, True, watcher)


def captured(
    outputs: tuple[Tensor, ...],
    gradients: Sequence[Tensor | None],
    targets: tuple[Tensor, ...],
    keep: bool,
    create_graph: bool,
    ending: bool = False,
    watcher: PassWatcher | None = None,
) -> list[Tensor | None]:
    """Run a backward pass and return the gradients of ``targets``, without accumulating them; None: not reached."""
    captures: dict[Node, list[int]] = {}
    for position, target in enumerate(targets):
        node = target._fresh()._node
        if node is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        captures.setdefault(node, []).append(position)
    captured: list[Any] = [None] * len(targets)
    pass_of(outputs, gradients, keep, create_graph, captures, captured, ending, watcher)
    return captured


def pass_of(
    outputs: tuple[Tensor, ...],
    gradients: Sequence[Tensor | None],
    keep: bool,
    create_graph: bool,
    captures: dict[Node, list[int]] | None = None,
    captured: list[Any] | None = None,
    ending: bool = False,
    watcher: PassWatcher | None = None,
) -> None:
    """Create the first gradients and run the engine, with recording only for ``create_graph``."""
    before = state.bits
    bits = before & ~NO_GRAD if create_graph else before | NO_GRAD
    bits &= ~DEFERRED
    switch((bits | NO_OVERRIDE) & ~FUNCTION_MODE if in_use or bits & FUNCTION_MODE else bits)
    try:
        run(_roots(outputs, gradients), keep, create_graph, captures, captured, ending, watcher)
    finally:
        switch(before)
