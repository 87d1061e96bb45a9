"""The node of a compiled call: one node of autograd's graph, whose backward pass is a compiled graph, too.

For second derivatives the node calls the function again, eagerly: graphs lie below autograd, and do not know what the
function has detached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from weakref import ref

from candelabra._annotations import Any, NamedTuple
from candelabra._autograd.api import grad_up_to
from candelabra._autograd.filling import filled_like
from candelabra._autograd.node import RELEASED, Node, Port, changed
from candelabra._autograd.structure import Structure
from candelabra._compile.differentiation import Derivative
from candelabra._compile.environment import Environment
from candelabra._dispatch.tracing import tracer_here
from candelabra._graph.running import dispatching
from candelabra._graph.structure import INPLACE, Graph, Value, mapped
from candelabra._graph.tracing import GraphTracer
from candelabra._keys import AUTOGRAD, NO_GRAD, active, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import BY_BIT, DTYPE_MASK
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_unflatten


class Repetition(NamedTuple):
    """How to repeat a compiled call eagerly, for derivatives of its backward pass."""

    function: Callable[..., Any]
    spec: TreeSpec
    """The structure of the arguments."""
    environment: Environment
    positions: tuple[int, ...]
    """Those of the differentiable outputs, among the tensors of the result."""
    refused: str | None
    """Why the call cannot be repeated."""


def replayed(graph: Graph, payloads: Sequence[Any], tracer: GraphTracer) -> list[Any]:
    """Run a graph node by node while ``tracer`` records, and return its outputs."""
    found: dict[Value, Any] = {}
    for value, payload in zip(graph.inputs, payloads, strict=True):
        found[value] = payload
        if value.spec is not None:
            tracer.meet([wrap(payload, value.spec.instance.keys_for(value.spec.dtype))])
    for node in graph.nodes:
        kernel = node.kernel or dispatching(node)
        args = [mapped(argument, found.__getitem__) for argument in node.args]
        spec = (*node.results, *node.operands)[0].spec
        assert spec is not None
        assert not isinstance(node.op, Graph)  # groups are made later
        out = tracer.run(node.op, node.form, kernel, tuple(args), spec.instance)
        results = [found[before] for before in node.operands[:1]] if node.form == INPLACE else out
        found.update(zip(node.results, results if len(node.results) > 1 or node.form == INPLACE else [out]))
    return [found[value] for value in graph.outputs]


Version = tuple[list[int], int, Tensor]
"""The counter of a tensor's writes, what it was at the call, and the tensor."""


def versions_of(tensors: Iterable[Tensor]) -> list[Version]:
    """Return the versions of tensors now."""
    return [(tensor._counter, tensor._counter[0], tensor) for tensor in tensors]


class CompiledNode(Node):
    """The node of a compiled call: it saves payloads, and its backward pass runs the backward graph.

    ``leaves`` are those of the call's arguments, and ``inputs`` the tensors that get gradients. A backward pass that is
    recorded itself, or whose gradients belong to a function transform, repeats the call eagerly.
    """

    __slots__ = (
        "all_keys", "derivative", "e1", "inputs", "leaf_versions", "leaves", "more", "outputs", "ports", "repetition",
        "saved", "shapes", "spent", "versions",
    )  # fmt: skip
    operator = "compiled"
    saved_slots = ("saved",)

    def __init__(
        self,
        derivative: Derivative | None,
        saved: Any,
        inputs: Sequence[Tensor] = (),
        guarded: Sequence[Tensor] = (),
        repetition: Repetition | None = None,
        leaves: Sequence[Any] = (),
    ) -> None:
        self.derivative = derivative
        self.saved = saved
        self.repetition = repetition
        self.inputs, self.leaves = inputs, leaves
        self.e0, self.e1, *more = (*[tensor._node for tensor in inputs], None, None)[: max(2, len(inputs))]
        self.more = tuple(more)
        self.hooks = None
        self.spent: frozenset[int] = frozenset()
        """The outputs whose graphs are freed."""
        self.versions = versions_of(guarded)
        self.leaf_versions = versions_of(leaf for leaf in leaves if isinstance(leaf, Tensor))

    def give(self, tensors: Sequence[Tensor]) -> None:
        """Make the node that of the differentiable outputs."""
        self.outputs = len(tensors)
        self.shapes = tuple([tuple(t._payload.shape) for t in tensors])
        self.all_keys = tuple([t._keys | AUTOGRAD for t in tensors])
        self.shape, self.keys = self.shapes[0], self.all_keys[0]
        nodes: list[Any] = [self]
        if len(tensors) > 1:
            nodes = [Port(self, i, self.shapes[i], self.all_keys[i]) for i in range(len(tensors))]
        for tensor, node in zip(tensors, nodes, strict=True):
            tensor._node = node
            tensor._keys |= AUTOGRAD
        self.ports = tuple([ref(node) for node in nodes])

    def backward(self, g: Any) -> tuple[Any, ...]:
        return self._gradients(g, False)

    def consume(self, g: Any) -> tuple[Any, ...]:
        last = self._spend(g)
        results = self._gradients(g, last)
        if last:
            self.release()
        return results

    def _spend(self, g: Any) -> bool:
        """Note that the graphs of the outputs with gradients are freed. Return whether those of all outputs are."""
        if (derivative := self.derivative) is None:
            return True
        arrived = range(1) if self.outputs == 1 else [i for i, one in enumerate(g) if one is not None]
        if not self.spent.isdisjoint(arrived):
            RELEASED.unpack()  # raises GraphFreed
        self.spent = self.spent.union(*[derivative.frees[i] for i in arrived])
        return len(self.spent) == self.outputs

    def _gradients(self, g: Any, last: bool) -> tuple[Any, ...]:
        """Run the backward graph. ``last``: the graph may release what the node has saved."""
        if (saved := self.saved) is RELEASED:
            return RELEASED.unpack()  # type: ignore[no-any-return]  # raises GraphFreed
        arrived = [g] if self.outputs == 1 else g
        if not state.bits & NO_GRAD or any(one is not None and one._instance.depth for one in arrived):
            return self._repeated(arrived)
        derivative = self.derivative
        assert derivative is not None
        numbers = None if self.outputs == 1 else [i for i, one in enumerate(g) if one is not None]
        if numbers is None or len(numbers) == self.outputs:
            self._check(self.versions)
        else:
            needed = frozenset[int]().union(*[derivative.checks[i] for i in numbers])
            self._check([self.versions[k] for k in needed])
        payloads = [*(self._payload(i, one, arrived) for i, one in enumerate(arrived)), *saved]
        if last:
            self.saved = saved = RELEASED
        tracer = tracer_here() if active else None
        found = derivative.run(payloads) if tracer is None else replayed(derivative.plain, payloads, tracer)
        results = [
            None if place < 0 else wrap(found[place], keys)
            for place, keys in zip(derivative.places, derivative.keys, strict=True)
        ]
        if numbers is not None and len(numbers) < self.outputs:  # as eager passes, which end where no gradient arrives
            results = [
                None if outputs.isdisjoint(numbers) else r
                for r, outputs in zip(results, derivative.reached, strict=True)
            ]
        return (*results, None)[: max(2, len(results))]

    def _check(self, versions: Sequence[Version]) -> None:
        """Raise VersionMismatch if a tensor was written since the call."""
        for cell, version, tensor in versions:
            if cell[0] != version:
                raise changed(self, "captured tensor", tuple(tensor.shape), tensor._keys, cell[0], version)

    def _repeated(self, arrived: Sequence[Tensor | None]) -> tuple[Any, ...]:
        """Return the gradients of the inputs by calling the function again, eagerly and with recording."""
        repetition = self.repetition
        assert repetition is not None
        refused = repetition.refused
        if refused is None and (changes := repetition.environment.failure()) is not None:
            refused = f"depends on {changes}, which has changed since the call,"
        if refused is not None:
            raise RuntimeError(
                f"a compiled function that {refused} has no second derivative, and none by function transforms: call "
                "it under candelabra.compiler.set_stance('force_eager'), or do not compile it"
            )
        self._check((*self.versions, *self.leaf_versions))
        args, kwargs = tree_unflatten(list(self.leaves), repetition.spec)
        create = not state.bits & NO_GRAD
        with mode(exclude=NO_GRAD):
            found = tree_flatten(repetition.function(*args, **kwargs))[0]
        tensors = [leaf for leaf in found if isinstance(leaf, Tensor)]
        pairs = [(tensors[i], g) for i, g in zip(repetition.positions, arrived, strict=True) if g is not None]
        outputs, gradients = zip(*pairs, strict=True)
        return (*grad_up_to(outputs, self.inputs, gradients, create), None)[: max(2, len(self.inputs))]

    def _payload(self, position: int, g: Tensor | None, arrived: Sequence[Tensor | None]) -> Any:
        """Return the payload of the gradient of an output, with the layout of the trace."""
        if g is None:
            like = next(one for one in arrived if one is not None)
            d = BY_BIT[self.all_keys[position] & DTYPE_MASK]
            g = filled_like(like, 0, self.shapes[position], d)
        g._fresh()
        assert self.derivative is not None
        if g._layout() != self.derivative.layouts[position]:
            g = OPERATORS["clone"].canonical(g)
        return g._payload

    def describe(self, to: Structure) -> None:
        """Add the backward graph, and the payloads that the node has saved for it."""
        if self.saved is RELEASED:
            RELEASED.unpack()  # raises
        assert self.derivative is not None
        self._check(self.versions)
        to.same(self.derivative)
        cells = {id(tensor._payload): tensor._counter for _, _, tensor in self.versions}
        for value, payload in zip(self.derivative.saved, self.saved, strict=True):
            if value.spec is None:
                to.refuse("a number of a compiled call")
            else:
                cell = cells.get(id(payload), [0])
                to.payload(payload, cell, value.spec.instance.keys_for(value.spec.dtype))

    def release(self) -> None:
        self.saved = RELEASED
        self.versions = self.leaf_versions = []
        self.inputs = self.leaves = ()

    def name(self) -> str:
        return "CompiledFunctionBackward"


__all__ = ["CompiledNode", "Repetition", "replayed"]
