"""Run a graph without dispatch: one generated Python function that calls kernels on payloads.

The function has one line per node. Shapes, dtypes and devices were resolved when the graph was traced, so a line is a
call of a kernel. Values are released after their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from candelabra._annotations import Any, Final
from candelabra._codegen.source import build_once
from candelabra._dispatch.key import redispatch
from candelabra._graph.structure import FUNCTION, INPLACE, ROWS, Graph, Node, Value, values_in
from candelabra._keys import NO_GRAD, mode
from candelabra._tensor import wrap

KernelOf = Callable[[Node], Callable[..., Any] | None]
SMALL: Final = 1 << 10
"""Values of fewer bytes are released when the function returns: a statement costs more than their memory."""


def runner(graph: Graph, kernel_of: KernelOf | None = None) -> Callable[..., tuple[Any, ...]]:
    """Return a function of the payloads of ``graph.inputs`` that returns the payloads of ``graph.outputs``.

    ``kernel_of(node)`` returns the kernel of a node, or None for :func:`default_kernel`. The kernel of an operator
    takes its canonical arguments, as a backend's kernels do; that of a group the payloads of ``node.args``. It returns
    a payload, or a tuple of payloads for several results. What the kernel of a node that writes returns is ignored: the
    results are the payloads that it has written.

    The kernel of a group that has an attribute ``takes_list`` takes one list of the payloads. Nothing else refers to
    those that nothing uses after the node, so it can release their memory as soon as it has read them. (Attribution:
    the boxed calls of PyTorch's compiler.)

    So does the function's attribute ``on_list``: a function of one list, which it empties.
    """
    writer = _Writer(graph, kernel_of, False)
    function: Any = writer.function()
    function.graph = graph  # so that reports show the groups that a device has made
    function.on_list = _on_list(graph, writer.kernels)
    return function  # type: ignore[no-any-return]


def _on_list(graph: Graph, kernels: Mapping[Node, Callable[..., Any]]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return the function of a graph that takes a list. It is generated when it is called first."""
    made = cache(lambda: _Writer(graph, kernels.get, True).function())
    return lambda payloads: made()(payloads)


def on_list(run: Callable[..., tuple[Any, ...]]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return a function of a list of payloads from the function of a device's compiler, which may have none."""
    found: Callable[[list[Any]], tuple[Any, ...]] | None = getattr(run, "on_list", None)
    return found or (lambda payloads: run(*payloads))


def default_kernel(node: Node) -> Callable[..., Any]:
    """Return the kernel that served a node when it was traced, or one that dispatches the operator.

    The kernel of a group runs its nodes one after another.
    """
    if isinstance(node.op, Graph):
        run = runner(node.op)
        return run if len(node.results) != 1 else lambda *payloads: run(*payloads)[0]
    if node.is_view:
        return _view_kernel(node) or node.kernel or dispatching(node)
    return node.kernel or dispatching(node)


def _view_kernel(node: Node) -> Callable[..., Any] | None:
    """Return a kernel that gives its operand the shape and strides of the traced view, if the device has strides.

    Views in another dtype have kernels of their own.
    """
    spec, source = node.results[0].spec, node.operands[0].spec
    if spec is None or source is None or spec.dtype is not source.dtype or not spec.instance.capabilities.strided:
        return None
    restride, shape, strides, offset = spec.instance.backend.restride, spec.shape, spec.strides, spec.offset
    return lambda payload, *_: restride(payload, shape, strides, offset)


def dispatching(node: Node) -> Callable[..., Any]:
    """Return a kernel that calls the operator on tensors. It serves nodes without a kernel, and declined calls."""
    op: Any = node.op
    values = node.operands
    several = len(node.results) > 1
    own = node.args[: len(op.schema.parameters)]  # without packed operands

    def kernel(*args: Any) -> Any:
        specs = iter(values)
        tensors = [_tensors(argument, passed, specs) for argument, passed in zip(own, args)]
        if node.form == ROWS:
            count = len(op.schema.tensors)
            with mode(include=NO_GRAD):  # as it was traced: a body may compute in another order for a derivative
                op.over_rows(list(zip(*tensors[:count], strict=True)), *tensors[count:])
            return None
        out = redispatch(op, tuple(tensors), inplace=node.form == INPLACE)
        return tuple(t._payload for t in out) if several else out._payload

    return kernel


def _tensors(argument: Any, passed: Any, values: Any) -> Any:
    """Return an argument with tensors for payloads, by the specs of the values that stand there."""
    if isinstance(argument, Value):
        spec = next(values).spec
        return passed if spec is None else wrap(passed, spec.instance.keys_for(spec.dtype))
    if isinstance(argument, (list, tuple)) and any(True for _ in values_in(argument)):
        return [_tensors(a, b, values) for a, b in zip(argument, passed, strict=True)]
    return passed


class _Writer:
    """The text of the function, and the objects that it refers to."""

    def __init__(self, graph: Graph, kernel_of: KernelOf | None, takes_list: bool) -> None:
        self.graph = graph
        self.kernel_of = kernel_of
        self.takes_list = takes_list
        self.kernels: dict[Node, Callable[..., Any]] = {}
        self.names: dict[Value, str] = {value: f"a{i}" for i, value in enumerate(graph.inputs)}
        self.scope: dict[str, Any] = {}
        self.lines: list[str] = []
        self.count = 0

    def function(self) -> Callable[..., tuple[Any, ...]]:
        last = self._last_uses()
        for node in self.graph.nodes:
            self._call(node, last.get(node, ()))
        outputs = [self.names[value] for value in self.graph.outputs]
        self.lines.append(f"return ({', '.join(outputs)}{',' if outputs else ''})")
        parameters = ", ".join(self.names[value] for value in self.graph.inputs)
        if self.takes_list:
            self.lines[:0] = [f"{parameters}, = payloads", "payloads.clear()"] if parameters else []
            parameters = "payloads"
        return build_once("graph", parameters, self.lines, self.scope, "graph")

    def _last_uses(self) -> dict[Node, list[Value]]:
        """Return the values that are released after each node: large ones that neither the caller nor an output has."""
        first: dict[Value, Value] = {}  # a write gives a value another one, which has its name and its payload
        last: dict[Value, Node] = {}
        for node in self.graph.nodes:
            for before, after in written_values(node):
                first[after] = first.get(before, before)
            for value in (*node.operands, *node.results):
                last[first.get(value, value)] = node
        inputs = () if self.takes_list else self.graph.inputs
        kept = {first.get(value, value) for value in (*self.graph.outputs, *inputs)}
        found: dict[Node, list[Value]] = {}
        for value, node in last.items():
            if value not in kept and value.spec is not None and value.spec.nbytes >= SMALL:
                found.setdefault(node, []).append(value)
        return found

    def _call(self, node: Node, dying: Sequence[Value]) -> None:
        """Write the call of a node, after which nothing uses the values ``dying``."""
        number, self.count = self.count, self.count + 1
        chosen = None if self.kernel_of is None else self.kernel_of(node)
        self.scope[f"k{number}"] = self.kernels[node] = chosen if chosen is not None else default_kernel(node)
        passed = ", ".join(self._argument(argument) for argument in node.args)
        takes_list = getattr(chosen, "takes_list", False)
        if takes_list:
            self.lines.append(f"_ = [{passed}]")
            dying = self._release(value for value in dying if value in self.names)
            passed = "_"
        may_decline = not isinstance(node.op, Graph) and not node.is_view  # as in eager calls
        results = []
        if node.form == FUNCTION:
            for value in node.results:
                self.names[value] = f"v{len(self.names)}"
                results.append(self.names[value])
        else:
            for target, value in written_values(node):
                self.names[value] = self.names[target]
        direct = len(results) == 1 or (results and not may_decline)
        left = ", ".join(results) if direct else "_"
        self.lines.append(f"{left} = k{number}({passed})")
        if may_decline:
            self.scope[f"d{number}"] = dispatching(node)
            self.lines.append(f"if {left} is NotImplemented: {left} = d{number}({passed})")
        if results and not direct:
            self.lines.append(f"{', '.join(results)} = _")
        if takes_list or (left == "_" and (results or dying)):  # it would keep an argument or a result
            self.lines.append("_ = None")
        self._release(dying)

    def _release(self, values: Iterable[Value]) -> Sequence[Value]:
        """Write a line that forgets values. Return none."""
        names = sorted({self.names[value] for value in values})
        if names:
            self.lines.append(f"{' = '.join(names)} = None")
        return ()

    def _argument(self, argument: Any) -> str:
        """Return the text of an argument. Anything but names and short constants is bound to a name."""
        if isinstance(argument, Value):
            return self.names[argument]
        if isinstance(argument, (list, tuple)) and any(True for _ in values_in(argument)):
            return f"[{', '.join(self._argument(item) for item in argument)}]"
        if argument is None or isinstance(argument, (bool, int)):
            return repr(argument)
        name = f"p{len(self.scope)}"
        self.scope[name] = argument
        return name


def written_values(node: Node) -> list[tuple[Value, Value]]:
    """Return (value before, value after) for each tensor that a node writes."""
    if node.form == FUNCTION:
        return []
    targets = {value.memory: value for value in reversed(node.operands)}
    return [(targets[result.memory], result) for result in node.results]


__all__ = ["default_kernel", "dispatching", "on_list", "runner", "written_values"]
