"""Graphs of calls that programs trace, read, change and run, as ``torch.fx``.

:func:`symbolic_trace` runs a function or module on proxies and returns a :class:`GraphModule`, whose ``graph`` is a
list of :class:`Node` objects. A backend of ``candelabra.compile`` gets one, too, with the operators that ran. For
graphs of kernels with shapes and memory, see ``candelabra.graph``.
"""

from __future__ import annotations

from importlib import import_module

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.fx.graph import Graph
from candelabra.fx.interpreter import Interpreter, Transformer
from candelabra.fx.node import Node
from candelabra.fx.patterns import Match, replace_pattern
from candelabra.fx.proxy import Proxy, TraceError, Tracer, symbolic_trace, wrap

if TYPE_CHECKING:
    from candelabra.nn.modules.graph_module import GraphModule

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Match", "Node", "Proxy", "TraceError", "Tracer", "Transformer",
    "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "GraphModule":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import candelabra

    _ = candelabra.nn  # raises ModuleNotFoundError with the extra to install
    found = globals()[name] = import_module("candelabra.nn.modules.graph_module").GraphModule
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
