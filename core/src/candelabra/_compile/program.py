"""The generated function of one compiled call: guards, graphs, effects, results.

It takes the leaves of the arguments by position and returns :data:`MISS` if a guard fails, so that a call whose guards
hold has one Python frame above its kernels. Text is generated here and nowhere else in this package, except the guards
of the environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import MappingProxyType, MethodType

from candelabra._annotations import Any, Final
from candelabra._codegen.source import build_once, indent
from candelabra._compile.environment import FAILURES, SCALARS, Environment, differs
from candelabra._compile.outer_graphs import has_hooks
from candelabra._compile.recording import Advanced, Effect, GradientSet, Recorder, Replaced, Segment
from candelabra._compile.results import Alias, New, PartOfOutside, Result, Same, Viewed, ViewOfResult, replay
from candelabra._device import _default as default_device
from candelabra._device import _process_default as process_default
from candelabra._dispatch.autocasting import settings as autocast
from candelabra._graph.packing import PackedOnce
from candelabra._graph.structure import Graph, Node, Value
from candelabra._graph.tracing import spec_of
from candelabra._keys import AUTOGRAD, LAYER_MASK, VIEW, active, state
from candelabra._tensor import Tensor, new

MISS: Final = object()
"""What a compiled call returns if a guard fails."""

BOUND: Final = re.compile(r"\b[go]\d+\b")
"""The names of objects in the text of guards."""


class Writer:
    """The lines of the function, and the objects that they name."""

    def __init__(self, recorder: Recorder, environment: Environment, bits: int) -> None:
        self.recorder = recorder
        self.scope: dict[str, Any] = {
            **environment.scope, "MISS": MISS, "FAILURES": FAILURES, "differs": differs, "Tensor": Tensor, "new": new,
            "spec_of": spec_of, "replay": replay, "state": state, "active": active,
        }  # fmt: skip
        self.guards: list[str] = self._mode_guard(bits)
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        """The local variables of payloads and numbers."""
        self.tensors: dict[Value, str] = {}
        """The expressions of the tensors from outside."""
        self.environment = environment
        self.takes_containers = False
        self.expressions: dict[int, str] = {}
        """The expressions of tensors by identity: arguments, those that each call reads again, leaves of graphs."""
        self.changing: dict[int, Tensor] = {}
        """The tensors that differ from call to call and are no arguments."""
        for read, tensor in environment.inputs.values():
            name = self._read(tensor, read)
            self.guards.append(f"if {name}.__class__ is not {self.bound(type(tensor))}: return MISS")
            if tensor._node is not None and recorder.has_backward:
                self.guards.append(f"if {name}._node is None or {name}._node.kind != {tensor._node.kind}: return MISS")

    def _read(self, tensor: Tensor, read: str) -> str:
        """Write the line that reads a tensor, which differs from call to call, and return its name."""
        name = self.expressions[id(tensor)] = f"i{len(self.expressions)}"
        self.changing[id(tensor)] = tensor
        self.guards.append(f"{name} = {read}")
        return name

    def bound(self, value: Any, letter: str = "o") -> str:
        """Return the name of an object."""
        name = f"{letter}{len(self.scope)}"
        self.scope[name] = value
        return name

    def _mode_guard(self, bits: int) -> list[str]:
        guards = [f"if state.bits != {bits}: return MISS"] if bits else ["if active and state.bits: return MISS"]
        if bits & LAYER_MASK:
            self.scope["autocast"] = autocast
            guards.append(f"if autocast.enabled != {self.bound(autocast.enabled)}: return MISS")
        if any(not node.operands for node in self.recorder.nodes):  # a factory may depend on the default device
            self.scope |= {"default": default_device, "process_default": process_default}
            for now in ("default.device", "default.current", "process_default[0]"):
                then = self.bound(eval(now, self.scope))
                guards.append(f"if {now} is not {then} and {now} != {then}: return MISS")
        return guards

    # -- guards -------------------------------------------------------------------------------------------------------
    def argument(self, position: int, leaf: Any, value: Value | None) -> None:
        """Guard a leaf of the arguments: a tensor by its spec, a number by its value, another object by identity."""
        name = f"a{position}"
        if value is not None:
            same = self.expressions.get(id(leaf))
            if same is None and id(leaf) in self.environment.tensors:
                same = self.bound(leaf)
            if same is not None:  # the function refers to it, too, or it is an argument twice
                self.guards.append(f"if {name} is not {same}: return MISS")
            if value in self.tensors and same is not None:
                return
            self.expressions.setdefault(id(leaf), name)
            self.guards.append(f"if {name}.__class__ is not {self.bound(type(leaf))}: return MISS")
            first = self.names.get(value)
            self.tensors.setdefault(value, name)
            self._tensor_guard(value, name, leaf)
            if first is not None:  # two tensors over one payload
                self.guards.append(f"if {self.names[value]} is not {first}: return MISS")
                self.names[value] = first
            if leaf._keys & AUTOGRAD and (self.recorder.has_backward or id(leaf) in self.recorder.observed["is_leaf"]):
                self.guards.append(f"if {name}._node.kind != {leaf._node.kind}: return MISS")
        elif isinstance(leaf, SCALARS):
            known = self.bound(leaf)
            self.guards.append(f"if {name} is not {known} and differs({name}, {known}): return MISS")
        else:
            self.guards.append(f"if {name} is not {self.bound(leaf)}: return MISS")

    def captured(self, value: Value, tensor: Tensor, gradient_of: Tensor | None) -> None:
        """Guard a captured tensor, or the gradient of a tensor, and read its payload."""
        if gradient_of is not None:
            name = f"t{len(self.tensors)}"
            self.guards.append(f"{name} = {self._outside(gradient_of)}._grad")
        else:
            name = self.expressions.get(id(tensor)) or self.bound(tensor)
        self.tensors[value] = name
        self._tensor_guard(value, name, tensor)

    def outer_graphs(self) -> None:
        """Guard the structure of the graphs from before the call, and read their leaves."""
        self.graphs: list[tuple[str, str]] = []
        """For each of them the names of what compares it, and of the structure in the call."""
        outer, known = self.recorder.outer, dict(self.expressions)
        for graph in outer.graphs:
            match, found = self.bound(graph.match()), f"w{len(self.graphs)}"
            self.graphs.append((match, found))
            roots = ", ".join(self._outside(root) for root in graph.roots)
            self.guards += [f"{found} = {match}({roots})", f"if {found} is None: return MISS"]
        anonymous: list[str] = []
        for number, position, leaf in outer.leaves():
            read = f"{self.graphs[number][1]}.leaves[{position}]"
            if self.is_named(leaf):
                self.guards.append(f"if {read} is not {self._outside(leaf)}: return MISS")
            else:
                anonymous.append(self._read(leaf, read))
        others = [name for key, name in known.items() if key in self.recorder.leaves]
        others += [self._outside(leaf) for key, leaf in self.recorder.leaves.items() if key not in self.expressions]
        if anonymous and others:
            left, right = (", ".join(f"id({name})" for name in names) for names in (anonymous, others))
            self.guards.append(f"if not {{{left}}}.isdisjoint(({right},)): return MISS")

    def saved(self, value: Value) -> None:
        """Read what a node from before the call has saved, or guard that it is a tensor that is known otherwise."""
        graph, position = self.recorder.outer.values[value]
        read = f"{self.graphs[graph][1]}.payloads[{position}]"
        if value in self.names:
            self.guards.append(f"if {read} is not {self.names[value]}: return MISS")
        else:
            self.names[value] = f"p{len(self.names)}"
            self.guards.append(f"{self.names[value]} = {read}")

    def release_outer_graphs(self) -> None:
        """Write the lines that release the nodes whose backward pass the function runs for the last time."""
        self.lines += [f"{match}.release({found})" for match, found in self.graphs]

    def _tensor_guard(self, value: Value, name: str, tensor: Tensor) -> None:
        spec, payload = value.spec, f"p{len(self.names)}"
        assert spec is not None
        self.names[value] = payload
        keys = tensor._keys
        self.guards.append(f"if {name}._keys != {keys}: return MISS")
        fresh = f"{name}._fresh()" if keys & VIEW else name
        self.guards.append(f"{payload} = {fresh}._payload")
        known = self.bound(spec)
        instance = self.bound(spec.instance)
        if name in self.scope and not spec.instance.immutable:
            # A captured tensor: as long as it has the same payload, its spec is the same.
            seen = self.bound(tensor._payload)
            self.guards.append(f"if {payload} is not {seen} and spec_of({payload}, {instance}) != {known}: return MISS")
            return
        self.guards.append(f"if {payload}.shape != {self.bound(spec.shape)}: return MISS")
        if spec.instance.capabilities.strided:
            layout = self.bound(spec.instance.backend.layout)
            expected = self.bound((spec.strides, spec.offset))
            self.guards.append(f"if {layout}({payload}) != {expected}: return MISS")

    def separate(self, written: Sequence[Value], others: Sequence[Value]) -> None:
        """Guard that tensors whose memory is written share it with none of the others."""
        targets = {value.memory: f"{self.tensors[value]}._counter" for value in written}
        rest = {value.memory: f"{self.tensors[value]}._counter" for value in others if value.memory not in targets}
        for value, (graph, position) in self.recorder.outer.values.items():
            if value.memory not in targets and value.memory not in rest:
                rest[value.memory] = f"{self.graphs[graph][1]}.cells[{position}]"
        if len(targets) + len(rest) < 2:
            return
        cells, seen = (", ".join(f"id({cell})" for cell in each.values()) for each in (targets, rest))
        self.guards.append(f"_w = {{{cells}}}")
        self.guards.append(
            f"if len(_w) != {len(targets)} or not _w.isdisjoint(({seen},)): return MISS"
            if rest
            else f"if len(_w) != {len(targets)}: return MISS"
        )

    def gradients(self, leaves: Sequence[tuple[Tensor, bool]]) -> None:
        """Guard which leaves have gradients."""
        for tensor, has in leaves:
            self.guards.append(f"if ({self._outside(tensor)}._grad is None) is {has}: return MISS")

    def hooks(self) -> None:
        """Guard the hooks of the leaves to which a backward pass of the function leads."""
        for tensor, expected in self.recorder.outer.hooked.values():
            name = self._outside(tensor)
            if expected:
                self.guards.append(f"if not {self.bound(has_hooks)}({name}, {expected}): return MISS")
            else:
                self.guards.append(f"if {name}._node.hooks is not None: return MISS")

    # -- the call -----------------------------------------------------------------------------------------------------
    def segment(
        self, segment: Segment, graph: Graph, function: Callable[..., Any], outputs: Sequence[Value], repeatable: bool
    ) -> None:
        """Write the call of a segment's graph, its effects, and the host call after it.

        ``outputs`` are the values of the segment that the results of the graph stand for. ``repeatable``: a call that
        fails must not have changed anything.
        """
        made = {value for node in graph.prepared for value in node.results}
        for draw in segment.draws:
            seed, offset = f"n{len(self.names)}", f"n{len(self.names) + 1}"
            self.names[draw.seed], self.names[draw.offset] = seed, offset
            self.lines.append(f"{seed}, {offset} = {self.bound(draw.generator)}.take({draw.counters})")
        for numbers in segment.numbers:
            for value in numbers.values:
                self.names[value] = f"n{len(self.names)}"
            left = "".join(f"{self.names[value]}, " for value in numbers.values)
            self.lines.append(f"{left or '_'}{'= ' if left else ' = '}{self.bound(numbers.function)}()")
        for value in graph.inputs:
            if value in made:
                continue
            if value in graph.captured and value not in self.recorder.external:  # a constant
                self.names[value] = self.bound(graph.captured[value]._payload)
            if value not in self.names:  # a tensor from outside that is read again after a host call
                self.names[value] = f"p{len(self.names)}"
                self.lines.append(f"{self.names[value]} = {self._again(value)}")
        for node in graph.prepared:
            self._prepare(node)
        if segment.nodes:
            passed = ", ".join(self.names[value] for value in graph.inputs)
            for value in outputs:
                self.names[value] = f"r{len(self.names)}"
            left = "".join(f"{self.names[value]}, " for value in outputs)
            if not repeatable:
                self._release_gradients(segment)
            self.lines.append(f"{left or '_'}{'= ' if left else ' = '}{self.bound(function, 'run')}({passed})")
        for effect in segment.effects:
            self._effect(effect)
        if segment.call is not None:
            called = self.bound(segment.call.function)
            args, kwargs = self.bound(segment.call.args), self.bound(segment.call.kwargs)
            self.lines.append(f"{called}(*{args}, **{kwargs})")

    def _prepare(self, node: Node) -> None:
        """Write the line that packs a tensor from outside, if it has changed since the last call."""
        [source], [value] = node.operands, node.results
        self.names[value] = f"k{len(self.names)}"
        packed = self.bound(PackedOnce(node))
        self.lines.append(f"{self.names[value]} = {packed}({self.names[source]}, {self._source(source)}._counter)")

    def _release_gradients(self, segment: Segment) -> None:
        """Write lines that remove the gradients that a segment replaces without reading them.

        The function has done so before it computed the new ones, so their memory is not part of its peak.
        """
        read = {id(leaf) for leaf in self.recorder.gradient_of.values()}
        for effect in segment.effects:
            if isinstance(effect, GradientSet) and id(effect.tensor) not in read:
                self.lines.append(f"{self._outside(effect.tensor)}._grad = None")

    def _effect(self, effect: Effect) -> None:
        tensor = self._outside(effect.tensor)
        if isinstance(effect, Advanced):
            self.lines.append(f"{tensor}._counter[0] += {effect.writes}")
        elif isinstance(effect, Replaced):
            self.lines.append(f"{tensor}._payload = {self.names[effect.value]}")
        elif effect.value is None:
            self.lines.append(f"{tensor}._grad = None")
        else:
            self.lines += self.wrapped("_g", self.names[effect.value], effect.keys)
            self.lines.append(f"{tensor}._grad = _g")

    def _again(self, value: Value) -> str:
        """Return the expression of the payload of a tensor from outside after a host call."""
        leaf, tensor = self.recorder.gradient_of.get(value), self.recorder.external[value]
        if leaf is not None:
            return f"{self._outside(leaf)}._grad._payload"
        if value in self.recorder.outer.values and not self.is_named(tensor):
            graph, position = self.recorder.outer.values[value]
            return f"{self.graphs[graph][1]}.payloads[{position}]"
        return f"{self._outside(tensor)}._payload"

    def is_named(self, tensor: Tensor) -> bool:
        """Return whether a tensor is an argument, or one that the function refers to."""
        outside = (self.expressions, self.environment.tensors, self.recorder.outer.named)
        return any(id(tensor) in known for known in outside)

    def _outside(self, tensor: Tensor) -> str:
        """Return the expression of a tensor from outside: an argument of this call, or a captured one."""
        if id(tensor) in self.expressions:
            return self.expressions[id(tensor)]
        for value, name in self.tensors.items():
            if self.recorder.external.get(value) is tensor:
                return name
        return self.bound(tensor)

    def _source(self, value: Value) -> str:
        return self.tensors.get(value) or self._outside(self.recorder.external[value])

    @staticmethod
    def wrapped(name: str, payload: str, keys: int, version: int = 0) -> list[str]:
        """Return the lines that create a tensor."""
        return [
            f"{name} = new(Tensor)", f"{name}._payload = {payload}", f"{name}._keys = {keys}", f"{name}._node = None",
            f"{name}._counter = [{version}]",
        ]  # fmt: skip

    def result(self, position: int, result: Result) -> None:
        """Write the lines that make one tensor of the result, ``o<position>``."""
        name = f"x{position}"
        if isinstance(result, Same):
            self.lines.append(f"{name} = {self._source(result.value)}")
        elif isinstance(result, Viewed):
            chain = self.bound(result.chain)
            self.lines.append(f"{name} = replay({self._source(result.value)}, {chain})")
        elif isinstance(result, ViewOfResult):
            base = f"x{result.position}"
            self.lines.append(f"{name} = {f'replay({base}, {self.bound(result.chain)})' if result.chain else base}")
        elif isinstance(result, Alias):
            source = self._source(result.value)
            self.lines += self.wrapped(name, f"{source}._payload", result.keys)
            self.lines.append(f"{name}._counter = {source}._counter")
        elif isinstance(result, PartOfOutside):
            self.lines += self.wrapped(name, self.names[result.value], result.keys)
            self.lines.append(f"{name}._counter = {self._source(result.source)}._counter")
        else:
            self.lines += self.wrapped(name, self.names[result.value], result.keys, result.version)
            if isinstance(result, New) and result.shares >= 0:
                self.lines.append(f"{name}._counter = x{result.shares}._counter")
            if isinstance(result, New) and result.refused is not None:
                self.lines.append(f"{name}.__dict__['_inplace_refused'] = {self.bound(result.refused)}")

    def leaf(self, position: int, gradient: int) -> None:
        """Write the line that makes a result a leaf that requires grad, and gives it its gradient."""
        self.lines.append(f"x{position}.requires_grad_()")
        if gradient >= 0:
            self.lines.append(f"x{position}._grad = x{gradient}")

    def container(self, position: int) -> str:
        """Return the expression of a container among the arguments."""
        self.takes_containers = True
        return f"containers.found[{position}]"

    def kind(self) -> tuple[list[str], list[Any]]:
        """Return the text of all guards, and the objects that they name: what the program serves."""
        texts = [*self.guards, *(failing for failing, _ in self.environment.reasons)]
        names = dict.fromkeys(name for text in texts for name in BOUND.findall(text))
        scope = {**self.environment.scope, **self.scope}
        return texts, [scope[name] for name in names if name in scope]

    def function(self, count: int, returned: str, takes_containers: bool) -> Callable[..., Any]:
        """Return the function of ``count`` leaves, and of the containers, that returns the expression ``returned``."""
        self.scope["changed"] = self.environment.changed()
        guards = [*self.guards, "if changed(): return MISS"]
        lines = [
            "try:", *indent(guards), "except FAILURES: return MISS", *self.lines,
            f"return {returned}",
        ]  # fmt: skip
        parameters = [*(f"a{i}" for i in range(count)), *(["containers"] if takes_containers else [])]
        return build_once("compiled", ", ".join(parameters), lines, self.scope, "compiled call")


def same_kind(first: tuple[list[str], list[Any]], second: tuple[list[str], list[Any]]) -> bool:
    """Return whether two programs serve the same calls, as two have that threads traced at the same time."""
    return first[0] == second[0] and all(map(_same_object, first[1], second[1]))


def _same_object(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if isinstance(first, MappingProxyType):  # the attributes of a class, which each look-up wraps in another object
        return first.keys() == second.keys() and all(first[name] is second[name] for name in first)
    return isinstance(first, (tuple, MethodType, *SCALARS)) and not differs(first, second)


def written_outside(recorder: Recorder) -> list[Value]:
    """Return the values of the tensors from outside whose memory a node writes."""
    written = {memory for node in recorder.nodes for memory in node.written}
    return [value for value in recorder.external if value.memory in written]


__all__ = ["MISS", "Writer", "same_kind", "written_outside"]
