"""PyTorch's decorators of TorchScript, which return their argument: candelabra runs Python.

The first use warns. ``save`` and ``load`` raise, because a scripted module is a program in a file. ``ScriptModule``
comes with ``candelabra.nn``.
"""

from __future__ import annotations

import builtins
from importlib import import_module

from candelabra._absent import missing, say_once
from candelabra._annotations import Any, NamedTuple, TypeVar

T = TypeVar("T")
Final = Any
"""Accepted in hints: ``x: jit.Final[int]`` is written as ``Final[int]`` of Python's ``typing``."""

_REASON = "TorchScript is not supported; save the state_dict with candelabra.save, and build the module in Python"
save = missing("jit", "save", _REASON)
load = missing("jit", "load", _REASON)


def _say(name: str) -> None:
    say_once("jit", f"candelabra.jit.{name} has no effect: its argument runs as Python code")


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """Return ``obj``, a function, class or module, unchanged."""
    _say("script")
    return obj


def trace(func: T, example_inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return ``func``, a function or module, unchanged."""
    _say("trace")
    return func


def trace_module(mod: T, inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return ``mod`` unchanged."""
    _say("trace_module")
    return mod


def freeze(mod: T, *args: Any, **kwargs: Any) -> T:
    """Return ``mod`` unchanged."""
    _say("freeze")
    return mod


def optimize_for_inference(mod: T, *args: Any, **kwargs: Any) -> T:
    """Return ``mod`` unchanged."""
    _say("optimize_for_inference")
    return mod


class TracerWarning(Warning):
    """The category of PyTorch's warnings while it traces, for programs that filter them."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: nothing is traced."""


class Attribute(NamedTuple):
    """A value and its type, which PyTorch's compiler reads."""

    value: Any
    type: Any


def export(fn: T) -> T:
    """Return ``fn``: in PyTorch, mark a method to be compiled."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function, or a decorator that returns its function: in PyTorch, leave it to Python."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    """Return ``fn``: in PyTorch, replace it by an error."""
    return fn


def script_method(fn: T) -> T:
    """Return ``fn``."""
    return fn


def script_if_tracing(fn: T) -> T:
    """Return ``fn``: nothing is traced."""
    return fn


_script_if_tracing = script_if_tracing


def interface(obj: T) -> T:
    """Return ``obj``."""
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """Return ``the_value``."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is an instance, as Python's function."""
    return builtins.isinstance(obj, target_type)


def _overload(fn: T) -> T:
    """Return ``fn``: a signature of TorchScript, which the function defined last by this name replaces."""
    return fn


_overload_method = _overload


def is_scripting() -> bool:
    """Return False."""
    return False


def is_tracing() -> bool:
    """Return False."""
    return False


__all__ = [
    "annotate", "Attribute", "export", "Final", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "optimize_for_inference", "save", "script", "script_if_tracing", "script_method",
    "ScriptModule", "trace", "trace_module", "TracerWarning", "unused",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "ScriptModule":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import candelabra

    _ = candelabra.nn  # raises ModuleNotFoundError with the extra to install
    found = globals()[name] = import_module("candelabra.nn.modules.script").ScriptModule
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
