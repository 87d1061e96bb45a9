"""Operators of programs, as ``torch.library.custom_op`` declares them: a function, its kernels and its derivative.

They are opaque: no record, key or documentation, and autograd sees one node. An operator that is declared by
:func:`candelabra.library.operator` has all of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence

from candelabra._annotations import Any, Final
from candelabra._tensor import Tensor
from candelabra.autograd.function import Function

DEFINED: Final[dict[str, CustomOperator]] = {}
"""The operators by their qualified names, ``"namespace::name"``."""
_fakes: Final[dict[str, Callable[..., Any]]] = {}
"""Shape functions that were registered before their operator."""


class CustomOperator:
    """One operator of a program; the result of :func:`custom_op`, called like the function that it decorates."""

    def __init__(self, name: str, function: Callable[..., Any], devices: Sequence[str] | None) -> None:
        self._qualname = name
        self._name = name.partition("::")[2]
        self.__doc__, self.__name__ = function.__doc__, self._name
        self._signature = inspect.signature(function)
        self._kernels: dict[str | None, Callable[..., Any]] = dict.fromkeys(devices or (None,), function)
        self._fake: Callable[..., Any] | None = _fakes.pop(name, None)
        self._node: type[Function] = _node_class(self, None, None)

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

    def _run(self, args: tuple[Any, ...]) -> Any:
        tensors = [t for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)) if isinstance(t, Tensor)]
        kind = tensors[0].device.type if tensors else None
        if kind == "meta":
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

    ``device_types``: the devices that the function serves, by default all. ``mutates_args``, ``schema`` and ``tags``
    are accepted and have no effect: the signature is that of the function. Raises ``ValueError`` for a name without a
    namespace.
    """
    if name.count("::") != 1 or name.startswith("::") or name.endswith("::"):
        raise ValueError(f"custom_op(): expected a name like 'namespace::name', got {name!r}")

    def declare(function: Callable[..., Any]) -> CustomOperator:
        devices = [device_types] if isinstance(device_types, str) else device_types
        DEFINED[name] = op = CustomOperator(name, function, devices)
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
