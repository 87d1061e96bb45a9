"""Passes that replace calls in the form of a pattern, for ``compile(options={"passes": [...]})``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any, NamedTuple
from candelabra._compile.graph_modules import call_graph, zeros_for
from candelabra._compile.observing import counters
from candelabra._dispatch.tracing import untraced
from candelabra._graph.passes import simplified
from candelabra._graph.structure import Spec
from candelabra._graph.tracing import trace
from candelabra._keys import LAYER_MASK, NO_GRAD, mode
from candelabra._tensor import Tensor
from candelabra.fx.graph import Graph
from candelabra.fx.node import Node
from candelabra.fx.patterns import Match, matches, splice


class Replacement(NamedTuple):
    """A pattern and what replaces it: functions of tensors that return one tensor."""

    pattern: Callable[..., Any]
    replacement: Callable[..., Any]
    graph: Graph
    """The pattern's graph for the examples. Shapes and numbers differ elsewhere."""
    accepts: Callable[[Match], bool]


class PatternPass:
    """A pass over the graphs of compiled functions: ``register`` adds patterns, and a call replaces them.

    A pattern and its replacement are traced without gradients, for the shapes at each place where the pattern occurs.
    So a pattern matches operators whatever the shapes are, and numbers only if they are those of the pattern.
    """

    def __init__(self, pass_name: str | None = None) -> None:
        self.pass_name = pass_name or "patterns"
        self.replacements: list[Replacement] = []

    def register(
        self,
        pattern: Callable[..., Any],
        replacement: Callable[..., Any],
        example_inputs: Sequence[Tensor],
        accepts: Callable[[Match], bool] = lambda match: True,
    ) -> None:
        """Replace ``pattern(*tensors)`` by ``replacement(*tensors)`` where ``accepts(match)`` is true.

        ``example_inputs``: tensors with which the pattern can be called. Raises ``ValueError`` if a function returns
        more than one tensor or refers to tensors besides its arguments.
        """
        graph = _traced(pattern, list(example_inputs))
        self.replacements.append(Replacement(pattern, replacement, graph, accepts))

    def __call__(self, graph: Graph) -> int:
        return self.apply(graph)

    def apply(self, graph: Graph) -> int:
        """Replace all patterns in a graph that ``compile`` passes to its passes. Return the number of places."""
        count = 0
        for each in self.replacements:
            for match in matches(graph, each.graph, same=_anything):
                count += self._replaced(graph, match, each)
        counters["inductor"]["pattern_matcher_count"] += count
        return count

    @staticmethod
    def _replaced(graph: Graph, match: Match, each: Replacement) -> bool:
        """Replace one place, if the pattern with its shapes is the same graph, with the same numbers."""
        given = [match.nodes_map.get(node) for node in each.graph.nodes if node.op == "placeholder"]
        specs = [node.meta.get("spec") if isinstance(node, Node) else None for node in given]
        if any(spec is None for spec in specs):
            return False
        examples = [zeros_for(spec) for spec in specs]
        exact = _traced(each.pattern, examples)
        here = [other for other in matches(graph, exact) if other.anchor is match.anchor]
        if not here or not each.accepts(here[0]):
            return False
        _spliced(graph, here[0], exact, _traced(each.replacement, examples), match.anchor.meta["spec"])
        return True


def _anything(a: Any, b: Any) -> bool:
    """Return whether two plain arguments may stand for each other with other shapes."""
    return type(a) is type(b) or (isinstance(a, (int, float)) and isinstance(b, (int, float)))


def _spliced(graph: Graph, match: Match, pattern: Graph, replacement: Graph, spec: Spec) -> None:
    returned = replacement.output_node().args[0][0].meta["spec"]
    if (returned.shape, returned.dtype) != (spec.shape, spec.dtype):
        raise ValueError(f"PatternPass: the replacement returns {returned}, expected {spec} as the pattern")
    splice(graph, match, pattern, replacement)


def _traced(function: Callable[..., Any], examples: list[Any]) -> Graph:
    with untraced(), mode(include=NO_GRAD, exclude=LAYER_MASK):
        traced = simplified(trace(function, *examples))
    name = getattr(function, "__name__", "the function")
    if len(traced.outputs) != 1:
        raise ValueError(f"PatternPass: {name} returns {len(traced.outputs)} tensors, expected one")
    if len(traced.inputs) != len(examples):
        raise ValueError(
            f"PatternPass: {name} takes {len(examples)} different tensors and uses {len(traced.inputs)}; pass all "
            "tensors that it refers to as arguments, and none twice"
        )
    return call_graph(traced)


__all__ = ["PatternPass", "Replacement"]
