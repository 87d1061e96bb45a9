"""Hooks of modules: functions that are called before and after ``forward`` and the backward pass of a module.

The dictionaries of hooks have PyTorch's names and contents, because programs read and clear them: functions by number,
and for each option the numbers that have it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from candelabra.library import RemovableHandle
from candelabra.nn.modules._traversal import Traversable

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

__all__ = ["EVERYWHERE", "KINDS", "GlobalHooks", "Hooked", "Hooks", "RemovableHandle", "add"]

Hooks: TypeAlias = dict[int, Callable[..., Any]]
KINDS: Final = (
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks",
    "_state_dict_hooks", "_state_dict_post_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks_with_module", "_load_state_dict_post_hooks",
)  # fmt: skip
_numbers: Final = count()


class GlobalHooks:
    """The hooks that are called for every module."""

    def __init__(self) -> None:
        self.at_calls: dict[int, bool] = {}
        """The numbers of all hooks that calls run, so that a call needs one test."""
        self.forward_pre: Hooks = {}
        self.forward: Hooks = {}
        self.forward_with_kwargs: dict[int, bool] = {}
        self.forward_always_called: dict[int, bool] = {}
        self.backward_pre: Hooks = {}
        self.backward: Hooks = {}
        self.backward_is_full: bool | None = None
        self.buffer_registration: Hooks = {}
        self.module_registration: Hooks = {}
        self.parameter_registration: Hooks = {}


EVERYWHERE: Final = GlobalHooks()


class _Handle(RemovableHandle):
    """A handle that removes a hook and its options."""

    def __init__(self, hooks: Hooks, number: int, options: list[dict[int, bool]]) -> None:
        super().__init__(hooks, number)
        self._options = options

    def remove(self) -> None:
        super().remove()
        for numbers in self._options:
            numbers.pop(self.id, None)


def add(
    hooks: Hooks, hook: Callable[..., Any], prepend: bool = False, options: list[dict[int, bool]] | None = None
) -> RemovableHandle:
    """Add a hook at the end, or at the beginning with ``prepend``, and its number to the options that it has.

    Raises ``TypeError`` if it is not callable.
    """
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    number = next(_numbers)
    others = list(hooks.items()) if prepend else []
    if prepend:
        hooks.clear()
    hooks[number] = hook
    hooks.update(others)
    for numbers in options or ():
        numbers[number] = True
    return _Handle(hooks, number, options or [])


class Hooked(Traversable):
    """The methods of a Module that register hooks, and the call that runs them."""

    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _is_full_backward_hook: bool | None
    _state_dict_pre_hooks: Hooks
    _state_dict_hooks: Hooks
    _state_dict_post_hooks: dict[int, bool]
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks_with_module: dict[int, bool]
    _load_state_dict_post_hooks: Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; it may return other arguments. With ``with_kwargs``,
        ``hook(module, args, kwargs)``, which returns None or both."""
        options = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add(self._forward_pre_hooks, hook, prepend, options)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; it may return another output. With ``with_kwargs``,
        ``hook(module, args, kwargs, output)``; with ``always_call``, also if ``forward`` raised."""
        options = [self._forward_hooks_with_kwargs] if with_kwargs else []
        options += [self._forward_hooks_always_called] if always_call else []
        return add(self._forward_hooks, hook, prepend, options)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass; it may return another grad_output."""
        return add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward pass; it may return another
        grad_input. Gradients are those of positional arguments. If none of them requires a gradient, the hook is called
        when the gradients of the outputs have been computed, with a warning."""
        self._set_backward_kind(True)
        return add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` with the gradients of the last operator in the module.

        Deprecated in PyTorch: :meth:`register_full_backward_hook` gets the gradients of the module.
        """
        self._set_backward_kind(False)
        return add(self._backward_hooks, hook)

    def _set_backward_kind(self, full: bool) -> None:
        if self._backward_hooks and self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``.

        The hook of the module whose ``state_dict`` was called may return another dictionary.
        """
        if any(self._state_dict_hooks.get(number) is hook for number in self._state_dict_post_hooks):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects tensors."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``; it may change the dictionary
        and must return None."""
        return add(self._state_dict_hooks, hook, options=[self._state_dict_post_hooks])

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """As :meth:`register_load_state_dict_pre_hook`; without ``with_module`` the hook does not get the module."""
        options = [self._load_state_dict_pre_hooks_with_module] if with_module else []
        return add(self._load_state_dict_pre_hooks, hook, options=options)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before this module's tensors are loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists of keys."""
        return add(self._load_state_dict_post_hooks, hook)

    # -- calling ------------------------------------------------------------------------------------------------------
    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        module = cast("Module", self)
        called: set[int] = set()
        result = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            full, of_node = self._get_backward_hooks()
            before = self._get_backward_pre_hooks()
            watch = None
            if full or before:
                from candelabra.nn.modules._backward_hooks import BackwardHooks  # needs candelabra.autograd.function

                watch = BackwardHooks(module, before, full)
                args = watch.watch_inputs(args)
            result = module.forward(*args, **kwargs)
            for number, hook in [*EVERYWHERE.forward.items(), *self._forward_hooks.items()]:
                called.add(number)
                result = self._run_forward_hook(number, hook, args, kwargs, result)
            if watch is not None:
                result = watch.watch_outputs(result)
            if of_node:
                from candelabra.nn.modules._backward_hooks import watch_gradients_of_node

                watch_gradients_of_node(module, of_node, args, result)
            return result
        except Exception:
            self._run_always_called(called, args, kwargs, result)
            raise

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """Return the full backward hooks, and those of :meth:`register_backward_hook`."""
        both: tuple[list[Callable[..., Any]], list[Callable[..., Any]]] = ([], [])
        both[not EVERYWHERE.backward_is_full].extend(EVERYWHERE.backward.values())
        both[not self._is_full_backward_hook].extend(self._backward_hooks.values())
        return both

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        return [*EVERYWHERE.backward_pre.values(), *self._backward_pre_hooks.values()]

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for number, hook in [*EVERYWHERE.forward_pre.items(), *self._forward_pre_hooks.items()]:
            if number not in self._forward_pre_hooks_with_kwargs:
                new = hook(self, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
                continue
            new = hook(self, args, kwargs)
            if new is None:
                continue
            if not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                )
            args, kwargs = new
        return args, kwargs

    def _run_forward_hook(
        self, number: int, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        with_kwargs = number in self._forward_hooks_with_kwargs or number in EVERYWHERE.forward_with_kwargs
        new = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
        return result if new is None else new

    def _run_always_called(self, called: set[int], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Run the hooks with ``always_call`` that did not run because of an error."""
        for kind, hooks, always in (
            ("global module", EVERYWHERE.forward, EVERYWHERE.forward_always_called),
            ("module", self._forward_hooks, self._forward_hooks_always_called),
        ):
            for number, hook in list(hooks.items()):
                if number not in always or number in called:
                    continue
                try:
                    result = self._run_forward_hook(number, hook, args, kwargs, result)
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=4,
                    )
