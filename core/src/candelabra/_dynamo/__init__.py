"""PyTorch's names of its tracer, by their public ones in ``candelabra.compiler``."""

from __future__ import annotations

from candelabra._absent import say_once
from candelabra._annotations import Any, NamedTuple, TypeVar
from candelabra._compile.graph_modules import exported
from candelabra._dynamo import compiled_autograd, config, utils
from candelabra.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    explain,
    graph_break,
    is_compiling,
    list_backends,
    lookup_backend,
    register_backend,
    reset,
    substitute_in_graph,
)

T = TypeVar("T")


def optimize(backend: Any = "candelabra", *, nopython: bool = False, **options: Any) -> Any:
    """Return a decorator that compiles: ``candelabra.compile(backend=..., fullgraph=nopython)``."""
    return compile(backend=backend, fullgraph=nopython, **options)


class ExportResult(NamedTuple):
    """A traced function as a GraphModule. ``guards``: none, since the caller has to pass such tensors again."""

    graph_module: Any
    guards: tuple[Any, ...]


def export(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a function that traces ``f`` and returns an :class:`ExportResult`; with arguments, call it at once.

    Raises ``GraphBreak`` for what no graph can repeat.
    """

    def inner(*args: Any, **kwargs: Any) -> ExportResult:
        return ExportResult(exported(f, *args, **kwargs), ())

    return inner(*args, **kwargs) if args or kwargs else inner


def mark_static(t: T, index: Any = None) -> T:
    """Return the tensor or module: each shape is compiled for itself."""
    return t


mark_static_address = mark_static


def mark_dynamic(t: T, index: Any, **bounds: Any) -> T:
    """Return the tensor, with a warning: each size is a kind of its own, up to ``compiler.config.recompile_limit``."""
    say_once("mark_dynamic", "mark_dynamic() has no effect: compiled functions are compiled again for each size")
    return t


maybe_mark_dynamic = mark_dynamic


def disallow_in_graph(fn: Any) -> Any:
    """Return a function that ends the graph of the compiled function that calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        graph_break(f"{getattr(fn, '__name__', fn)} is disallowed in graphs")
        return fn(*args, **kwargs)

    return call


forbid_in_graph = disallow_in_graph


def __getattr__(name: str) -> Any:
    if name != "OptimizedModule":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from candelabra.nn.modules.compiled import OptimizedModule

    return OptimizedModule


__all__ = [
    "ExportResult", "OptimizedModule", "allow_in_graph", "assume_constant_result", "compiled_autograd", "config",
    "disable", "disallow_in_graph", "explain", "export", "forbid_in_graph", "graph_break", "is_compiling",
    "list_backends", "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "optimize", "register_backend", "reset", "substitute_in_graph", "utils",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
