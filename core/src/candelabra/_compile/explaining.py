"""``explain``: trace a call, and say how many graphs it has and what separates them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

from candelabra._annotations import Any, NamedTuple
from candelabra._compile.environment import Unguarded, environment_of
from candelabra._compile.recording import Recorder
from candelabra._graph.structure import Graph, Node
from candelabra._graph.tracing import Break, tracing
from candelabra._tensor import Tensor
from candelabra.utils._pytree import tree_flatten


class ExplainOutput(NamedTuple):
    """What a traced call consists of: ``print`` it for a report.

    ``graphs`` are those between two breaks, ``break_reasons`` has the reason and the user's line of each break,
    ``ops_per_graph`` the names of the operators, ``out_guards`` what the function refers to, and ``compile_times`` the
    seconds of the trace as text. Iteration gives the explanation, guards, graphs, operators, reasons and report, as
    PyTorch 2.0 returned them.
    """

    graphs: list[Graph]
    graph_count: int
    graph_break_count: int
    break_reasons: list[Break]
    op_count: int
    ops_per_graph: list[list[str]]
    out_guards: list[str]
    compile_times: str

    def __iter__(self) -> Iterator[Any]:  # the tuple of PyTorch 2.0
        summary = f"{self.graph_count} graphs with {self.graph_break_count} graph breaks and {self.op_count} ops"
        return iter((summary, self.out_guards, self.graphs, self.ops_per_graph, self.break_reasons, str(self)))

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, found in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {found.reason}", f"    User Stack: {found.where}"]
        lines.append("Ops per Graph:")
        for number, names in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *(f"    {name}" for name in names)]
        lines += ["Out Guards:", *(f"  {guard}" for guard in self.out_guards), f"Compile Times: {self.compile_times}"]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return a function that calls ``f`` once, traces it and returns an :class:`ExplainOutput`.

    With further arguments, call it at once. Effects of the call happen, as in an eager one.
    """
    function: Any = getattr(f, "_orig_mod", None) or getattr(f, "function", f)

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        try:
            environment = environment_of([(function, getattr(function, "__name__", type(function).__name__))])
        except Unguarded as error:
            return _output([], [Break(f"it depends on {error}", "")], [], 0.0)
        recorder = Recorder(False, [*environment.tensors.values(), *leaves])
        start = time.perf_counter()
        with tracing(recorder):
            for leaf in leaves:
                recorder.value_of(leaf._fresh())
            function(*args, **kwargs)
        seconds = time.perf_counter() - start
        guards = [where for _, where in environment.reasons]
        return _output(recorder.nodes, recorder.breaks, guards, seconds)

    return inner(*args, **kwargs) if args or kwargs else inner


def _output(nodes: list[Node], breaks: list[Break], guards: list[str], seconds: float) -> ExplainOutput:
    edges = [0, *sorted(found.nodes for found in breaks), len(nodes)]
    parts = [part for a, b in itertools.pairwise(edges) if (part := nodes[a:b])]
    graphs = [
        _graph(part, {v for later in parts[i + 1 :] for n in later for v in n.operands}) for i, part in enumerate(parts)
    ]
    names = [[node.name for node in part if not node.is_view] for part in parts]
    return ExplainOutput(
        graphs, len(graphs), len(breaks), breaks, sum(map(len, names)), names, guards, f"{seconds:.4f} s"
    )


def _graph(nodes: list[Node], later: set[Any]) -> Graph:
    """Return a graph of some nodes: its outputs are the values that later ones, or none of them, use."""
    made = [value for node in nodes for value in node.results]
    used = dict.fromkeys(value for node in nodes for value in node.operands)
    outputs = [value for value in made if value in later or value not in used]
    return Graph([value for value in used if value not in set(made)], nodes, outputs)


__all__ = ["ExplainOutput", "explain"]
