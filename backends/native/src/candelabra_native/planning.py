"""Plans: consecutive nodes of a graph whose launches are prepared become one call, which runs all of them.

The call allocates a block for each large intermediate result and for each result that is used after the nodes, just
before the launch that writes it, and gives intermediate results back after the launch that reads them last. Small ones
are in one block, in which those that do not live at the same time share memory. Arrays that nothing uses after the
nodes are released after their last launch, too. So a call needs no more memory than single calls of the kernels. Views
cost nothing: they are offsets. The interpreter runs before and after the launches, not between them, except to release
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph, Node, default_kernel, values_read
from candelabra.graph import Value as Tensor
from candelabra.library import build
from candelabra_clike.recording import RecordedBlock, RecordedNode
from candelabra_cpu.backend import TO_NUMPY

from candelabra_native.arrays import ndarray
from candelabra_native.launch._launch import plan
from candelabra_native.recorded import RECORDER

LEAST_LAUNCHES: Final = 2
"""The launches from which a plan is worth its call."""
LEAST_OWN: Final = 1 << 14
"""The size in bytes from which an intermediate result has a block of its own."""
LEAST_RELEASED: Final = 1 << 18
"""The bytes of arrays that are released together: a release takes the interpreter's lock."""
ALIGNMENT: Final = 64
"""Intermediate results begin at cache lines."""

Kernel = Callable[..., Any]


class Position(NamedTuple):
    """Where a tensor is: its block, which is that of an array if the plan does not allocate it, and the offset of its
    first element in bytes.
    """

    block: RecordedBlock
    offset: int


def planned(
    graph: Graph, recordings: Mapping[Node, RecordedNode], into: Mapping[Node, Mapping[int, int]]
) -> tuple[Graph, dict[Node, Kernel]]:
    """Return the graph with a group for each sequence of nodes that a plan runs, and the functions of these groups.

    ``into`` has the results that are written in place of an operand: a plan does that in its own memory only.
    """
    nodes: list[Node] = []
    functions: dict[Node, Kernel] = {}
    for run in _runs(graph, recordings, into, _cuts(graph, recordings, into)):
        launches = sum(step.__class__ is tuple for node in run for step in _steps(recordings.get(node)))
        if launches < LEAST_LAUNCHES:
            nodes += run
            continue
        builder = PlanBuilder(graph, run, recordings)
        nodes += [*builder.before, builder.node]
        functions[builder.node] = builder.function()
    return graph.with_nodes(nodes), functions


def _steps(recording: RecordedNode | None) -> Sequence[Any]:
    return () if recording is None else recording.steps


def is_plain_view(node: Node) -> bool:
    """Return whether a node shows the elements of its operand, in the same dtype."""
    source, spec = (v.spec if v else None for v in (next(iter(node.operands), None), node.results[0]))
    return node.is_view and source is not None and spec is not None and spec.dtype is source.dtype


def _cuts(graph: Graph, recordings: Mapping[Node, RecordedNode], into: Mapping[Node, Mapping[int, int]]) -> set[Node]:
    """Return nodes at which another plan begins.

    A plan whose launches may report errors keeps its arrays, since the nodes run again to raise the error. So such
    launches do not share a plan with launches after which arrays are released.
    """
    cuts: set[Node] = set()
    for run in _runs(graph, recordings, into):
        if sum(value.spec.nbytes for value in dying_in(graph, run) if value.spec) >= LEAST_RELEASED:
            reporting = [RECORDER.errors.block in _steps(recordings.get(node)) for node in run]
            cuts.update(node for node, one, next in zip(run[1:], reporting, reporting[1:]) if one is not next)
    return cuts


def dying_in(graph: Graph, nodes: Sequence[Node]) -> list[Tensor]:
    """Return the values that nodes read, and that neither a later node nor the caller uses.

    Inputs of the graph that are no tensors from outside, such as saved values, may be the graph's to release.
    """
    later = {*graph.outputs, *(value for value in graph.inputs if value.memory.external)}
    for node in reversed(graph.nodes):
        if node is nodes[-1]:
            break
        later.update(node.operands)
    return [value for value in values_read(nodes) if value not in later]


def _runs(
    graph: Graph,
    recordings: Mapping[Node, RecordedNode],
    into: Mapping[Node, Mapping[int, int]],
    cuts: Container[Node] = (),
) -> Iterable[list[Node]]:
    """Return the nodes in order, in sequences that a plan can run, and single other nodes.

    At a node of ``cuts`` another sequence begins.
    """
    run: list[Node] = []
    own: set[Any] = set()  # the memory that the plan allocates
    for node in graph.nodes:
        if run and node in cuts:
            yield run
            run, own = [], set()
        recording = recordings.get(node)
        donors = [node.args[i] for i in into.get(node, {}).values()] if recording is not None else []
        suits = recording is not None or is_plain_view(node)
        if not suits or any(donor.memory not in own for donor in donors):
            if run:
                yield run
            yield [node]
            run, own = [], set()
            continue
        run.append(node)
        own |= {v.memory for v in node.results} if recording is not None else set()
    if run:
        yield run


class PlanBuilder:
    """Nodes that one plan runs.

    ``before`` are views of arrays from outside that are used outside: the plan makes arrays over its own memory only.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node], recordings: Mapping[Node, RecordedNode]) -> None:
        self.recordings = recordings
        made = {v for node in nodes for v in node.results}
        inside = set(nodes)
        used = {v for node in graph.nodes if node not in inside for v in node.operands} | {*graph.outputs}
        shown = self._shown(nodes)
        needed = {shown[v] for v in made & used if v in shown}
        hoisted = {view for views in needed for view in views}
        self.before = [node for node in nodes if node in hoisted]
        self.nodes = [node for node in nodes if node not in hoisted]
        self.outputs = [v for node in self.nodes for v in node.results if v in used]
        self.inputs = values_read(self.nodes)
        self.dying = set(dying_in(graph, nodes))
        self.node = Node(Graph(self.inputs, self.nodes, self.outputs), self.inputs, self.outputs)
        self.positions: dict[Tensor, Position] = {}
        self.launches: list[tuple[Any, int, list[Any]]] = []
        """Launches with :class:`Position` for buffers."""
        self.reports = False
        self._locate_all()

    @staticmethod
    def _shown(nodes: Sequence[Node]) -> dict[Tensor, tuple[Node, ...]]:
        """Return the views of arrays from outside, each with the nodes that make it."""
        own = {v for node in nodes if not node.is_view for v in node.results}
        shown: dict[Tensor, tuple[Node, ...]] = {}
        for node in nodes:
            if node.is_view and (source := node.operands[0]) not in own:
                shown[node.results[0]] = (*shown.get(source, ()), node)
            elif node.is_view:
                own.add(node.results[0])
        return shown

    def _locate_all(self) -> None:
        """Find the position of every tensor, and of the buffers of every launch."""
        self.arrays = []
        for value in self.inputs:
            assert value.spec is not None
            self.arrays.append(RecordedBlock(value.spec.nbytes))
            self.positions[value] = Position(self.arrays[-1], 0)
        for node in self.nodes:
            recording = self.recordings.get(node)
            if recording is None:
                source, spec = node.operands[0], node.results[0].spec
                assert spec is not None
                assert source.spec is not None
                block, offset = self.positions[source]
                moved = (spec.offset - source.spec.offset) * spec.dtype.itemsize
                self.positions[node.results[0]] = Position(block, offset + moved)
            else:
                self._locate(node, recording)

    def _locate(self, node: Node, recording: RecordedNode) -> None:
        given = {block: self.positions[value] for value, block in recording.arrays.items()}
        for step in recording.steps:
            if step is RECORDER.errors.block:
                self.reports = True
            elif step.__class__ is tuple:
                kernel, items, arguments = step
                placed = [
                    given.get(a, Position(a, 0)) if a.__class__ is RecordedBlock else a for a in arguments
                ]  # fmt: skip
                self.launches.append((kernel, items, placed))
        for value, out in zip(node.results, recording.outputs, strict=True):
            block, offset = given.get(out.buffer, Position(out.buffer, 0))
            self.positions[value] = Position(block, offset + out.offset * out.dtype.itemsize)

    def _lives(self) -> dict[RecordedBlock, tuple[int, int]]:
        """Return the first and the last launch that use each block."""
        lives: dict[RecordedBlock, tuple[int, int]] = {}
        for i, (_, _, arguments) in enumerate(self.launches):
            for at in arguments:
                if at.__class__ is Position:
                    lives[at.block] = (lives.get(at.block, (i, i))[0], i)
        return lives

    def function(self) -> Kernel:
        """Generate the function of the plan."""
        kept = list(dict.fromkeys(self.positions[v].block for v in self.outputs))
        outside = [*self.arrays, *([RECORDER.errors.block] if self.reports else [])]
        lives = self._lives()
        own = {b: life for b, life in lives.items() if b not in outside and b not in kept}
        small = {b: life for b, life in own.items() if b.nbytes < LEAST_OWN}
        offsets, total = arranged(small)
        arena = RecordedBlock(total)
        memory = {b: (b.nbytes, *life) for b, life in own.items() if b not in small}
        memory |= {b: (b.nbytes, lives.get(b, (0, 0))[0], -1) for b in kept}
        if small:
            memory[arena] = (total, min(first for first, _ in small.values()), max(last for _, last in small.values()))
        position = {block: i for i, block in enumerate((*outside, *memory))}

        def located(at: Any) -> Any:
            if at.__class__ is not Position:
                return at
            if at.block in offsets:
                return position[arena], offsets[at.block] + at.offset
            return position[at.block], at.offset

        launches = tuple((kernel, items, tuple(map(located, arguments))) for kernel, items, arguments in self.launches)
        last = self._releases(lives)
        layouts = [(*_layout(v), last.get(b, -1)) for v, b in zip(self.inputs, self.arrays, strict=True)]
        run = plan(launches, (*layouts, *[None] * (len(outside) - len(layouts))), tuple(memory.values()))
        return self._generated(run, kept)

    def _releases(self, lives: Mapping[RecordedBlock, tuple[int, int]]) -> dict[RecordedBlock, int]:
        """Return the launch after which each array is released that nothing uses after the plan."""
        if self.reports:
            return {}
        dying = {block: value for value, block in zip(self.inputs, self.arrays, strict=True) if value in self.dying}
        last: dict[RecordedBlock, int] = {}
        waiting: list[RecordedBlock] = []
        for block in sorted(dying.keys() & lives.keys(), key=lambda block: lives[block][1]):
            waiting.append(block)
            if sum(each.nbytes for each in waiting) >= LEAST_RELEASED:
                last |= dict.fromkeys(waiting, lives[block][1])
                waiting = []
        return last

    def _generated(self, run: Callable[..., Any], kept: list[RecordedBlock]) -> Kernel:
        fallback = cache(lambda: default_kernel(self.node))
        scope: dict[str, Any] = {"ndarray": ndarray, "run": run, "zeros": np.zeros}
        scope["fallback"] = lambda arrays: fallback()(*arrays)
        names = {block: f"b{i}" for i, block in enumerate(kept)}
        lines = ["errors = zeros(4, 'q')", "arrays.append(errors)"] if self.reports else []
        lines.append("blocks = run(arrays)")
        wrong = "blocks is None"
        if self.reports:
            lines.append("del arrays[-1]")
            wrong += " or errors.item(0)"
        lines += [f"if {wrong}: return fallback(arrays)", f"{', '.join(names.values())}, = blocks"]
        results = []
        for i, value in enumerate(self.outputs):
            spec, at = value.spec, self.positions[value]
            assert spec is not None
            scope |= {f"SHAPE{i}": spec.shape, f"DTYPE{i}": TO_NUMPY[spec.dtype], f"STRIDES{i}": _in_bytes(value)}
            memory = names[at.block]
            if at.offset or not is_contiguous_layout(spec.shape, spec.strides):
                # A view of it is one of an array of the whole block, from which its offset counts.
                scope[f"WHOLE{i}"] = (at.block.nbytes // spec.dtype.itemsize,)
                memory = f"ndarray(WHOLE{i}, DTYPE{i}, {memory})"
            results.append(f"ndarray(SHAPE{i}, DTYPE{i}, {memory}, {at.offset}, STRIDES{i})")
        lines.append(f"return {', '.join(results)}")
        function = build("plan", "arrays", lines, scope, f"native plan of {len(self.launches)} launches")
        function.takes_list = True  # type: ignore[attr-defined]  # the graph's function asks for it
        return function


def arranged(lives: Mapping[RecordedBlock, tuple[int, int]]) -> tuple[dict[RecordedBlock, int], int]:
    """Return the offset of each block in one that contains all of them, and its size.

    Each gets the lowest offset at which it overlaps none that lives at the same time, in the order of their first uses.
    """
    offsets: dict[RecordedBlock, int] = {}
    placed: list[tuple[int, int, int]] = []  # start, end and last use
    total = 0
    for block, (first, last) in sorted(lives.items(), key=lambda item: item[1][0]):
        placed = sorted(entry for entry in placed if entry[2] >= first)
        size, start = -(-max(block.nbytes, 1) // ALIGNMENT) * ALIGNMENT, 0
        for begin, end, _ in placed:
            if begin - start >= size:
                break
            start = max(start, end)
        offsets[block] = start
        placed.append((start, start + size, last))
        total = max(total, start + size)
    return offsets, total


def _layout(value: Tensor) -> tuple[tuple[int, ...], int]:
    assert value.spec is not None
    return _in_bytes(value), value.spec.dtype.itemsize


def _in_bytes(value: Tensor) -> tuple[int, ...]:
    assert value.spec is not None
    return tuple(step * value.spec.dtype.itemsize for step in value.spec.strides)
