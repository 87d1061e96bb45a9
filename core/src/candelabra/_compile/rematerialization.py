"""Release what a traced call has saved while its backward pass is traced, and compute it again afterwards.

The backward pass of a compiled call is traced before the program asks for it, and the program then runs its own one. So
the saved values have to outlive the trace. But an eager backward pass releases them node by node while the gradients
grow, and a trace that kept them would have a larger peak. Therefore each node's saved values are released when it has
run, and the kernels that the trace has recorded compute them again at the end, from the tensors from outside and with
the same random numbers: the same bits.

A value stays if that could give another one: if it depends on memory from outside that the call writes, on a check of
values, or on a call of other processes. So do the values that a custom function or a packing hook has saved. The
results of the call are released, too, where nothing else can refer to them: eager programs have no logits any more when
the backward pass of the loss has run.

Attribution: to compute saved values again instead of keeping them is checkpointing (Griewank; Chen et al. 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount
from weakref import ref

from candelabra._annotations import Any, NamedTuple
from candelabra._autograd.engine import reachable
from candelabra._autograd.node import Node
from candelabra._compile.recording import Recorder
from candelabra._dispatch.tracing import untraced
from candelabra._graph.passes import without_dead_code
from candelabra._graph.running import on_list, runner
from candelabra._graph.structure import FUNCTION, INPLACE, Graph, Value
from candelabra._graph.structure import Node as GraphNode
from candelabra._keys import NO_GRAD, VIEW, mode
from candelabra._tensor import Tensor, new


class ReleasedSlot(NamedTuple):
    """A slot of a node of autograd, or of a tensor, whose content, a tensor or a payload, was released."""

    owner: Any
    name: str
    value: Value
    content: Callable[[], Any]
    """Returns the content if something else keeps it alive, or None."""
    history: tuple[int, Any, list[int]] | None
    """Of a tensor the keys, the node and the version cell."""

    def created(self, payload: Any) -> Any:
        """Return the content again, from a payload. A view becomes a tensor of its own."""
        if self.history is None:
            return payload
        out = new(Tensor)
        out._payload = payload
        out._keys, out._node, out._counter = self.history
        return out


class SavedValues:
    """What a traced call has saved, and its results, ``outputs``."""

    def __init__(self, recorder: Recorder, outputs: Sequence[Tensor]) -> None:
        self.recorder = recorder
        self.nodes = repeatable(recorder)
        self.values = {value for node in self.nodes for value in node.results}
        self.outputs = _unshared(outputs)
        self.released: list[ReleasedSlot] = []

    def release_outputs(self) -> None:
        """Release the results of the call."""
        for tensor in self.outputs:
            self._release(tensor, "_payload")

    def release(self, node: Node) -> None:
        """Release what a node of autograd has saved."""
        for name in getattr(node, "saved_slots", ()):
            self._release(node, name)

    def _release(self, owner: Any, name: str) -> None:
        slot = _slot(owner, name, self.recorder)
        if slot is not None and slot.value in self.values:
            self.released.append(slot)
            setattr(owner, name, None)

    def restore(self) -> None:
        """Fill the slots, with what is still alive or with values that are computed again."""
        alive = [(slot, slot.content()) for slot in self.released]
        missing = dict.fromkeys(slot.value for slot, found in alive if found is None)
        computed = _computed(list(missing), self.nodes, self.recorder)
        for slot, found in alive:
            setattr(slot.owner, slot.name, slot.created(computed[slot.value]) if found is None else found)


@contextmanager
def released_values(recorder: Recorder, outputs: Sequence[Tensor]) -> Iterator[SavedValues]:
    """Give what can be released. At the end of the block, nodes and outputs have their values again.

    Gradients that were computed in the block should be gone then, since their memory is needed.
    """
    saved = SavedValues(recorder, outputs)
    try:
        yield saved
    finally:
        saved.restore()


def repeatable(recorder: Recorder) -> list[GraphNode]:
    """Return the recorded nodes that give the same results when they run again now."""
    written = {memory for node in recorder.nodes for memory in node.written if memory.external}
    known = recorder.payloads
    found: list[GraphNode] = []
    values = {v for v, t in recorder.external.items() if v.memory not in written and known.get(t._payload) is v}
    values |= recorder.drawn.keys()
    for node in recorder.nodes:
        in_place = node.form in (FUNCTION, INPLACE) and written.isdisjoint(node.written)
        pure = not isinstance(node.op, Graph) and not node.op.data_dependent and not node.is_ordered
        immutable = any(value.spec is not None and value.spec.instance.immutable for value in node.results)
        if in_place and pure and not immutable and values.issuperset(node.operands):
            found.append(node)
            values.update(node.results)
    return found


def _unshared(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs that no node reads, and that share their memory with no other tensor."""
    read: set[int] = set()
    cells: dict[int, int] = {}
    """For each version cell how many nodes refer to it, for a saved output."""
    for node in reachable([t._node for t in outputs if t._node is not None]):
        names = getattr(node, "saved_slots", None)
        if names is None and not (node.is_leaf or node.is_port):
            return []  # a custom function may have saved an output
        for name in names or ():
            content = getattr(node, name, None)
            if name.startswith("c_"):
                cells[id(content)] = cells.get(id(content), 0) + 1
            elif name.startswith("s_"):
                saved = content if isinstance(content, (list, tuple)) else [content]
                if not all(each is None or isinstance(each, Tensor) for each in saved):
                    return []  # so may a hook that packs
                read.update(map(id, saved))
    probe = new(Tensor)
    probe._counter = [0]
    alone = getrefcount(probe._counter)  # views and aliases have the cell of their tensor
    return [
        t
        for t in outputs
        if type(t) is Tensor and not t._keys & VIEW and id(t) not in read
        and getrefcount(t._counter) == alone + cells.get(id(t._counter), 0)
    ]  # fmt: skip


def _slot(owner: Any, name: str, recorder: Recorder) -> ReleasedSlot | None:
    """Return how to restore a slot, or None if it contains no tensor and no payload of the trace."""
    content: Any = getattr(owner, name, None)
    is_tensor = type(content) is Tensor
    value = recorder.payloads.get(content._payload if is_tensor else content)
    if value is None:
        return None
    try:
        reference = ref(content)
    except TypeError:  # a payload that cannot be referred to weakly is kept by the trace
        return None
    history = (content._keys & ~VIEW, content._node, content._counter) if is_tensor else None
    return ReleasedSlot(owner, name, value, reference, history)


def _computed(values: list[Value], nodes: list[GraphNode], recorder: Recorder) -> dict[Value, Any]:
    """Return the payloads of values of the trace, computed again by its kernels."""
    if not values:
        return {}
    computed = {value for node in nodes for value in node.results}
    whole = Graph(dict.fromkeys(v for node in nodes for v in node.operands if v not in computed), nodes, values)
    short = without_dead_code(whole)
    used = {value for node in short.nodes for value in node.operands}
    graph = Graph([value for value in whole.inputs if value in used], short.nodes, values)
    external, drawn = recorder.external, recorder.drawn
    payloads = [external[v]._payload if v in external else drawn[v] for v in graph.inputs]
    with untraced(), mode(include=NO_GRAD):
        return dict(zip(values, on_list(runner(graph))(payloads), strict=True))


__all__ = ["SavedValues", "released_values", "repeatable"]
