"""``Function``: custom operators with a forward and a backward in Python. As ``torch.autograd.Function``.

``forward`` runs with recording off. Its outputs share one node, whose backward pass calls ``backward``. With
``create_graph`` the operators in ``backward`` are recorded, which gives second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from weakref import ref

from candelabra._annotations import TYPE_CHECKING, Any, TypeVar
from candelabra._autograd.anomaly import remember
from candelabra._autograd.function_saved import SavedValue, save, unpack
from candelabra._autograd.node import RELEASED, Node, Port
from candelabra._autograd.saved import zero_gradient
from candelabra._autograd.views import Overwrite, chain_of, check_writable, detached, is_cut
from candelabra._device import instance_of_key
from candelabra._dispatch.levels import active_frames
from candelabra._keys import ANOMALY, AUTOGRAD, DEFERRED, DEVICE_SHIFT, NO_GRAD, VIEW, mode, state, switch
from candelabra._tensor import wrap
from candelabra.dtypes import BY_BIT, DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._autograd.structure import Structure
    from candelabra._tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The context that ``forward`` (or ``setup_context``) fills for ``backward``. It accepts any attribute."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True
        self._to_save: tuple[Any, ...] = ()
        self._for_jvp: tuple[Any, ...] = ()
        self._in_jvp = False
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._saved: Any = ()
        self._node: Callable[[], Node | None] = lambda: None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for ``backward``, which reads them from ``saved_tensors``. In-place writes are detected."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for ``jvp``, which reads them from ``saved_tensors``."""
        self._for_jvp = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Mark inputs that ``forward`` has modified in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark outputs that have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether ``backward`` gets zeros (the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Return the saved tensors. Raise RuntimeError if they were modified in place or released."""
        if self._in_jvp:
            return self._for_jvp
        if self._saved is RELEASED:
            return tuple(RELEASED.unpack())
        return tuple([unpack(value, self._node()) for value in self._saved])


class FunctionNode(Node):
    """The node of one call of a :class:`Function`."""

    __slots__ = ("all_keys", "ctx", "e1", "more", "outputs", "places", "ports", "shapes")
    saved_slots = ("ctx",)
    function: type[Function]
    ctx: FunctionCtx
    outputs: int
    shapes: tuple[tuple[int, ...], ...]
    all_keys: tuple[int, ...]
    ports: tuple[Any, ...]

    def __init__(self, ctx: FunctionCtx, args: tuple[Any, ...], nodes: list[Node | None]) -> None:
        self.ctx = ctx
        self.places = [i for i, a in enumerate(args) if hasattr(a, "_payload")]
        """The positions of the tensors among the arguments; each has an edge."""
        edges = [nodes[i] for i in self.places]
        self.e0 = edges[0] if edges else None
        self.e1 = edges[1] if len(edges) > 1 else None
        self.more = tuple(edges[2:])
        self.hooks = None
        self.shape, self.keys = (), 0

    def backward(self, g: Any) -> tuple[Any, ...]:
        gs = list(g) if self.outputs > 1 else [g]
        if self.ctx.materialize_grads:
            gs = [zero_gradient(self, i, gs) if one is None and self.all_keys[i] else one for i, one in enumerate(gs)]
        results = self.function.backward_of()(self.ctx, *gs)
        return self._checked(results if isinstance(results, tuple) else (results,))

    def _checked(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Check that there is one gradient per argument, None for other values than tensors; return those of the edges.

        Each gradient is cast to the dtype of its input.
        """
        count = len(self.ctx.needs_input_grad)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, "
                f"got {len(results)})"
            )
        for position, r in enumerate(results):
            if r is None:
                continue
            if position not in self.places:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different from None at position {position + 1}, but "
                    "the corresponding forward input was not a Variable"
                )
            if not hasattr(r, "_payload"):
                raise RuntimeError(
                    f"function {self.name()} returned a {type(r).__name__} at position {position + 1}: expected Tensor "
                    "or None"
                )
        found = [_as_edge(self, i, results[p], e) for i, (p, e) in enumerate(zip(self.places, self.edges()))]
        return (*found, None, None)[:2] + tuple(found[2:])

    def release(self) -> None:
        if self.ctx._saved:
            self.ctx._saved = RELEASED

    def describe(self, to: Structure) -> None:
        """Add the function, its saved tensors, and the attributes of the context, which may be tensors."""
        ctx = self.ctx
        to.same(self.function)
        to.functions.append(self.function)
        if ctx._saved is RELEASED:
            RELEASED.unpack()  # raises
        for saved in ctx._saved:
            if saved is not None and not isinstance(saved, SavedValue):
                to.refuse("values that saved_tensors_hooks have packed")
            tensor, _, version, _ = saved or (None, None, 0, -1)
            to.tensor(tensor, version, self, "saved tensor")
        for name, value in vars(ctx).items():
            if hasattr(value, "_payload"):
                to.tensor(value, value._counter[0], self, name)
            elif name not in ("_node", "_saved", "_to_save", "_for_jvp"):
                to.key.append(name)
                to.plain(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return the tensors that the context has saved."""
        return self.ctx.saved_tensors

    def _arity(self) -> int:
        return len(self.places)

    def name(self) -> str:
        return self.function.__name__ + "Backward"


def _as_edge(node: Node, index: int, r: Any, edge: Node | None) -> Any:
    """Return a gradient in the dtype of its input. Raise RuntimeError if it is on another device."""
    if r is None or edge is None:
        return None
    want = BY_BIT[edge.keys & DTYPE_MASK]
    if r.dtype is not want:
        r = (r.real if r.is_complex() and not want.is_complex else r).to(want)
    if (r._keys ^ edge.keys) >> DEVICE_SHIFT:
        expected = instance_of_key(edge.keys)
        if not (expected.depth or r._instance.depth):  # in a function transform, the levels may differ
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - expected device "
                f"{expected.device} but got {r.device}"
            )
    return r


class Function:
    """A custom operator: a subclass has static methods ``forward`` and ``backward`` and is called by ``apply``.

    Define either ``forward(ctx, *args)``, or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``.
    ``backward(ctx, *grad_outputs)`` returns one gradient per argument of ``forward``, or None for an argument without
    a gradient. ``jvp(ctx, *tangents)`` returns one tangent per output, for forward mode, and gets None for an argument
    without a tangent; if it is absent, forward mode differentiates ``backward``.
    ``vmap(info, in_dims, *args)`` returns the outputs for all examples and their ``out_dims``: see :meth:`vmap`.
    """

    generate_vmap_rule = False
    """Ignored, as its effect is the default: without a static method ``vmap``, ``forward`` runs on batched tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            f"should invoke them on the class itself: {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. The subclass implements it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what ``backward`` needs, if ``forward`` takes no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs. The subclass implements it, under this name or as ``vjp``."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the outputs. The subclass may implement it."""
        raise NotImplementedError("Function.jvp is not implemented: forward mode differentiates backward.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Return the outputs for all examples of :func:`candelabra.vmap`, and their ``out_dims``.

        ``args`` are those of ``forward``. Tensors have the examples along the dim of ``in_dims``, None for an argument
        that all examples share. ``info.batch_size`` is the number of examples, ``info.randomness`` that of ``vmap``.
        A subclass with ``setup_context`` may implement it, for a ``forward`` that leaves the library.
        """
        raise NotImplementedError("Function.vmap is not implemented: vmap runs forward on batched tensors.")

    @classmethod
    def backward_of(cls) -> Callable[..., Any]:
        """Return the derivative: ``backward`` or ``vjp``."""
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run ``forward`` on ``args`` and record it."""
        if active_frames():
            from candelabra._transforms.custom_functions import applied_to_duals, frame_of_duals

            frame = frame_of_duals(args)
            if frame is not None:
                return applied_to_duals(cls, frame, args)
        return cls._applied(args)[0]

    @classmethod
    def _applied(cls, args: tuple[Any, ...]) -> tuple[Any, FunctionCtx]:
        """Return the outputs, recorded, and the context."""
        nodes = [a._fresh()._node if hasattr(a, "_payload") else None for a in args]
        recording = not state.bits & NO_GRAD and any(n is not None for n in nodes)
        ctx = FunctionCtx(tuple([n is not None for n in nodes]))
        before = state.bits
        levels = bool(active_frames())
        if levels:
            from candelabra._transforms.custom_functions import forward_of, forward_with_context
        switch((before | NO_GRAD) & ~DEFERRED)
        try:
            if cls.setup_context is Function.setup_context:
                made = forward_with_context(cls, ctx, args) if levels else cls.forward(ctx, *args)
            else:
                made = forward_of(cls, args) if levels else cls.forward(*args)
                cls.setup_context(ctx, args, made)
        finally:
            switch(before)
        outputs = made if isinstance(made, tuple) else (made,)
        _check_marks(cls, ctx, outputs)
        node = cls._node_class()(ctx, args, nodes) if recording else None
        outputs = _Outputs(cls, ctx, args, node).recorded(outputs)
        if node is not None:
            ctx._saved = _saved(ctx, node, outputs)
            ctx._node = ref(node)
            if state.bits & ANOMALY:
                remember(node)
        ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
        return (outputs if isinstance(made, tuple) else outputs[0]), ctx

    @classmethod
    def _node_class(cls) -> type[FunctionNode]:
        found: type[FunctionNode] | None = cls.__dict__.get("_candelabra_node")
        if found is None:
            members = {"__slots__": (), "function": cls, "operator": cls.__name__, "__module__": cls.__module__}
            found = type(cls.__name__ + "Backward", (FunctionNode,), members)
            cls._candelabra_node = found  # type: ignore[attr-defined]
        return found


def _check_marks(cls: type[Function], ctx: FunctionCtx, outputs: tuple[Any, ...]) -> None:
    for position, tensor in enumerate(ctx._to_save):
        if tensor is not None and not hasattr(tensor, "_payload"):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {position} is of type {type(tensor).__name__}"
            )
    for what, marked in (("mark_dirty", ctx._dirty), ("mark_non_differentiable", ctx._non_differentiable)):
        for position, tensor in enumerate(marked):
            if not hasattr(tensor, "_payload"):
                raise TypeError(
                    f"{what} only accepts variable arguments, but argument {position} is of type "
                    f"{type(tensor).__name__}"
                )
    if any(not any(d is o for o in outputs) for d in ctx._dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )


class _Outputs:
    """Converts the results of ``forward`` to outputs of a node: new handles if needed, ports, histories."""

    def __init__(self, cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], node: FunctionNode | None) -> None:
        self.cls, self.ctx, self.args, self.node = cls, ctx, args, node

    def recorded(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = [self._handle(o, outputs[:i]) if hasattr(o, "_payload") else o for i, o in enumerate(outputs)]
        node = self.node
        if node is None:
            return tuple(kept)
        carrying = [self._carries(original, o) for original, o in zip(outputs, kept)]
        tensors = [hasattr(o, "_payload") for o in kept]
        node.outputs = len(kept)
        node.shapes = tuple([tuple(o._payload.shape) if t else () for o, t in zip(kept, tensors)])
        node.all_keys = tuple([
            (o._keys & ~(AUTOGRAD | VIEW)) | AUTOGRAD * c if t else 0 for o, t, c in zip(kept, tensors, carrying)
        ])  # fmt: skip
        if node.outputs == 1:
            node.shape, node.keys = node.shapes[0], node.all_keys[0]
        ports: list[Any] = [None] * len(kept)
        for i, o in enumerate(kept):
            if carrying[i]:
                port = node if node.outputs == 1 else Port(node, i, node.shapes[i], node.all_keys[i])
                ports[i] = ref(port)
                self._give_history(outputs[i], o, port)
        node.ports = tuple(ports)
        return tuple(kept)

    def _handle(self, out: Tensor, earlier: tuple[Any, ...]) -> Tensor:
        """Return the tensor itself, or a second handle on its memory if it is an input or an earlier output."""
        if _among(out, self.ctx._dirty):
            return out
        foreign = _among(out, self.args) or _among(out, earlier) or out._node is not None
        if foreign or (self.node is not None and out._keys & VIEW):
            handle = wrap(out._payload, out._keys & ~(AUTOGRAD | VIEW))
            handle._counter = out._counter
            handle.__dict__["_inplace_refused"] = (
                f"Output of {self.cls.__name__}Backward is a view and is being modified inplace. This view was created "
                "inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
                "view+inplace would override the custom backward associated with the custom Function, leading to "
                "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
                "Function."
            )
            return handle
        return out

    def _carries(self, original: Any, out: Any) -> bool:
        if not hasattr(out, "_payload") or _among(original, self.ctx._non_differentiable):
            return False
        return bool(out.dtype.is_floating_point or out.dtype.is_complex)

    def _give_history(self, original: Tensor, out: Tensor, port: Node) -> None:
        if _among(original, self.ctx._dirty):
            check_writable(out)
            if out._keys & VIEW:
                base = out._base
                if not is_cut(out):
                    base._node = Overwrite(base, chain_of(out), port)
                    base._keys |= AUTOGRAD
                    out._seen = -1  # stale: its node is computed from the base's at the next use
                return
        out._node = port
        out._keys |= AUTOGRAD


def _saved(ctx: FunctionCtx, node: FunctionNode, outputs: tuple[Any, ...]) -> Any:
    """Return the saved values: outputs that refer to the node by payload, other tensors themselves."""
    places = [(i, o) for i, o in enumerate(outputs) if node.ports[i] is not None]
    return [save(t, next((i for i, o in places if o is t), -1), node) for t in ctx._to_save]


def _among(tensor: Any, tensors: Sequence[Any]) -> bool:
    return any(t is tensor for t in tensors)


class _Refusal(Node):
    """The node of the gradients of a function that is differentiable once. Its backward pass raises RuntimeError."""

    __slots__ = ("more",)
    operator = "once_differentiable"

    def __init__(self, shape: tuple[int, ...], keys: int, edges: tuple[Node | None, ...]) -> None:
        self.e0 = None
        self.more = edges
        self.hooks = None
        self.shape = shape
        self.keys = keys | AUTOGRAD

    def backward(self, g: Any) -> tuple[Any, ...]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward: F) -> F:
    """Decorate a ``backward`` whose steps autograd does not record: a second derivative raises RuntimeError."""

    @wraps(backward)
    def once(ctx: Any, *args: Any) -> Any:
        with mode(include=NO_GRAD):
            results = backward(ctx, *args)
        edges = tuple([a._node for a in args if hasattr(a, "_payload")])
        if state.bits & NO_GRAD or not any(e is not None for e in edges):
            return results

        def guarded(r: Any) -> Any:
            if not hasattr(r, "_payload"):
                return r
            out = detached(r)
            out._node = _Refusal(tuple(r._payload.shape), out._keys, edges)
            out._keys |= AUTOGRAD
            return out

        return tuple([guarded(r) for r in results]) if isinstance(results, tuple) else guarded(results)

    return once  # type: ignore[return-value]


__all__ = ["Function", "FunctionCtx", "FunctionNode", "SavedValue", "once_differentiable"]


def __dir__() -> list[str]:
    return sorted(__all__)
