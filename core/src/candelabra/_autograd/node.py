"""The graph: one node per recorded operator.

A node holds the edges to the nodes of its inputs (never the inputs themselves), the values that its derivative needs,
and the shape and keys of its output. A tensor requires grad if and only if it has a node; a leaf's node is a
:class:`Leaf`.

Attribution: the graph of backward nodes without a tape, with version counters, is PyTorch's design. Building the graph
while the program runs is from Chainer and DyNet. The table of derivative rules is from HIPS/autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import ReferenceType, WeakKeyDictionary, ref

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance, instance_of_key
from candelabra._keys import AUTOGRAD, OVERRIDE
from candelabra.dtypes import BY_BIT, DTYPE_MASK, dtype
from candelabra.errors import GraphFreed, VersionMismatch

if TYPE_CHECKING:
    from candelabra._autograd.hooks import NodeHooks
    from candelabra._autograd.structure import Structure
    from candelabra._tensor import Tensor


LEAF, PORT = 1, 2


class TensorSpec:
    """The shape, dtype and device of a tensor. Derivatives that need no values keep it instead of an activation."""

    __slots__ = ("shape", "keys")

    def __init__(self, shape: tuple[int, ...], keys: int) -> None:
        self.shape = shape
        self.keys = keys

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> dtype:
        return BY_BIT[self.keys & DTYPE_MASK]

    @property
    def instance(self) -> Instance:
        return instance_of_key(self.keys)

    @property
    def device(self) -> Any:
        return instance_of_key(self.keys).device

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


class Node:
    """A step of the backward pass. Subclasses are generated per operator, or written by hand for views and functions.

    ``e0``, ``e1`` and ``more`` are the edges: the nodes that receive the gradients, or None. The first two edges are
    slots and not a tuple: one object less per node for the garbage collector halves the time of deep graphs.
    """

    __slots__ = ("e0", "hooks", "keys", "shape", "__weakref__")
    e0: Node | None
    hooks: NodeHooks | None
    keys: int
    shape: tuple[int, ...]
    e1: Any = None
    more: Any = ()
    operator: str = ""
    saved_slots: tuple[str, ...] = ()
    """The slots with values that :meth:`release` releases."""
    outputs: int = 1
    add_to: Callable[[Any, Any, Any], None] | None = None
    """``add_to(total, g, node)`` adds the only gradient to a sum in place, see :meth:`Operator.summed`."""
    kind: int = 0
    """0, :data:`LEAF` or :data:`PORT`. The engine handles the latter two without running ``backward``."""

    @property
    def is_port(self) -> bool:
        return self.kind == PORT

    @property
    def is_leaf(self) -> bool:
        return self.kind == LEAF

    def backward(self, g: Any) -> tuple[Any, ...]:
        """Return the gradients for the edges, in order; ``g`` is the output's gradient, or a list of the outputs'."""
        raise NotImplementedError(f"{type(self).__name__} has no backward()")

    def release(self) -> None:
        """Release the saved values. A second backward pass then raises :class:`GraphFreed`."""

    def consume(self, g: Any) -> tuple[Any, ...]:
        """Run :meth:`backward`, then :meth:`release`. Generated as one function, which saves a call per node."""
        results = self.backward(g)
        self.release()
        return results

    def describe(self, to: Structure) -> None:
        """Add what the backward pass depends on, besides the class, shape, keys and edges, to a structure."""
        to.refuse(f"a node of the class {type(self).__name__}")

    def edges(self) -> tuple[Node | None, ...]:
        """Return all edges, with None for inputs without a node."""
        return (self.e0, self.e1, *self.more)

    # -- PyTorch's interface ------------------------------------------------------------------------------------------
    def name(self) -> str:
        """Return the node's name, such as ``MulBackward``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Return (node, output number) per input, as in PyTorch."""
        return tuple((e.e0, e.index) if isinstance(e, Port) else (e, 0) for e in self._inputs())

    def _inputs(self) -> tuple[Node | None, ...]:
        """Return the edges without those that the operator does not have."""
        if self.more and self.e1 is None and "e1" not in type(self).__dict__ and type(self)._arity is Node._arity:
            return self.more if self.e0 is None else (self.e0, *self.more)  # of a list
        return self.edges()[: self._arity()]

    def _arity(self) -> int:
        return 1 + ("e1" in type(self).__dict__ or self.e1 is not None) + len(self.more)

    @property
    def metadata(self) -> dict[Any, Any]:
        """Return a dictionary for arbitrary data of the user."""
        return _metadata.setdefault(self, {})

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node has run. It may return new ``grad_inputs``."""
        from candelabra._autograd.hooks import hooks_of

        return hooks_of(self).add("after", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_outputs)`` before the node runs. It may return new ``grad_outputs``."""
        from candelabra._autograd.hooks import hooks_of

        return hooks_of(self).add("before", hook)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


_metadata: Final[WeakKeyDictionary[Node, dict[Any, Any]]] = WeakKeyDictionary()


class Leaf(Node):
    """The node of a leaf tensor that requires grad; it accumulates the gradient. It holds the tensor weakly."""

    __slots__ = ("owner",)
    kind = LEAF
    operator = "leaf"

    def __init__(self, tensor: Tensor) -> None:
        self.e0 = None
        self.hooks = None
        self.keys = (tensor._keys | AUTOGRAD) & ~OVERRIDE
        self.shape = tuple(tensor._payload.shape)
        self.owner: ReferenceType[Tensor] = ref(tensor)

    @property
    def variable(self) -> Tensor | None:
        """Return the tensor whose ``.grad`` this node accumulates, or None if the tensor no longer exists."""
        return self.owner()

    def consume(self, g: Any) -> Any:
        """Return None: the engine accumulates the gradient."""

    backward = consume

    def describe(self, to: Structure) -> None:
        tensor = self.owner()
        to.key.append(tensor is None)
        to.leaves.append(tensor)

    def name(self) -> str:
        return "AccumulateGrad"


class Port(Node):
    """One output of a node with several outputs. Its edge leads to that node."""

    __slots__ = ("index",)
    kind = PORT

    def __init__(self, node: Node, index: int, shape: tuple[int, ...], keys: int) -> None:
        self.e0 = node
        self.hooks = None
        self.index = index
        self.shape = shape
        self.keys = keys

    def consume(self, g: Any) -> Any:
        """Return None: the engine passes the gradient to the node."""

    backward = consume

    def describe(self, to: Structure) -> None:
        to.key.append(self.index)

    def name(self) -> str:
        return self.e0.name() if self.e0 is not None else "Port"


class Released:
    """The content of a node's slots after its saved values were released. Any access raises :class:`GraphFreed`."""

    _node = None

    @property
    def _counter(self) -> list[int]:
        raise GraphFreed(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
            "you need to access saved tensors after calling backward."
        )

    def __getitem__(self, _: int) -> int:
        return self._counter[0]

    def unpack(self) -> Any:
        return self._counter


RELEASED: Final[Any] = Released()


def changed(node: Node, argument: str, shape: tuple[int, ...], keys: int, now: int, then: int) -> VersionMismatch:
    """Return the error for a saved tensor that was modified in place. It names the operator, tensor and versions."""
    spec = TensorSpec(shape, keys)
    return VersionMismatch(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{spec.device} {spec.dtype.name} tensor {list(shape)}], the {argument!r} of {node.operator!r}, is at version "
        f"{now}; expected version {then} instead. Hint: replace the in-place operation after {node.operator!r} by an "
        "out-of-place one, or give it a clone()"
    )
