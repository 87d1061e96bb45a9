"""The graph: values, nodes that compute them, and the order in which they run.

A :class:`Value` is a tensor at one point of the program. A node never changes a value; a node that writes in place has
a new value as its result, which shows the same :class:`Memory`. Views show the memory of their argument. So every order
of the nodes is right that respects the values and, for memories that some node writes and for nodes with effects
outside of the process, the order of the trace (:meth:`Graph.predecessors`).

Nodes and values are never changed, so passes share them: a pass builds another graph from the nodes of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from candelabra._autograd.drawing import Drawing
    from candelabra._device import Instance
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor
    from candelabra.dtypes import dtype

FUNCTION: Final = "function"
"""The form of a node that computes new values, or views."""
INPLACE: Final = "inplace"
"""The form of a node that writes its first argument: ``add_``."""
ROWS: Final = "rows"
"""The form of a node that writes columns of tensors, such as an optimizer's step over all parameters."""


class Spec(NamedTuple):
    """What is known of a tensor before it is computed. Strides and offset are in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: dtype
    instance: Instance

    @property
    def device(self) -> Any:
        return self.instance.device

    @property
    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.numel * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


class Memory:
    """The memory that a value shows. Values with one memory are views of each other, or follow each other by writes.

    ``external``: it belongs to an input, so that writes to it are effects of the graph.
    """

    __slots__ = ("external",)

    def __init__(self, external: bool = False) -> None:
        self.external = external


class Value:
    """A tensor at one point of the program, or with ``spec`` None a Python number that is known at run time only."""

    __slots__ = ("memory", "spec")

    def __init__(self, spec: Spec | None, memory: Memory | None = None) -> None:
        self.spec: Final = spec
        self.memory: Final = Memory() if memory is None else memory

    @property
    def is_number(self) -> bool:
        return self.spec is None

    def __repr__(self) -> str:
        return f"<value {self.spec or 'number'}>"


class Node:
    """One call of an operator, or of a group of nodes that a device runs as one kernel.

    ``args`` are the operator's canonical arguments by position; values stand for tensors, in lists too. ``op`` is the
    record or, for a group, its graph, whose inputs are the arguments. ``kernel`` is the kernel that served the call
    when it was traced, a function of payloads, or None. ``where`` is the user's line.
    """

    __slots__ = ("args", "form", "kernel", "op", "operands", "results", "where")

    def __init__(
        self,
        op: Operator[..., Any] | Graph,
        args: Sequence[Any],
        results: Sequence[Value],
        form: str = FUNCTION,
        kernel: Callable[..., Any] | None = None,
        where: str = "",
    ) -> None:
        self.op: Final = op
        self.args: Final = tuple(args)
        self.operands: Final = tuple(values_in(self.args))
        """The values among the arguments, in order; one that is used twice stands twice."""
        self.results: Final = tuple(results)
        self.form: Final = form
        self.kernel: Final = kernel
        self.where: Final = where

    @property
    def name(self) -> str:
        """The operator's name, with ``_`` at its end if the node writes; for a group the names of its operators."""
        if isinstance(self.op, Graph):
            return "+".join(node.name for node in self.op.nodes)
        return self.op.name + ("" if self.form == FUNCTION else "_")

    @property
    def is_view(self) -> bool:
        """Return whether the results show the memory of an argument and nothing is written."""
        return self.form == FUNCTION and not isinstance(self.op, Graph) and self.op.view

    @property
    def is_ordered(self) -> bool:
        """Return whether the node has an effect outside of the process, and keeps its place among such nodes."""
        if isinstance(self.op, Graph):
            return any(node.is_ordered for node in self.op.nodes)
        return self.op.ordered

    @property
    def written(self) -> list[Memory]:
        """The memories that the node writes and that existed before it."""
        if isinstance(self.op, Graph):
            return [memory for node in self.op.nodes for memory in node.written]
        return [] if self.form == FUNCTION else [result.memory for result in self.results]

    def replaced(self, values: Mapping[Value, Value]) -> Node:
        """Return the node with other values as arguments: the node itself if none of them is replaced."""
        if not any(value in values for value in self.operands):
            return self
        args = [mapped(argument, lambda value: values.get(value, value)) for argument in self.args]
        return Node(self.op, args, self.results, self.form, self.kernel, self.where)

    def __repr__(self) -> str:
        return f"<node {self.name}>"


def values_in(argument: Any) -> Iterator[Value]:
    """Return the values in an argument, which may be a list of values, or a list of lists."""
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for item in argument:
            yield from values_in(item)


def mapped(argument: Any, function: Callable[[Value], Any]) -> Any:
    """Return an argument with every value replaced by the result of ``function``."""
    if isinstance(argument, Value):
        return function(argument)
    if isinstance(argument, (list, tuple)) and any(True for _ in values_in(argument)):
        return [mapped(item, function) for item in argument]
    return argument


class Graph:
    """Inputs, nodes in the order of the trace, and outputs.

    A compiled graph is called with the payloads of ``inputs``, in order, and returns the tuple of the payloads of
    ``outputs``. ``captured`` names the inputs that are no arguments but tensors which the function refers to, such as
    parameters. Numbers among the inputs are passed as Python numbers. The results of ``prepared`` nodes are inputs too:
    such a node runs before the graph, and only when the captured tensor that it reads has changed.
    """

    def __init__(
        self,
        inputs: Iterable[Value],
        nodes: Iterable[Node],
        outputs: Iterable[Value],
        captured: Mapping[Value, Tensor] | None = None,
        prepared: Iterable[Node] = (),
    ) -> None:
        self.inputs: Final = tuple(inputs)
        self.nodes: Final = tuple(nodes)
        self.outputs: Final = tuple(outputs)
        self.captured: Final = dict(captured or {})
        self.prepared: Final = tuple(prepared)

    def with_nodes(self, nodes: Iterable[Node], outputs: Iterable[Value] | None = None) -> Graph:
        """Return a graph with the same inputs and other nodes: the result of a pass."""
        return Graph(self.inputs, nodes, self.outputs if outputs is None else outputs, self.captured, self.prepared)

    # -- walking ------------------------------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def producers(self) -> dict[Value, Node]:
        """Return the node that computes each value. Inputs have none."""
        return {value: node for node in self.nodes for value in node.results}

    def users(self) -> dict[Value, list[Node]]:
        """Return the nodes that use each value, in order."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.operands):
                found.setdefault(value, []).append(node)
        return found

    def written(self) -> set[Memory]:
        """Return the memories that a node writes after they came into being."""
        return {memory for node in self.nodes for memory in node.written}

    def predecessors(self) -> dict[Node, set[Node]]:
        """Return the nodes that must run before each node: those of its arguments, and for memories that are written
        the accesses that the trace made before it (a read does not wait for reads). Ordered nodes wait for each other.
        """
        producers, written = self.producers(), self.written()
        reads: dict[Memory, list[Node]] = {}
        last_write: dict[Memory, Node] = {}
        found: dict[Node, set[Node]] = {}
        last_ordered: Node | None = None
        for node in self.nodes:
            before = {producers[value] for value in node.operands if value in producers}
            writes = node.written
            for memory in {value.memory for value in node.operands}:
                if memory not in written:
                    continue
                if memory in last_write:
                    before.add(last_write[memory])
                if memory not in writes:
                    reads.setdefault(memory, []).append(node)
            for memory in writes:
                before.update(reads.pop(memory, ()))
                last_write[memory] = node
            if node.is_ordered:
                before.update(() if last_ordered is None else (last_ordered,))
                last_ordered = node
            before.discard(node)
            found[node] = before
        return found

    @property
    def traffic(self) -> int:
        """The bytes that the nodes read and write, each node apart. Views read nothing."""
        moving = [node for node in self.nodes if not node.is_view]
        values = [value for node in moving for value in (*dict.fromkeys(node.operands), *node.results)]
        return sum(value.spec.nbytes for value in values if value.spec is not None)

    # -- printing -----------------------------------------------------------------------------------------------------
    def names(self) -> dict[Value, str]:
        """Return a name for each value: ``a0`` for inputs, ``c0`` for captured tensors, ``p0`` for results of prepared
        nodes, ``n0`` for numbers, ``v0`` for results.
        """
        found: dict[Value, str] = {}
        counts = {"a": 0, "c": 0, "n": 0, "p": 0}
        packed = {value for node in self.prepared for value in node.results}
        for value in self.inputs:
            letter = "n" if value.is_number else "c" if value in self.captured else "p" if value in packed else "a"
            found[value] = f"{letter}{counts[letter]}"
            counts[letter] += 1
        for node in self.nodes:
            for value in node.results:
                found[value] = f"v{len(found) - len(self.inputs)}"
        return found

    def draw(self) -> Drawing:
        """Return a drawing, with ``svg``, ``source`` (DOT) and ``save(path)``. Notebooks display it."""
        from candelabra._graph.drawing import drawn

        return drawn(self)

    def __str__(self) -> str:
        return "\n".join(self._lines(self.names()))

    def __repr__(self) -> str:
        return f"<graph of {len(self.nodes)} nodes>"

    def _lines(self, names: dict[Value, str]) -> list[str]:
        once = {value for node in self.prepared for value in node.results}
        head = ", ".join(f"{names[v]}: {v.spec or 'number'}" for v in self.inputs if v not in once)
        lines = [f"graph({head}):"]
        for node in (*self.prepared, *self.nodes):
            left = ", ".join(f"{names[v]}: {v.spec or 'number'}" for v in node.results)
            given = ", ".join(_text(argument, names) for argument in node.args)
            comments = [node.where, *(["once for each version"] if once.intersection(node.results) else [])]
            where = f"  # {', '.join(filter(None, comments))}" if any(comments) else ""
            lines.append(f"    {left} = {node.name}({given}){where}")
        lines.append(f"    return {', '.join(names[v] for v in self.outputs)}")
        return lines


def _text(argument: Any, names: Mapping[Value, str]) -> str:
    """Return an argument as text, with the names of values."""
    if isinstance(argument, Value):
        return names.get(argument, "?")
    if isinstance(argument, (list, tuple)) and any(True for _ in values_in(argument)):
        return f"[{', '.join(_text(item, names) for item in argument)}]"
    return str(argument) if hasattr(argument, "device") or hasattr(argument, "itemsize") else repr(argument)
