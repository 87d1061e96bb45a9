"""Hooks that are called for every module: at calls, in backward passes, and when a member is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.library import RemovableHandle
from candelabra.nn.modules._hooks import EVERYWHERE, add

__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the ``forward`` of every module; it may return other arguments."""
    return add(EVERYWHERE.forward_pre, hook, options=[EVERYWHERE.at_calls])


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the ``forward`` of every module; it may return another output.

    With ``with_kwargs``, ``hook(module, args, kwargs, output)``; with ``always_call``, also if ``forward`` raised.
    """
    options = [EVERYWHERE.at_calls]
    options += [EVERYWHERE.forward_with_kwargs] if with_kwargs else []
    options += [EVERYWHERE.forward_always_called] if always_call else []
    return add(EVERYWHERE.forward, hook, options=options)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of every module."""
    return add(EVERYWHERE.backward_pre, hook, options=[EVERYWHERE.at_calls])


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after the backward pass of every module."""
    _set_backward_kind(True)
    return add(EVERYWHERE.backward, hook, options=[EVERYWHERE.at_calls])


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` with the gradients of the last operator in every module.

    Deprecated in PyTorch: :func:`register_module_full_backward_hook` gets the gradients of the module.
    """
    _set_backward_kind(False)
    return add(EVERYWHERE.backward, hook, options=[EVERYWHERE.at_calls])


def _set_backward_kind(full: bool) -> None:
    if EVERYWHERE.backward and EVERYWHERE.backward_is_full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    EVERYWHERE.backward_is_full = full


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; it may return another one."""
    return add(EVERYWHERE.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a child module is registered; it may return another one."""
    return add(EVERYWHERE.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when a parameter is registered; it may return another one."""
    return add(EVERYWHERE.parameter_registration, hook)
