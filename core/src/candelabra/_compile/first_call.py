"""The first call of a kind: it is traced, and becomes a program that serves later calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.node import RELEASED
from candelabra._compile.compiled_node import CompiledNode, Repetition
from candelabra._compile.containers import Containers, flattened, is_constant, refill
from candelabra._compile.differentiation import (
    Derivative,
    freed,
    has_hooks,
    leads_to,
    trace_backward,
    without_hooks,
)
from candelabra._compile.environment import Environment
from candelabra._compile.program import Writer, written_outside
from candelabra._compile.recording import GradientSet, Recorder, graphs_of
from candelabra._compile.results import Alias, New, PartOfOutside, Result, ViewOfResult, hidden_results, results_of
from candelabra._dispatch import autocasting
from candelabra._graph.structure import Graph, Memory, Value
from candelabra._graph.tracing import GraphBreak, tracing
from candelabra._keys import AUTOGRAD, TRACING, state, switch
from candelabra._tensor import Tensor
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from candelabra._compile.calling import CompiledFunction


class Program:
    """What serves one kind of call. ``function`` is generated; ``graphs`` are for those who read them."""

    def __init__(
        self, function: Callable[..., Any], spec: TreeSpec | None, environment: Environment, arguments: list[str]
    ) -> None:
        self.function = function
        self.spec = spec
        """The structure of the arguments, or None if they are leaves, by position."""
        self.environment = environment
        self.kind: tuple[list[str], list[Any]] = [], []
        """What it serves: the guards and the objects that they name."""
        self.arguments = arguments
        """The kind of each argument, in the user's terms."""
        self.graphs: list[Graph] = []
        self.runs: list[Callable[..., Any]] = []
        """For each graph the function of the device's compiler."""
        self.derivative: Derivative | None = None
        self.takes_containers = False
        """Whether the function takes the containers among the arguments after the leaves."""
        self.repeatable = False
        """Whether a call that fails has changed nothing, so that the eager function can raise the error."""


def kinds_of(leaves: Sequence[Any]) -> list[str]:
    """Return the kind of each argument as text: dtype and shape of a tensor, the value of a number."""
    return [f"argument {i}: {_kind(leaf)}" for i, leaf in enumerate(leaves)]


def _kind(leaf: Any) -> str:
    if isinstance(leaf, Tensor):
        grad = ", requires grad" if leaf._keys & AUTOGRAD else ""
        return f"{leaf.dtype}, shape {tuple(leaf.shape)}, {leaf.device}{grad}"
    return repr(leaf) if is_constant(leaf) else f"an object of {type(leaf).__name__}"


class TracedCall:
    """One traced call of a compiled function, and the program that repeats it."""

    def __init__(
        self,
        owner: CompiledFunction,
        environment: Environment,
        leaves: list[Any],
        spec: TreeSpec,
        containers: Containers,
    ) -> None:
        self.owner, self.environment, self.leaves, self.spec = owner, environment, leaves, spec
        self.containers = containers
        self.changed: list[int] = []
        """The positions of the containers among the arguments that the function changes."""
        tensors = [*environment.tensors.values(), *(leaf for leaf in leaves if isinstance(leaf, Tensor))]
        self.recorder = Recorder(owner.fullgraph, tensors, environment)
        self.program: Program | None = None
        self.difference: str | None = None
        """A dependency that the call has changed, in the user's terms."""
        self.bits = state.bits
        self.values: list[Value | None] = []
        self.varying: set[Value] = set()
        """The tensors from outside that differ from call to call."""
        self.written: set[Memory] = set()
        """The memory from outside that a node writes."""
        self.takes_containers = False
        self.derivative: Derivative | None = None
        self.graded: list[int] = []
        """The positions of the results that the backward pass starts from."""
        self.freed: list[int] = []
        """The positions of those whose graph is freed, since the function has run their backward pass."""

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, and build the program unless the trace breaks."""
        recorder, settings = self.recorder, autocasting.settings
        if settings.cached:  # casts from before the call would be constants of the graph
            settings.cached = {}
        drawn = self.environment.states_of_generators()
        bits = self.bits
        self.containers.remember()
        try:
            with tracing(recorder):
                self.values = [
                    recorder.value_of(leaf._fresh()) if isinstance(leaf, Tensor) else None for leaf in self.leaves
                ]
                try:
                    out = self.owner.function(*args, **kwargs)
                finally:
                    bits = state.bits & ~TRACING
                if bits != self.bits:
                    recorder.note_break("the function changes the grad mode, or another mode, for the code after it")
                generators = self.environment.states_of_generators()
                if any(generators.get(key) != earlier for key, earlier in drawn.items()):
                    recorder.note_break("the function draws random numbers from a generator of Python or NumPy")
                found, shape, results = self._results(out)
                if recorder.breaks:
                    return out
            for where, holds in recorder.guards.items():
                self.environment.require(holds, where)
            for holds, where in recorder.dependencies:
                self.environment.require(holds, where)
            self.difference = self.environment.failure()
            # A generator that the call has imported may have drawn: the next call is traced again.
            if self.difference is None and generators.keys() == drawn.keys():
                self.program = self._program(found, shape, results)
        finally:
            if state.bits != bits:
                switch(bits)
        return out

    def _results(self, out: Any) -> tuple[list[Any], TreeSpec, list[Result]]:
        """Return the leaves and the structure of a result, and how to make its tensors.

        Containers that the function refers to are leaves: every call returns them. So are those among the arguments.
        If the function has changed some of these, their contents follow the result.
        """
        recorder, reaches = self.recorder, self._reaches
        changes = self.containers.changes()
        self.changed = list(changes)
        found, shape = flattened((out, *changes.values()) if changes else out, reaches)
        recorder.end_segment()
        given = {id(leaf) for leaf in self.leaves}
        for leaf in found:
            if not (isinstance(leaf, Tensor) or reaches(leaf) or id(leaf) in given or is_constant(leaf)):
                recorder.note_break(f"the function returns a {type(leaf).__name__}, which each call creates anew")
        if recorder.breaks:
            return found, shape, []
        tensors = [leaf for leaf in found if isinstance(leaf, Tensor)]
        for tensor in tensors:
            tensor._fresh()
        tensors += hidden_results(tensors, recorder)
        results = results_of(tensors, recorder)
        positions = [i for i, r in enumerate(results) if isinstance(r, New) and r.differentiable]
        if positions and not recorder.breaks:
            self._differentiate(tensors, positions)
        return found, shape, results

    def _reaches(self, value: Any) -> bool:
        """Return whether an object is one that the function refers to, or a container among the arguments."""
        return self.environment.reaches(value) or self.containers.position(value) >= 0

    def _differentiate(self, tensors: Sequence[Tensor], positions: list[int]) -> None:
        """Trace the backward pass of the results at some positions."""
        recorder = self.recorder
        inputs = [t for v, t in recorder.external.items() if t._keys & AUTOGRAD and v not in recorder.gradient_of]
        inputs = list({id(t): t for t in inputs}.values())
        with without_hooks(inputs):
            try:
                self._trace_backward(tensors, positions, inputs)
            except GraphBreak:
                raise
            except Exception as error:  # of a derivative, which the function's caller may never ask for
                recorder.note_break(f"the backward pass raises {type(error).__name__}: {error}")

    def _trace_backward(self, tensors: Sequence[Tensor], positions: list[int], inputs: list[Tensor]) -> None:
        recorder = self.recorder
        if has_hooks([tensors[i] for i in positions], inputs):
            recorder.note_break("a hook runs in the backward pass")
            return
        recorder.rehearses = True
        leaves = [leaf for node in recorder.made_leaves if (leaf := node.owner()) is not None]
        spent = freed(recorder, [tensors[i] for i in positions], [*inputs, *leaves])
        self.freed = [i for i, is_freed in zip(positions, spent, strict=True) if is_freed]
        self.graded = [i for i in positions if i not in self.freed]
        if not self.graded:
            return
        if len(recorder.segments) > 1:
            recorder.note_break("the function returns tensors that require grad after a call outside of the graph")
            return
        made = {tensor._node for tensor in tensors if tensor._node in recorder.made_leaves}
        if made and leads_to((tensors[i] for i in self.graded), made):
            recorder.note_break("the function returns a leaf that it creates, and a tensor that depends on it")
            return
        compiler = self.owner.compiler
        self.derivative = trace_backward(recorder, [tensors[i] for i in self.graded], inputs, compiler)
        if self.derivative is None and not recorder.breaks:
            recorder.note_break("the backward pass draws random numbers")

    # -- the program --------------------------------------------------------------------------------------------------
    def _program(self, leaves: list[Any], shape: TreeSpec, results: list[Result]) -> Program:
        recorder, derivative = self.recorder, self.derivative
        outer = recorder.outer
        writer = Writer(recorder, self.environment, self.bits)
        for position, (leaf, value) in enumerate(zip(self.leaves, self.values, strict=True)):
            writer.argument(position, leaf, value)
        kept = [r.value for r in results if isinstance(r, (New, PartOfOutside))] + (
            list(derivative.saved) if derivative else []
        )
        writer.outer_graphs()
        self.varying = {*(v for v in self.values if v is not None), *recorder.gradient_of, *outer.values}
        self.varying |= {v for v, tensor in recorder.external.items() if id(tensor) in writer.changing}
        graphs = graphs_of(recorder.segments, kept, recorder.external, self.varying)
        used = self._captured(results, graphs)
        for value in used:
            tensor, leaf = recorder.external[value], recorder.gradient_of.get(value)
            is_saved = value in outer.values
            if value not in writer.tensors and not (is_saved and leaf is None and not writer.is_named(tensor)):
                writer.captured(value, tensor, leaf)
            if is_saved:
                writer.saved(value)
        outside = written_outside(recorder)
        self.written = {value.memory for value in outside}
        written = [v for v in outside if v in writer.tensors]
        if written:
            rest = [v for v in writer.tensors if v not in written]
            writer.separate(written, rest)
        sets_gradients = any(isinstance(e, GradientSet) for s in recorder.segments for e in s.effects)
        guarded = set(recorder.leaves)
        if not (sets_gradients or recorder.gradient_of or recorder.dependencies):
            guarded &= recorder.observed["grad"]
        if guarded:
            writer.gradients([
                (leaf, recorder.had_gradient[key]) for key, leaf in recorder.leaves.items() if key in guarded
            ])  # fmt: skip
        writer.hooks()
        made = [self.owner.compiler(graph, recorder.external, self._is_fixed) for graph in graphs]
        simple, runs = [graph for graph, _ in made], [run for _, run in made]
        has_effects = any(node.is_ordered for node in recorder.nodes)
        repeatable = not (written or recorder.draws or has_effects or outer.graphs) and len(graphs) == 1
        writer.release_outer_graphs()
        for segment, graph, short, run in zip(recorder.segments, graphs, simple, runs, strict=True):
            writer.segment(segment, short, run, graph.outputs, repeatable)
        for position, result in enumerate(results):
            if not isinstance(result, ViewOfResult):
                writer.result(position, result)
        if derivative is not None:
            self._attach(writer, derivative)
        for position in self.freed:
            writer.lines.append(f"{writer.bound(CompiledNode)}(None, {writer.bound(RELEASED)}).give((x{position},))")
        for position, result in enumerate(results):
            if isinstance(result, ViewOfResult):  # of a tensor that has its node now
                writer.result(position, result)
            elif isinstance(result, (Alias, New, PartOfOutside)) and result.leaf is not None:
                writer.leaf(position, result.leaf)
        plain = self.spec == tree_flatten((tuple(self.leaves), {}))[1]
        returned = self._returned(writer, leaves, shape)
        function = writer.function(len(self.leaves), returned, self.takes_containers)
        program = Program(function, None if plain else self.spec, self.environment, kinds_of(self.leaves))
        program.graphs, program.runs, program.derivative = simple, runs, self.derivative
        program.repeatable, program.kind = repeatable, writer.kind()
        program.takes_containers = self.takes_containers
        return program

    def _is_fixed(self, value: Value) -> bool:
        """Return whether a value is a tensor from outside that mostly is the same in the next call: one that the
        program neither writes nor computes a gradient of.
        """
        recorder = self.recorder
        tensor = recorder.external.get(value)
        if tensor is None or value in self.varying or value.memory in self.written:
            return False
        return not (tensor._keys & AUTOGRAD and (recorder.has_backward or self.derivative is not None))

    def _captured(self, results: list[Result], graphs: Sequence[Any]) -> list[Value]:
        """Return the tensors from outside that the program reads first: those of graphs, results and derivatives."""
        recorder = self.recorder
        first = graphs[0].inputs if graphs else ()
        wanted = [*first]
        for result in results:
            if not isinstance(result, (New, ViewOfResult)):
                wanted.append(result.source if isinstance(result, PartOfOutside) else result.value)
        if self.derivative is not None:
            wanted += [*self.derivative.saved, *self.derivative.inputs]
        return [v for v in dict.fromkeys(wanted) if v in recorder.external]

    def _attach(self, writer: Writer, derivative: Derivative) -> None:
        """Write the lines that give the results the node of the call."""
        saved = "".join(f"{writer.names[v]}, " for v in derivative.saved)
        inputs = "".join(f"{writer.tensors[v]}, " for v in derivative.inputs)
        checked = [v for v in derivative.saved if v in writer.tensors]
        guarded = "".join(f"{writer.tensors[v]}, " for v in checked)
        checks = [frozenset(k for k, v in enumerate(checked) if v in needed) for needed in derivative.needs]
        derivative = self.derivative = derivative._replace(checks=tuple(checks))
        graded = "".join(f"x{i}, " for i in self.graded)
        leaves = "".join(f"a{i}, " for i in range(len(self.leaves)))
        node, bound = writer.bound(CompiledNode), f"{writer.bound(derivative)}, ({saved}), ({inputs}), ({guarded})"
        repetition = writer.bound(self._repetition())
        writer.lines.append(f"{node}({bound}, {repetition}, ({leaves})).give(({graded}))")

    def _repetition(self) -> Repetition:
        """Return how the backward pass of the call can repeat it."""
        recorder, refused = self.recorder, None
        if written_outside(recorder):
            refused = "writes a tensor from outside"
        elif recorder.draws:
            refused = "draws random numbers"
        elif self.bits:
            refused = "was called under autocast or another mode"
        positions = tuple(self.graded)
        return Repetition(self.owner.function, self.spec, self.environment, positions, refused)

    def _returned(self, writer: Writer, leaves: list[Any], shape: TreeSpec) -> str:
        """Return the expression of the result, and write the lines that change containers among the arguments."""
        returned = self._tree(writer, leaves, shape)
        if self.changed:
            writer.lines.append(f"_r = {returned}")
            for i, position in enumerate(self.changed, 1):
                writer.lines.append(f"{writer.bound(refill)}({writer.container(position)}, _r[{i}])")
            returned = "_r[0]"
        for position, container in enumerate(self.containers.found):
            if self.environment.reaches(container):  # the function refers to it, too
                writer.guards.append(f"if {writer.container(position)} is not {writer.bound(container)}: return MISS")
        self.takes_containers = writer.takes_containers
        if self.takes_containers:
            aliases = writer.bound(self.containers.aliases())
            writer.guards.append(f"if containers.aliases() != {aliases}: return MISS")
        return returned

    def _tree(self, writer: Writer, leaves: list[Any], shape: TreeSpec) -> str:
        """Return the expression of a tree of tensors, containers among the arguments, and constants."""
        names, count = [], 0
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                names.append(f"x{count}")
                count += 1
            elif not self.environment.reaches(leaf) and (position := self.containers.position(leaf)) >= 0:
                names.append(writer.container(position))
            else:
                names.append(writer.bound(leaf))
        if shape.is_leaf():
            return names[0]
        if shape.type is tuple and all(child.is_leaf() for child in shape.children_specs):
            return f"({', '.join(names)},)" if names else "()"
        return f"{writer.bound(tree_unflatten)}([{', '.join(names)}], {writer.bound(shape)})"


__all__ = ["Program", "TracedCall", "kinds_of"]
