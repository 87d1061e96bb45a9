"""Operators of programs, as ``torch.library.custom_op`` declares them: a function, its kernels and its derivative.

They are opaque: no key or documentation, and autograd and graphs of compiled functions see one node. An operator that
is declared by :func:`candelabra.library.operator` has all of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from candelabra._annotations import TYPE_CHECKING, Any, Final, NoReturn
from candelabra._device import instance_of_key
from candelabra._dispatch.tracing import tracer_here
from candelabra._keys import AUTOGRAD
from candelabra._records.record import Operator
from candelabra._tensor import Tensor
from candelabra.autograd.function import Function
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from candelabra._graph.tracing import GraphTracer

DEFINED: Final[dict[str, CustomOperator]] = {}
"""The operators by their qualified names, ``"namespace::name"``."""
_fakes: Final[dict[str, Callable[..., Any]]] = {}
"""Shape functions that were registered before their operator."""


class CustomOperator:
    """One operator of a program; the result of :func:`custom_op`, called like the function that it decorates."""

    def __init__(
        self, name: str, function: Callable[..., Any], devices: Sequence[str] | None, written: str | Iterable[str] = ()
    ) -> None:
        self._qualname = name
        self._name = name.partition("::")[2]
        self.__doc__, self.__name__ = function.__doc__, self._name
        self._signature = inspect.signature(function)
        names = {written} if isinstance(written, str) else {*written}
        self._written = [i for i, each in enumerate(self._signature.parameters) if each in names or "unknown" in names]
        """The positions of the arguments that a call writes."""
        self._kernels: dict[str | None, Callable[..., Any]] = dict.fromkeys(devices or (None,), function)
        self._fake: Callable[..., Any] | None = _fakes.pop(name, None)
        self._node: type[Function] = _node_class(self, None, None)
        self.has_derivative = False

    def __repr__(self) -> str:
        return f"<custom operator {self._qualname}>"

    @property
    def default(self) -> CustomOperator:
        """The operator itself, its only overload."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of the device of the first tensor, and record the call."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._node.apply(*bound.arguments.values())

    @cached_property
    def _record(self) -> Operator[..., Any]:
        """The record of the node in a graph. It is not registered: nothing but graphs knows it."""

        def call(tensors: Sequence[Tensor], call: Any) -> Tensor:  # type: ignore[empty-body]
            """Call the function of a program."""
            ...

        return Operator(call, _refuse_shape, name=self._qualname, public=False, ordered=True, inplace=False, out=False)

    def _run(self, args: tuple[Any, ...]) -> Any:
        """Run the kernel, below autograd. While a function is traced, the call is one node of its graph."""
        args = tuple([_below_autograd(arg) for arg in args])
        tracer = tracer_here()
        out = self._call(args) if tracer is None else self._traced(tracer, args)
        for i in self._written:
            for t in _tensors_in(args[i]):
                t._counter[0] += 1
        return out

    def _traced(self, tracer: GraphTracer, args: tuple[Any, ...]) -> Any:
        leaves, spec = tree_flatten(args)
        positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        tensors = [leaves[i] for i in positions]
        if not tensors or any(instance_of_key(t._keys).depth for t in tensors):
            return self._call(args)
        written = {id(t) for i in self._written for t in _tensors_in(args[i])}
        writes = [at for at, t in enumerate(tensors) if id(t) in written]
        return tracer.opaque(self._record, OpaqueCall(self, leaves, positions, spec), tensors, writes)

    def _call(self, args: tuple[Any, ...]) -> Any:
        tensors = [t for arg in args for t in _tensors_in(arg)]
        kind = tensors[0].device.type if tensors else None
        if kind == "meta":
            if self._fake is None and self._written:
                return None  # of the arguments that it writes, the shapes are known
            if self._fake is None:
                raise NotImplementedError(f"{self._qualname}: no shape function is registered; use register_fake()")
            return self._fake(*args)
        kernel = self._kernels.get(kind) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"{self._qualname} has no kernel for the device {kind!r}, only for "
                + ", ".join(map(repr, self._kernels))
            )
        return kernel(*args)

    def register_kernel(self, device_types: str | Sequence[str] | None, func: Any = None, /) -> Any:
        """Register the function for some types of devices, or for all (None); also a decorator."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            types: Iterable[str | None] = [device_types] if isinstance(device_types, str) else device_types or [None]
            self._kernels.update(dict.fromkeys(types, function))
            return function

        return register if func is None else register(func)

    def register_fake(self, func: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the function for tensors of the device ``meta``, which have shapes and no data. Return it."""
        self._fake = func
        return func

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Register the derivative: ``backward(ctx, *gradients)`` returns the gradient of each input or None.

        ``setup_context(ctx, inputs, output)`` saves what it needs.
        """
        self._node = _node_class(self, backward, setup_context)
        self.has_derivative = True


def _tensors_in(argument: Any) -> list[Tensor]:
    """Return an argument, or the items of a list, that are tensors."""
    return [t for t in (argument if isinstance(argument, (list, tuple)) else (argument,)) if isinstance(t, Tensor)]


def _below_autograd(argument: Any) -> Any:
    """Return an argument, or a list, with detached tensors in place of those that require grad."""
    if isinstance(argument, Tensor):
        return argument.detach() if argument._keys & AUTOGRAD else argument
    return [*map(_below_autograd, argument)] if type(argument) in (list, tuple) else argument


class OpaqueCall:
    """A call of an operator with other tensors in place of those of the traced one."""

    def __init__(self, op: CustomOperator, leaves: Sequence[Any], positions: Sequence[int], spec: TreeSpec) -> None:
        self.op = op
        self.leaves = [None if i in positions else leaf for i, leaf in enumerate(leaves)]
        self.positions = positions
        self.spec = spec

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        leaves = list(self.leaves)
        for i, tensor in zip(self.positions, tensors, strict=True):
            leaves[i] = tensor
        return self.op._call(tree_unflatten(leaves, self.spec))

    def __repr__(self) -> str:
        return f"<{', '.join(repr(leaf) for i, leaf in enumerate(self.leaves) if i not in self.positions)}>"


def _refuse_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> NoReturn:
    raise NotImplementedError(f"{op.name}: the shape of its result is known after a call only")


def _node_class(op: CustomOperator, derivative: Any, setup: Any) -> type[Function]:
    def forward(*args: Any) -> Any:
        return op._run(args)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        if setup is not None:
            setup(ctx, inputs, output)

    def backward(ctx: Any, *gradients: Any) -> Any:
        if derivative is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname} but no autograd formula was registered; use "
                "register_autograd()"
            )
        return derivative(ctx, *gradients)

    members = {"forward": forward, "setup_context": setup_context, "backward": backward}
    return type(op._name, (Function,), {name: staticmethod(member) for name, member in members.items()})


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Declare an opaque operator ``"namespace::name"``, as a decorator of its function; then ``candelabra.ops`` has it.

    ``device_types``: the devices that the function serves, by default all. ``mutates_args``: the names of the arguments
    that a call writes, or ``"unknown"`` for all; their versions advance. ``schema`` and ``tags`` are accepted and have
    no effect: the signature is that of the function. A compiled function has a call as one node of its graph, which it
    neither removes nor repeats; the result may be a tensor or a tuple of tensors, and None if arguments are written.
    Raises ``ValueError`` for a name without a namespace.
    """
    if name.count("::") != 1 or name.startswith("::") or name.endswith("::"):
        raise ValueError(f"custom_op(): expected a name like 'namespace::name', got {name!r}")

    def declare(function: Callable[..., Any]) -> CustomOperator:
        devices = [device_types] if isinstance(device_types, str) else device_types
        DEFINED[name] = op = CustomOperator(name, function, devices, mutates_args)
        return op

    return declare if fn is None else declare(fn)


def register_fake(op: str | CustomOperator, func: Callable[..., Any] | None = None, /, **_: Any) -> Any:
    """Register the shape function of an operator, which may be declared later; also a decorator."""
    if func is None:
        return lambda function: register_fake(op, function)
    name = op if isinstance(op, str) else op._qualname
    if name in DEFINED:
        return DEFINED[name].register_fake(func)
    _fakes[name] = func
    return func


def register_autograd(
    op: str | CustomOperator, backward: Callable[..., Any], /, *, setup_context: Any = None, **_: Any
) -> None:
    """Register the derivative of an operator. Raise ``RuntimeError`` if there is no operator of this name."""
    name = op if isinstance(op, str) else op._qualname
    if name not in DEFINED:
        raise RuntimeError(f"register_autograd(): no operator {name!r} is declared; use candelabra.library.custom_op")
    DEFINED[name].register_autograd(backward, setup_context=setup_context)
