"""Faults of a device's compiler: its graphs compute something else than the operators that were traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from candelabra.backend import contiguous_strides
from candelabra.graph import FUNCTION, Graph, Node, Value, runner

from candelabra_conformance.mutants.mirror import Image, Mirror, first_image
from candelabra_conformance.mutants.mutant import array_of, breaks_backend, payload_of

Run = Callable[..., tuple[Any, ...]]
"""A function of the payloads of a graph's inputs, which returns those of its outputs."""


class _Compiling(Mirror):
    """A correct device that compiles graphs by a pass over them and by a change of the function that runs them."""

    def changed(self, graph: Graph) -> Graph:
        """Return the graph that runs in place of another one."""
        return graph

    def running(self, graph: Graph, run: Run) -> Run:
        """Return the function that runs in place of the correct one."""
        return run

    def compile(self, graph: Graph) -> Run:
        """Return the function of the changed graph."""
        return self.running(graph, runner(self.changed(graph)))


def _computing(graph: Graph) -> list[Node]:
    """Return the nodes that compute new values."""
    return [node for node in graph.nodes if node.form == FUNCTION and not node.is_view]


def _without(graph: Graph, node: Node, value: Value) -> Graph:
    """Return the graph without a node of one result, which another value replaces."""
    replaced = {node.results[0]: value}
    nodes = [each.replaced(replaced) for each in graph.nodes if each is not node]
    return graph.with_nodes(nodes, [replaced.get(output, output) for output in graph.outputs])


@breaks_backend("exp", "softmax", caught_by="exp/compiled/* softmax/compiled/*")
class CompiledGraphsLoseTheirLastNode(_Compiling):
    """A compiled graph takes the operand of its last node for the node's result, if their shapes are equal."""

    def changed(self, graph: Graph) -> Graph:
        for node in reversed(_computing(graph)):
            alike = [v for v in node.operands if v.spec is not None and v.spec.shape == node.results[0].spec.shape]  # type: ignore[union-attr]
            if alike and len(node.results) == 1:
                return _without(graph, node, alike[0])
        return graph


@breaks_backend("sub", "maximum", caught_by="sub/compiled/*")
class CompiledOperandsAreSorted(_Compiling):
    """A compiler that looks for equal calls sorts the operands of every operator, also where their order matters."""

    def changed(self, graph: Graph) -> Graph:
        nodes = [
            Node(n.op, (n.args[1], n.args[0], *n.args[2:]), n.results, n.form) if _binary(n) else n for n in graph.nodes
        ]
        return graph.with_nodes(nodes)


def _binary(node: Node) -> bool:
    return node.form == FUNCTION and len(node.operands) == 2 == sum(isinstance(each, Value) for each in node.args[:2])


@breaks_backend("exp", "sum", caught_by="exp/compiled/* sum/compiled/*")
class CompiledGraphsRunOnce(_Compiling):
    """A compiled graph returns the results of its first run from then on, in the same memory."""

    def running(self, graph: Graph, run: Run) -> Run:
        first: list[Any] = []

        def kept(*payloads: Any) -> Any:
            if not first:
                first.append(run(*payloads))
            return first[0]

        return kept


@breaks_backend("exp", "matmul", caught_by="exp/compiled/* matmul/compiled/*")
class CompiledResultsShareABuffer(_Compiling):
    """Every run of a compiled graph writes its results into the memory that the first run has allocated."""

    def running(self, graph: Graph, run: Run) -> Run:
        buffers: list[Any] = []

        def reusing(*payloads: Any) -> Any:
            made = run(*payloads)
            if not buffers:
                buffers.extend(made)
            return tuple(self.copy_(buffer, out) for buffer, out in zip(buffers, made, strict=True))

        return reusing


@breaks_backend("exp", caught_by="exp/compiled/*")
class CompiledGraphsOverwriteTheirInputs(_Compiling):
    """A compiled graph takes the memory of an input for a result of its shape and dtype, as if it were the last use."""

    def running(self, graph: Graph, run: Run) -> Run:
        def planned(*payloads: Any) -> Any:
            made = run(*payloads)
            held = first_image(payloads)
            if held is not None and held.shape == made[0].shape and self.dtype_of(held) is self.dtype_of(made[0]):
                self.copy_(held, made[0])
            return made

        return planned


@breaks_backend("exp", "sum", caught_by="exp/compiled/* sum/compiled/*")
class CompiledGraphsIgnoreStrides(_Compiling):
    """A compiled graph reads the memory of every input from its first element on, whatever the strides are."""

    def running(self, graph: Graph, run: Run) -> Run:
        def in_order(payload: Any) -> Any:
            if not isinstance(payload, Image):
                return payload
            offset = self.layout(payload)[1]
            try:
                return self.restride(payload, payload.shape, contiguous_strides(payload.shape), offset)
            except ValueError:  # beyond the end of the memory, where a mutant must not read
                return payload

        return lambda *payloads: run(*map(in_order, payloads))


@breaks_backend("atan2", "logaddexp", caught_by="*/compiled-gradient/* */compiled-backward/*")
class CompiledValuesDieAtTheirFirstUse(_Compiling):
    """A compiled graph takes the memory of a value for the first result computed from it, also if it is read again."""

    def changed(self, graph: Graph) -> Graph:
        if any(node.written for node in graph.nodes):
            return graph
        own = {value for node in _computing(graph) for value in node.results}.difference(graph.outputs)
        overwritten: dict[Value, Value] = {}
        nodes = []
        for node in graph.nodes:
            nodes.append(node.replaced(overwritten))
            for value in node.operands if node.form == FUNCTION and not node.is_view else ():
                if value in own and value.spec == node.results[0].spec:
                    overwritten.setdefault(value, node.results[0])
        return graph.with_nodes(nodes)


@breaks_backend(caught_by="device/compiled-gradient/*")
class CompiledCallsShareWhatTheySave(_Compiling):
    """Every run of a compiled graph keeps what it saves for the backward pass in the memory of the first run."""

    def running(self, graph: Graph, run: Run) -> Run:
        again = graph.users()
        places = [i for i, v in enumerate(graph.outputs) if v in again and v not in graph.inputs]
        first: dict[int, Any] = {}

        def planned(*payloads: Any) -> Any:
            made = list(run(*payloads))
            for place in places:
                made[place] = self.copy_(first[place], made[place]) if place in first else made[place]
                first.setdefault(place, made[place])
            return tuple(made)

        return planned


@breaks_backend("exp", "add", caught_by="exp/compiled-inplace/* add/compiled-inplace/*")
class CompiledWritesAreNotWrittenBack(_Compiling):
    """A compiled graph writes in place into copies of its inputs, and does not write these back."""

    def running(self, graph: Graph, run: Run) -> Run:
        def of_copies(*payloads: Any) -> Any:
            return run(*[payload_of(self, array_of(self, p), p.index) if isinstance(p, Image) else p for p in payloads])

        return of_copies


@breaks_backend("rand", "bernoulli_number", caught_by="rand/compiled-draws/* bernoulli_number/compiled-draws/*")
class CompiledDrawsAreFolded(_Compiling):
    """A compiled graph takes the numbers that a draw starts from for constants: every run draws those of the first."""

    def running(self, graph: Graph, run: Run) -> Run:
        first: list[Any] = []

        def folded(*payloads: Any) -> Any:
            first[:] = first or payloads
            return run(*[p if isinstance(p, Image) else number for p, number in zip(payloads, first, strict=True)])

        return folded


@breaks_backend("softmax", "sum", "cumsum", caught_by="softmax/compiled/* sum/compiled/* cumsum/compiled/*")
class CompiledGraphsReduceTheLastDim(_Compiling):
    """A compiler replaces every dim that is an option of an operator by the last one."""

    def changed(self, graph: Graph) -> Graph:
        return graph.with_nodes([Node(n.op, _last_dim(n), n.results, n.form) for n in graph.nodes])


def _last_dim(node: Node) -> Sequence[Any]:
    if isinstance(node.op, Graph):
        return node.args
    names = [p.name for p in node.op.schema.parameters]
    return [
        (type(a)([-1]) if isinstance(a, (list, tuple)) else -1) if name == "dim" and a is not None else a
        for name, a in zip(names, node.args, strict=True)
    ]
