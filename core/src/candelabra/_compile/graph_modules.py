"""The graph of a compiled call as a GraphModule, and back: what backends and passes of programs read and change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from candelabra import fx
from candelabra._annotations import Any
from candelabra._device import Instance
from candelabra._dispatch.key import redispatch
from candelabra._dispatch.tracing import reporting, untraced
from candelabra._graph.passes import simplified
from candelabra._graph.running import written_values
from candelabra._graph.structure import FUNCTION, INPLACE, ROWS, Graph, Node, Spec, Value, mapped
from candelabra._graph.tracing import spec_of, trace
from candelabra._keys import LAYER_MASK, NO_GRAD, mode
from candelabra._records.lookup import entry_named
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import bool_
from candelabra.utils._pytree import tree_flatten, tree_unflatten


class CompilerError(RuntimeError):
    """A backend of the program raised while it compiled a graph, or its function returns something else."""


class OperatorCall:
    """The target of a node: an operator with canonical arguments. Equal to the public function of that name.

    It is used where the public function takes other arguments, or has another form: writes, factories, draws.
    """

    def __init__(self, node: Node) -> None:
        op: Any = node.op
        entry = entry_named(op.public_name) if op.public else entry_named(op.name)
        self.op = op
        self.form = node.form
        self.public: Any = entry.form("function") if entry is not None and node.form == FUNCTION else None
        self.__name__ = node.name
        self.__module__ = getattr(self.public, "__module__", "candelabra")
        self.is_impure = node.form != FUNCTION or op.ordered
        self.kernel = None if any(value.spec for value in node.operands) else node.kernel
        self.specs = [value.spec for value in node.results]

    def __call__(self, *args: Any) -> Any:
        if self.form == ROWS:
            count = len(self.op.schema.tensors)
            self.op.over_rows(list(zip(*args[:count], strict=True)), *args[count:])
            return None
        if self.kernel is not None:
            return self._created(args)
        return redispatch(self.op, args, inplace=self.form == INPLACE)

    def _created(self, args: tuple[Any, ...]) -> Any:
        """Run the kernel of a call without tensors, whose device is in its specs."""
        [first, *_] = specs = [spec for spec in self.specs if spec is not None]
        assert self.kernel is not None
        found = reporting(self.op, FUNCTION, self.kernel, first.instance)(*args)
        made = [wrap(p, s.instance.keys_for(s.dtype)) for p, s in zip(found if len(specs) > 1 else [found], specs)]
        return made[0] if len(specs) == 1 else tuple(made)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OperatorCall):
            return self.op is other.op and self.form == other.form
        return other is self.public and other is not None

    def __hash__(self) -> int:
        return hash(self.public) if self.public is not None else hash(self.op.name)

    def __repr__(self) -> str:
        return f"<operator {self.__name__}>"


def target_of(node: Node) -> Callable[..., Any]:
    """Return what a node calls: the public function, if it takes the node's arguments."""
    op: Any = node.op
    positional = not any(p.keyword_only for p in op.schema.parameters)
    if node.form == FUNCTION and op.public and node.operands and positional and not (op.random or op.ordered):
        function: Callable[..., Any] = op.function
        return function
    return OperatorCall(node)


def call_graph(graph: Graph) -> fx.Graph:
    """Return a graph of calls with a placeholder for each input. ``node.meta["spec"]`` has shape, dtype and device,
    ``node.meta["where"]`` the user's line.
    """
    made = fx.Graph()
    names, nodes = graph.names(), dict[Value, Any]()
    for value in graph.inputs:
        nodes[value] = made.placeholder(names[value])
        nodes[value].meta["spec"] = value.spec
    for node in graph.nodes:
        args = tuple([mapped(argument, nodes.__getitem__) for argument in node.args])
        call = made.create_node("call_function", target_of(node), args, name=node.name)
        call.meta["where"] = node.where
        if node.form != FUNCTION:
            for before, after in written_values(node):
                nodes[after] = call if node.form == INPLACE else nodes[before]
        elif len(node.results) == 1:
            nodes[node.results[0]] = call
        else:
            for position, value in enumerate(node.results):
                nodes[value] = made.call_function(_item, (call, position))
        for value in node.results:
            nodes[value].meta["spec"] = value.spec
    made.output(tuple([nodes[value] for value in graph.outputs]))
    return made


def _item(results: Sequence[Any], position: int) -> Any:
    return results[position]


_item.__name__, _item.__module__ = "getitem", "_operator"


def graph_module(graph: Graph) -> Any:
    """Return a GraphModule of a graph, whose arguments are tensors for the graph's inputs, and numbers."""
    return fx.GraphModule({}, call_graph(graph))


def exported(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Trace a call, and return a GraphModule that takes the tensors among its arguments, in order, and returns what the
    function returns. Tensors that it refers to, such as parameters, are attributes of the module.

    Raises ``GraphBreak`` for what no graph can repeat, and ``RuntimeError`` for random numbers.
    """
    shape: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        given = iter(leaves)
        filled, named = tree_unflatten([next(given) if isinstance(x, Tensor) else x for x in all_leaves], spec)
        found, structure = tree_flatten(function(*filled, **named))
        shape[:] = [structure, [None if isinstance(leaf, Tensor) else leaf for leaf in found]]
        return found

    all_leaves, spec = tree_flatten((args, kwargs))
    tensors = [leaf for leaf in all_leaves if isinstance(leaf, Tensor)]
    graph = simplified(trace(flat, *tensors))
    if any(value.is_number for value in graph.inputs):
        raise RuntimeError("export(): the function draws random numbers, which the module would not draw again")
    calls = call_graph(graph)
    attributes: dict[str, Tensor] = {}
    for node, value in zip(calls.nodes, graph.inputs, strict=False):
        if value in graph.captured:
            name = f"_tensor{len(attributes)}"
            attributes[name] = graph.captured[value]
            with calls.inserting_before(node):
                node.replace_all_uses_with(calls.get_attr(name))
            calls.erase_node(node)
    output, rest = calls.output_node(), iter(calls.output_node().args[0])
    structure, constants = shape
    leaves = [next(rest) if constant is None else constant for constant in constants]
    output.args = (tree_unflatten(leaves, structure),)
    return fx.GraphModule(attributes, calls)


def example_inputs(graph: Graph, tensors: Mapping[Value, Tensor]) -> list[Any]:
    """Return an argument for each input: the tensor from outside that it is now, zeros for others, 0 for numbers."""
    return [tensors[v] if v in tensors else zeros_for(v.spec) for v in graph.inputs]


def zeros_for(spec: Spec | None) -> Any:
    """Return a tensor of zeros with a spec; 0 for a number."""
    if spec is None:
        return 0
    instance: Instance = spec.instance
    if not instance.capabilities.strided or not spec.numel:
        return _zeros(spec.shape, spec)
    extent = 1 + spec.offset + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
    memory = _zeros((extent,), spec)
    payload = instance.backend.restride(memory._payload, spec.shape, spec.strides, spec.offset)
    return wrap(payload, instance.keys_for(spec.dtype))


def _zeros(shape: tuple[int, ...], spec: Spec) -> Tensor:
    made: Tensor = OPERATORS["full"].canonical(shape, False if spec.dtype is bool_ else 0, spec.dtype, spec.instance)
    return made


def retraced(function: Callable[..., Any], graph: Graph) -> Graph:
    """Return the graph of kernels of a function that takes the inputs of ``graph``, for example of a GraphModule that a
    pass has changed. Its first inputs are those of ``graph``.

    The function runs on zeros. Raises ``GraphBreak`` if it does what no graph can repeat.
    """
    with untraced(), mode(include=NO_GRAD, exclude=LAYER_MASK):
        return trace(function, *[zeros_for(value.spec) for value in graph.inputs])


def on_payloads(function: Callable[..., Any], graph: Graph, name: str) -> Callable[..., tuple[Any, ...]]:
    """Return a function of payloads that calls one of tensors, the result of a program's backend ``name``.

    Raises :class:`CompilerError` if it returns other shapes, dtypes or devices than the graph.
    """
    keys = [None if v.spec is None else v.spec.instance.keys_for(v.spec.dtype) for v in graph.inputs]
    specs = [v.spec for v in graph.outputs if v.spec is not None]

    def run(*payloads: Any) -> tuple[Any, ...]:
        tensors = [p if key is None else wrap(p, key) for p, key in zip(payloads, keys, strict=True)]
        with untraced(), mode(include=NO_GRAD, exclude=LAYER_MASK):
            out = function(*tensors)
        results = [out] if isinstance(out, Tensor) else list(out if out is not None else ())
        if len(results) != len(specs):
            raise CompilerError(
                f"the function of the backend {name!r} returned {len(results)} tensors, expected {len(specs)}: one for "
                "each output of the graph, in order"
            )
        return tuple([_payload(t, spec, i, name) for i, (t, spec) in enumerate(zip(results, specs, strict=True))])

    return run


def _payload(tensor: Any, spec: Spec, position: int, name: str) -> Any:
    found = spec_of(tensor._fresh()._payload, spec.instance) if _on(tensor, spec.instance) else None
    if found is None or (found.shape, found.dtype) != (spec.shape, spec.dtype):
        got = (
            f"{tensor.dtype}, shape {tuple(tensor.shape)}, on {tensor.device}" if isinstance(tensor, Tensor) else tensor
        )
        raise CompilerError(
            f"the function of the backend {name!r} returned for output {position} {got}, expected {spec} on "
            f"{spec.device}"
        )
    return tensor._payload


def _on(tensor: Any, instance: Instance) -> bool:
    return isinstance(tensor, Tensor) and tensor._instance is instance


__all__ = [
    "CompilerError", "call_graph", "example_inputs", "exported", "graph_module", "on_payloads", "retraced", "target_of",
    "zeros_for",
]  # fmt: skip
