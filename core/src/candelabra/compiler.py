"""``compile`` and PyTorch's controls of its compiler, which have no effect: candelabra runs Python.

The first use of ``compile`` warns.
"""

from __future__ import annotations

from candelabra._absent import say_once
from candelabra._annotations import Any


def compile(model: Any = None, **options: Any) -> Any:
    """Return ``model``, a function or module, unchanged; without it, a decorator that does so. Options are ignored."""
    say_once("compile", "candelabra.compile has no effect: its argument runs as Python code")
    return (lambda function: function) if model is None else model


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return ``fn``, or a decorator that returns its function: nothing is compiled."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return ``fn``."""
    return fn


def is_compiling() -> bool:
    """Return False."""
    return False


def is_dynamo_compiling() -> bool:
    """Return False."""
    return False


def is_exporting() -> bool:
    """Return False."""
    return False


def reset() -> None:
    """Do nothing: there are no compiled functions."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no recorded launches."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Return an empty list: there are no compilers."""
    return []


__all__ = [
    "allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "list_backends", "reset",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
