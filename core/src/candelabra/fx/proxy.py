"""Trace a function without values: its arguments are proxies, and each call of a proxy becomes a node.

Attribution: ``torch.fx`` (Reed, DeVito, He, Ussery, Ansel 2022).
"""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from candelabra._annotations import Any
from candelabra._tensor import Tensor
from candelabra.fx.graph import Graph
from candelabra.fx.node import Node, map_aggregate

_WRAPPED: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}
"""The functions that ``wrap`` keeps whole: the globals in which they stand, and their names."""


class TraceError(ValueError):
    """A traced function needs a value that a trace without values does not have."""


class Proxy:
    """The result of a node, while a function is traced. Calls with a proxy among the arguments become nodes."""

    def __init__(self, node: Node, tracer: Tracer) -> None:
        self.node = node
        self.tracer = tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("_"):  # dispatch looks for those of a tensor
            raise AttributeError(f"a traced value has no attribute {name!r}")
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __bool__(self) -> bool:
        raise TraceError(
            f"symbolically traced variables cannot be used as inputs to control flow: the truth of {self.node.name} is "
            "not known while tracing; pass concrete_args for the arguments that it depends on, or use "
            "candelabra.compile, which follows the branch that is taken"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TraceError(
            f"Proxy object cannot be iterated: the length of {self.node.name} is not known while tracing; unpack it by "
            "indices, or pass concrete_args"
        )

    def __len__(self) -> int:
        raise RuntimeError(
            f"'len' is not supported in symbolic tracing: the length of {self.node.name} is not known; call "
            "candelabra.fx.wrap('len') at module level to keep the call as a node"
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the call of one of candelabra's functions."""
        tracers: list[Tracer] = []
        map_aggregate(
            (tuple(args), kwargs or {}), lambda leaf: tracers.append(leaf.tracer) if isinstance(leaf, Proxy) else None
        )
        name = getattr(func, "__name__", "")
        if getattr(Tensor, name, None) is func and getattr(func, "__objclass__", None) is not None:
            return tracers[0].create_proxy("call_method", name, tuple(args), kwargs or {})
        return tracers[0].create_proxy("call_function", func, tuple(args), kwargs or {})


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, otherwise a node that reads it."""

    def __init__(self, root: Proxy, name: str) -> None:
        self.root = root
        self.attribute = name
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]  # it is created when something uses the attribute
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attribute), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attribute, (self.root, *args), kwargs)


def _method(name: str, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def call(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return call


def _give_operators() -> None:
    binary = [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "lshift",
        "rshift",
        "and",
        "or",
        "xor",
    ]
    for name in (*binary, *["lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "abs"]):
        setattr(Proxy, f"__{name}__", _method(name, False))
    for name in binary:
        setattr(Proxy, f"__r{name}__", _method(name, True))
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ is a node


_give_operators()


class Tracer:
    """Traces functions and modules. A subclass decides which modules stay calls of modules (:meth:`is_leaf_module`)."""

    graph: Graph
    root: Any

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return whether the call of a module is one node: for those of candelabra.nn but containers."""
        home = type(m).__module__
        return home.startswith("candelabra.nn") and not hasattr(m, "append")

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None) -> Node:
        """Insert a node into the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name)

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None) -> Proxy:
        """Insert a node, whose arguments may contain proxies, and return its proxy."""
        node = self.create_node(kind, target, self.create_arg(tuple(args)), self.create_arg(dict(kwargs)), name)
        return self.proxy(node)

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """Return an argument of a node: proxies become nodes, and tensors attributes of the module."""

        def converted(leaf: Any) -> Any:
            if isinstance(leaf, Proxy):
                return leaf.node
            if isinstance(leaf, slice):
                return slice(*(converted(part) for part in (leaf.start, leaf.stop, leaf.step)))
            if isinstance(leaf, Tensor):
                return self.graph.get_attr(self._path_of_tensor(leaf))
            return leaf

        return map_aggregate(a, converted)

    def _path_of_tensor(self, tensor: Tensor) -> str:
        """Return the attribute of the root that a tensor is. One that is none becomes ``_tensor_constant<n>``."""
        for kind in ("named_parameters", "named_buffers"):
            for path, found in getattr(self.root, kind, dict)() if hasattr(self.root, kind) else ():
                if found is tensor:
                    return str(path)
        for name, found in self.constants.items():
            if found is tensor:
                return name
        name = f"_tensor_constant{len(self.constants)}"
        self.constants[name] = tensor
        return name

    def path_of_module(self, mod: Any) -> str:
        """Return the path of a submodule of the root. Raise NameError if it is none."""
        for path, found in self.root.named_modules():
            if found is mod:
                return str(path)
        raise NameError(f"fx: the module {type(mod).__name__} that is called is no submodule of the traced one")

    def call_module(self, m: Any, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Record the call of a module, or trace into it."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a function or module. ``concrete_args``: values of arguments, which the trace uses; the
        graph ignores what is passed for them.
        """
        self.root = root if hasattr(root, "named_modules") else {}
        self.graph = Graph(root)
        self.constants: dict[str, Tensor] = {}
        function = root.forward if hasattr(root, "named_modules") else root
        args, kwargs = self._arguments(function, concrete_args or {})
        with _modules_traced(self), _wrapped_functions(self):
            result = function(*args, **kwargs)
        self.graph.output(self.create_arg(result))
        return self.graph

    def _arguments(self, function: Callable[..., Any], concrete: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
            default = () if parameter.default is parameter.empty or star else (parameter.default,)
            node = self.graph.create_node("placeholder", star + name, default, name=name)
            value = concrete[name] if name in concrete else self.proxy(node)
            if star:
                raise TraceError(f"fx: {star}{name} has no fixed number of arguments; trace a function that names them")
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs


@contextmanager
def _modules_traced(tracer: Tracer) -> Iterator[None]:
    """Inside the block, calls of modules with proxies go to the tracer, and parameters of the root become nodes."""
    if not tracer.root:
        yield
        return
    from candelabra.nn.modules.module import Module

    original = Module.__call__

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        return tracer.call_module(module, lambda *a, **k: original(module, *a, **k), args, kwargs)

    Module.__call__ = call  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Module.__call__ = original  # type: ignore[method-assign]


@contextmanager
def _wrapped_functions(tracer: Tracer) -> Iterator[None]:
    """Inside the block, the functions that ``wrap`` names record their calls with proxies."""
    replaced: list[Any] = []
    for space, name in list(_WRAPPED.values()):
        original = space.get(name, getattr(builtins, name, None))
        replaced.append((space, name, space.get(name, replaced)))
        space[name] = _recording(tracer, original)
    try:
        yield
    finally:
        for space, name, before in replaced:
            if before is replaced:
                del space[name]
            else:
                space[name] = before


def _recording(tracer: Tracer, function: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[None] = []
        map_aggregate((args, kwargs), lambda leaf: found.append(None) if isinstance(leaf, Proxy) else None)
        return tracer.create_proxy("call_function", function, args, kwargs) if found else function(*args, **kwargs)

    return call


def wrap(fn_or_name: Any) -> Any:
    """Keep a function whole while tracing: called at module level with its name, or as a decorator. Return it."""
    if isinstance(fn_or_name, str):
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        space, name = frame.f_back.f_globals, fn_or_name
    elif callable(fn_or_name):
        space, name = fn_or_name.__globals__, fn_or_name.__name__
    else:
        raise RuntimeError(f"fx.wrap(): expected a function or its name, got {type(fn_or_name).__name__}")
    _WRAPPED[id(space), name] = (space, name)
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> Any:
    """Trace a function or module without values, and return a GraphModule.

    ``concrete_args`` gives arguments that the trace needs as values: those by which the function branches. Raises
    :class:`TraceError` for a branch, or a loop, that depends on the value of another argument.
    """
    from candelabra.nn.modules.graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if hasattr(root, "named_modules") else root.__name__
    attributes = _Attributes(root, tracer.constants)
    return GraphModule(attributes, graph, name)


class _Attributes:
    """The attributes of a traced module, and the tensors that the function refers to."""

    def __init__(self, root: Any, constants: dict[str, Tensor]) -> None:
        self.root = root
        self.training = getattr(root, "training", True)
        vars(self).update(constants)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.root, name)


__all__ = ["Attribute", "Proxy", "TraceError", "Tracer", "symbolic_trace", "wrap"]


def __dir__() -> list[str]:
    return sorted(__all__)
