"""One node of a graph of calls: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra.fx.graph import Graph

OPCODES: Final = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
"""What a node does: take an argument, read an attribute of the module, call something, or return its argument."""


def map_arg(argument: Any, function: Callable[[Node], Any]) -> Any:
    """Return an argument with every node in it, also in containers, replaced by the result of ``function``."""
    if isinstance(argument, Node):
        return function(argument)
    if isinstance(argument, (tuple, list)):
        items = [map_arg(item, function) for item in argument]
        return type(argument)(*items) if hasattr(argument, "_fields") else type(argument)(items)
    if isinstance(argument, dict):
        return {key: map_arg(item, function) for key, item in argument.items()}
    if isinstance(argument, slice):
        return slice(*(map_arg(part, function) for part in (argument.start, argument.stop, argument.step)))
    return argument


def map_aggregate(argument: Any, function: Callable[[Any], Any]) -> Any:
    """Return an argument with every leaf of its containers replaced by the result of ``function``."""
    if isinstance(argument, (tuple, list)):
        items = [map_aggregate(item, function) for item in argument]
        return type(argument)(*items) if hasattr(argument, "_fields") else type(argument)(items)
    if isinstance(argument, dict):
        return {key: map_aggregate(item, function) for key, item in argument.items()}
    return function(argument)


class Node:
    """A call. ``op`` is one of ``OPCODES``; ``target`` the function, or the name of a method, module or attribute.

    ``args`` and ``kwargs`` contain the nodes whose results are arguments. ``users`` are the nodes that use the result.
    ``meta`` is free for passes.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if op not in OPCODES:
            raise ValueError(f"fx.Node: expected an op among {', '.join(OPCODES)}, got {op!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.type: Any = None
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, value: tuple[Any, ...]) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Any]) -> None:
        self._set(self._args, value)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = tuple(args), dict(kwargs)
        for node in self.all_input_nodes:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda node: found.setdefault(node))
        return list(found)

    @property
    def next(self) -> Node:
        """The next node of the graph. Raise IndexError after the last one."""
        return self.graph._nodes[self.graph._nodes.index(self) + 1]

    @property
    def prev(self) -> Node:
        """The node before this one. Raise IndexError before the first one."""
        position = self.graph._nodes.index(self)
        if not position:
            raise IndexError(f"{self.name} is the first node of its graph")
        return self.graph._nodes[position - 1]

    def replace_all_uses_with(self, replace_with: Node) -> list[Node]:
        """Let every user of this node use another one. Return the users."""
        users = list(self.users)
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace a node among the arguments."""
        args, kwargs = map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node)
        self._set(args, kwargs)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at an index."""
        args = list(self._args)
        args[idx] = arg
        self._set(tuple(args), self._kwargs)

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set an argument by name."""
        self._set(self._args, {**self._kwargs, key: arg})

    def append(self, x: Node) -> None:
        """Move another node of the graph behind this one."""
        self.graph._move(x, self, 1)

    def prepend(self, x: Node) -> None:
        """Move another node of the graph in front of this one."""
        self.graph._move(x, self, 0)

    def is_impure(self) -> bool:
        """Return whether the node has an effect besides its result, so that it stays without users."""
        if self.op in ("placeholder", "output"):
            return True
        name = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", "")
        writes = self.op in ("call_function", "call_method") and name.endswith("_") and not name.endswith("__")
        return writes or bool(getattr(self.target, "is_impure", False)) or "out" in self._kwargs

    def format_node(self) -> str:
        """Return the node as a line of ``print(graph)``."""
        if self.op == "placeholder":
            default = f"(default={self._args[0]!r})" if self._args else ""
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {_shown(self._args[0])}"
        given = f"(args = {_shown(self._args)}, kwargs = {_shown(self._kwargs)})" if self.op != "get_attr" else ""
        return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self.target_name}]{given}"

    @property
    def target_name(self) -> str:
        """The target as a text: a qualified name for a function."""
        return self.target if isinstance(self.target, str) else qualified_name(self.target)

    def __repr__(self) -> str:
        return self.name


def qualified_name(function: Any) -> str:
    """Return the module and name of a function."""
    name = getattr(function, "__name__", None) or type(function).__name__
    module = (getattr(function, "__module__", "") or "").replace("_operator", "operator")
    return name if module in ("", "builtins") else f"{module}.{name}"


def _shown(argument: Any) -> str:
    """Return an argument as text, with ``%`` in front of nodes."""
    if isinstance(argument, Node):
        return f"%{argument.name}"
    if isinstance(argument, tuple):
        return f"({', '.join(map(_shown, argument))}{',' if len(argument) == 1 else ''})"
    if isinstance(argument, list):
        return f"[{', '.join(map(_shown, argument))}]"
    if isinstance(argument, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in argument.items()) + "}"
    return str(argument)


__all__ = ["OPCODES", "Node", "map_aggregate", "map_arg", "qualified_name"]


def __dir__() -> list[str]:
    return sorted(__all__)
