"""Graphs of operators: trace a function, print, walk and rewrite the graph, and run it without dispatch.

``trace(f, *args)`` runs ``f`` and returns the operators that it called as a :class:`Graph` of :class:`Node` and
:class:`Value` objects. A *pass* is a function from a graph to a graph, such as :func:`fuse`, which groups nodes that a
device runs as one kernel. :func:`runner` makes a Python function of a graph. A device's ``Backend.compile`` gets a
graph and may return its own function instead.
"""

from __future__ import annotations

from candelabra._graph.compiling import compile_graph
from candelabra._graph.decomposing import decomposed
from candelabra._graph.fusing import fuse, gain, values_read
from candelabra._graph.memory import memory_plan
from candelabra._graph.packing import PackedLayout, Packing, packed_operands, with_packed_operands
from candelabra._graph.passes import simplified
from candelabra._graph.running import default_kernel, runner
from candelabra._graph.structure import FUNCTION, INPLACE, ROWS, Graph, Memory, Node, Spec, Value
from candelabra._graph.tracing import GraphBreak, trace

__all__ = [
    "FUNCTION", "INPLACE", "ROWS", "Graph", "GraphBreak", "Memory", "Node", "PackedLayout", "Packing", "Spec", "Value",
    "compile_graph", "decomposed", "default_kernel", "fuse", "gain", "memory_plan", "packed_operands", "runner",
    "simplified", "trace", "values_read", "with_packed_operands",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
