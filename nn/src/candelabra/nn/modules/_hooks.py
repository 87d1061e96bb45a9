"""Hooks of modules: functions that are called before and after ``forward`` and the backward pass of a module.

Each kind of hook has an ordered dictionary of functions with their options; the handle of a hook removes it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from candelabra import Tensor
from candelabra.autograd.function import Function
from candelabra.library import RemovableHandle
from candelabra.nn.modules._traversal import Traversable

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

__all__ = ["KINDS", "BackwardHooks", "Hook", "Hooked", "RemovableHandle", "add"]

KINDS: Final = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks",
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
_numbers: Final = count()


class Hook(NamedTuple):
    """A hook function and its options."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


def add(hooks: dict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add a hook at the end, or at the beginning with ``prepend``. Raises ``TypeError`` if it is not callable."""
    if not callable(hook.function):
        raise TypeError(f"a hook must be callable, got {type(hook.function).__name__}")
    number = next(_numbers)
    others = list(hooks.items()) if prepend else []
    if prepend:
        hooks.clear()
    hooks[number] = hook
    hooks.update(others)
    return RemovableHandle(hooks, number)  # type: ignore[arg-type]


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

    def __init__(self, module: Module, before: list[Hook], after: list[Hook]) -> None:
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
        if not single and not isinstance(result, (tuple, list)):
            return result  # as in PyTorch, tensors inside other containers are not watched
        out, places, node = _through_one_node((result,) if single else tuple(result))
        if node is None:
            return result

        def runs(gs: tuple[Any, ...]) -> Any:
            whole: list[Any] = [None] * len(out)
            for place, g in zip(places, gs):
                whole[place] = g
            self.grad_outputs = self._run_before(tuple(whole))
            if not self.has_input_node:
                self._run_after((None,) * self.inputs)
            return tuple(self.grad_outputs[place] for place in places)

        node.register_prehook(runs)
        if single:
            return out[0]
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*out)
        return out if isinstance(result, tuple) else list(out)

    def _run_before(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.before:
            grads = _replaced("pre hook", grads, hook.function(self.module, grads))
        return grads

    def _run_after(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.after:
            new = hook.function(self.module, grads, self.grad_outputs)
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


class Hooked(Traversable):
    """The methods of a Module that register hooks, and the call that runs them."""

    _forward_pre_hooks: dict[int, Hook]
    _forward_hooks: dict[int, Hook]
    _backward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Hook]
    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_post_hooks: dict[int, Hook]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; it may return other arguments. With ``with_kwargs``,
        ``hook(module, args, kwargs)``, which returns None or both."""
        return add(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; it may return another output. With ``with_kwargs``,
        ``hook(module, args, kwargs, output)``; with ``always_call``, also if ``forward`` raised."""
        return add(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass; it may return another grad_output."""
        return add(self._backward_pre_hooks, Hook(hook), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward pass; it may return another
        grad_input. Gradients are those of positional arguments."""
        return add(self._backward_hooks, Hook(hook), prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects tensors."""
        return add(self._state_dict_pre_hooks, Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``; it may change the result."""
        return add(self._state_dict_hooks, Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before this module's tensors are loaded."""
        return add(self._load_state_dict_pre_hooks, Hook(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists of keys."""
        return add(self._load_state_dict_post_hooks, Hook(hook))

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        module = cast("Module", self)
        called: set[int] = set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            watch = None
            if self._backward_hooks or self._backward_pre_hooks:
                before, after = list(self._backward_pre_hooks.values()), list(self._backward_hooks.values())
                watch = BackwardHooks(module, before, after)
                args = watch.watch_inputs(args)
            result = module.forward(*args, **kwargs)
            for number, hook in list(self._forward_hooks.items()):
                called.add(number)
                result = _run_forward_hook(hook, module, args, kwargs, result)
            return result if watch is None else watch.watch_outputs(result)
        except Exception:
            for number, hook in list(self._forward_hooks.items()):
                if hook.always_call and number not in called:
                    _run_forward_hook(hook, module, args, kwargs, None)
            raise

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        module = cast("Module", self)
        for hook in list(self._forward_pre_hooks.values()):
            if not hook.with_kwargs:
                new = hook.function(module, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
                continue
            new = hook.function(module, args, kwargs)
            if new is None:
                continue
            if not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                )
            args, kwargs = new
        return args, kwargs


def _run_forward_hook(hook: Hook, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    more = (args, kwargs) if hook.with_kwargs else (args,)
    new = hook.function(module, *more, result)
    return result if new is None else new
