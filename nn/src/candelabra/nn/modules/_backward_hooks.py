"""Full backward hooks: the gradients of all inputs and outputs of one call of a module, by a node on either side."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from candelabra import Tensor
from candelabra.autograd.function import Function

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

__all__ = ["BackwardHooks", "watch_gradients_of_node"]


class _Identity(Function):
    """The identity of several tensors as one graph node, whose hooks get all of their gradients at once."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Any, ...]:
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)  # type: ignore[attr-defined,unused-ignore]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return grads


def _through_one_node(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
    """Pass the values that require grad through one node. Return the values, their indices, and the node or None."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
    if not places:
        return values, places, None
    out = list(values)
    led = _Identity.apply(*(values[i] for i in places))
    for place, tensor in zip(places, led if isinstance(led, tuple) else (led,), strict=True):
        out[place] = tensor
    return tuple(out), places, out[places[0]].grad_fn


class BackwardHooks:
    """One call of a module with backward hooks, which get the gradients of its positional inputs and of its outputs.

    Pre-hooks get the gradients of the outputs before the module's backward pass, and may replace them; hooks get the
    gradients of the inputs after it. The gradient of a tensor that does not require one is None. The method, two
    identity nodes around the module, is PyTorch's.
    """

    def __init__(self, module: Module, before: list[Callable[..., Any]], after: list[Callable[..., Any]]) -> None:
        self.module = module
        self.before = before
        self.after = after
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs = 0
        self.has_input_node = False

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments for ``forward``."""
        self.inputs = len(args)
        out, places, node = _through_one_node(args) if self.after else (args, [], None)
        if node is None:
            return out
        self.has_input_node = True

        def ran(grad_inputs: tuple[Any, ...], _: Any) -> Any:
            if self.grad_outputs is None:  # the backward pass reached the inputs without passing the outputs
                return None
            whole: list[Any] = [None] * self.inputs
            for place, g in zip(places, grad_inputs):
                whole[place] = g
            changed = self._run_after(tuple(whole))
            return tuple(changed[place] for place in places)

        node.register_hook(ran)
        return out

    def watch_outputs(self, result: Any) -> Any:
        """Return the result for the caller."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=4,
            )
            return result
        out, places, node = _through_one_node((result,) if single else result)
        if node is None:
            return result

        def runs(gs: tuple[Any, ...]) -> Any:
            whole: list[Any] = [None] * len(out)
            for place, g in zip(places, gs):
                whole[place] = g
            self.grad_outputs = self._run_before(tuple(whole))
            if self.after and not self.has_input_node:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                    "inputs require gradients. See the documentation of register_full_backward_hook.",
                    stacklevel=2,
                )
                self._run_after((None,) * self.inputs)
            return tuple(self.grad_outputs[place] for place in places)

        node.register_prehook(runs)
        if single:
            return out[0]
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*out)
        return out

    def _run_before(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.before:
            grads = _replaced("pre hook", grads, hook(self.module, grads))
        return grads

    def _run_after(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.after:
            new = hook(self.module, grads, self.grad_outputs)
            if new is not None and not self.has_input_node:
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
            grads = _replaced("hook", grads, new)
        return grads


def _replaced(kind: str, grads: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    if new is None:
        return grads
    found = new if isinstance(new, tuple) else (new,)
    if len(found) != len(grads):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of grad, got {len(found)}, but expected {len(grads)}"
        )
    return found


# -- the hooks of register_backward_hook ------------------------------------------------------------------------------
def watch_gradients_of_node(
    module: Module, hooks: list[Callable[..., Any]], args: tuple[Any, ...], result: Any
) -> None:
    """Call ``hook(module, grad_inputs, grad_outputs)`` with the gradients of the node of the first tensor in a result.

    They are those of the module only if it is one operator. Otherwise a ``FutureWarning`` says what is missing.
    """
    first = _first_tensor(result)
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs))
    reason = _incomplete(args, result, node)
    if reason is not None:
        warnings.warn(
            f"Using {reason} Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )


def _first_tensor(result: Any) -> Tensor:
    while not isinstance(result, Tensor):
        result = next(v for v in result.values() if isinstance(v, Tensor)) if isinstance(result, dict) else result[0]
    return result


def _incomplete(args: tuple[Any, ...], result: Any, node: Any) -> str | None:
    """Return which gradients a hook of the node does not get, or None if it gets those of the module."""
    outputs = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(outputs, tuple) and all(isinstance(value, Tensor) for value in outputs)):
        return (
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is "
            "deprecated and will be removed in future versions. This hook will be missing some of the grad_output."
        )
    if not all(isinstance(value, Tensor) for value in args):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors is "
            "deprecated and will be removed in future versions. This hook will be missing some of the grad_input."
        )
    if len({id(value.grad_fn) for value in outputs if value.grad_fn is not None}) > 1:
        return (
            "a non-full backward hook when outputs are generated by different autograd Nodes is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_output."
        )
    if {id(value.grad_fn) for value in args if value.grad_fn is not None} != _nodes_before(node):
        return (
            "a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_input."
        )
    return None


def _nodes_before(node: Any) -> set[int]:
    return {id(before) for before, _ in node.next_functions if before is not None}
