"""A graph of calls that programs may change, and the Python code that it stands for.

Unlike a :class:`candelabra.graph.Graph`, which nothing changes and whose nodes are kernels with shapes, this graph is a
list of calls of any functions, methods and modules. ``candelabra.fx.symbolic_trace`` makes it from a function that is
run without values, and a backend of ``candelabra.compile`` gets one.
"""

from __future__ import annotations

import builtins
import keyword
import operator
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._codegen.source import build_once, source_of
from candelabra.fx.node import Node, map_arg, qualified_name

BINARY: Final = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>",
}  # fmt: skip
"""The functions of ``operator`` that the code shows as operators of Python."""


class PythonCode(NamedTuple):
    """The source of a graph, the objects that its names stand for, and the function."""

    src: str
    globals: dict[str, Any]
    function: Callable[..., Any]


class Graph:
    """Nodes in the order in which they run."""

    def __init__(self, owning_module: Any = None) -> None:
        self.owning_module = owning_module
        self._nodes: list[Node] = []
        self._names: dict[str, int] = {}
        self._position: int | None = None
        """Where nodes are inserted; None: at the end."""

    @property
    def nodes(self) -> list[Node]:
        """The nodes in order. A copy, so that a loop may insert and erase nodes."""
        return list(self._nodes)

    # -- building -----------------------------------------------------------------------------------------------------
    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a node, at the end or where :meth:`inserting_before` says, and return it."""
        node = Node(self, self._new_name(name or _candidate(op, target)), op, target, args or (), kwargs or {})
        node.type = type_expr
        for other in node.all_input_nodes:
            if other.graph is not self:
                raise RuntimeError(f"fx.Graph: the argument {other.name} of {node.name} belongs to another graph")
        if self._position is None:
            self._nodes.append(node)
        else:
            self._nodes.insert(self._position, node)
            self._position += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = None) -> Node:
        """Insert an argument of the graph."""
        args = () if default_value is None else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr, name=name.lstrip("*"))

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert a node that reads an attribute of the module, such as a parameter."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Insert the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Insert the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Insert the call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Insert the node that returns the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """Return the node that returns the result. Raise RuntimeError if there is none."""
        for node in reversed(self._nodes):
            if node.op == "output":
                return node
        raise RuntimeError("fx.Graph: the graph has no output; call output()")

    def _new_name(self, candidate: str) -> str:
        name = re.sub(r"\W", "_", candidate)
        name = f"_{name}" if name[:1].isdigit() or keyword.iskeyword(name) or not name else name
        base, count = name, self._names.get(name, -1) + 1
        if count or hasattr(builtins, name):
            count = max(count, 1)
            name = f"{base}_{count}"
            while name in self._names:
                count += 1
                name = f"{base}_{count}"
        self._names[base] = count
        self._names.setdefault(name, 0)
        return name

    # -- changing -----------------------------------------------------------------------------------------------------
    def inserting_before(self, n: Node | None = None) -> Any:
        """Return a context manager in which nodes are inserted before a node; without one, at the beginning."""
        return self._inserting(0 if n is None else self._nodes.index(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """Return a context manager in which nodes are inserted after a node; without one, at the end."""
        return self._inserting(None if n is None else self._nodes.index(n) + 1)

    @contextmanager
    def _inserting(self, position: int | None) -> Iterator[None]:
        before, self._position = self._position, position
        try:
            yield
        finally:
            self._position = before

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. Raise RuntimeError if another one uses it."""
        if to_erase.users:
            users = ", ".join(node.name for node in to_erase.users)
            raise RuntimeError(
                f"fx.Graph.erase_node({to_erase.name}): {users} still use it; call replace_all_uses_with() first"
            )
        to_erase._set((), {})
        self._nodes.remove(to_erase)

    def _move(self, node: Node, to: Node, offset: int) -> None:
        self._nodes.remove(node)
        self._nodes.insert(self._nodes.index(to) + offset, node)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """Insert a copy of a node of another graph. ``arg_transform`` gives the argument for each of its nodes."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Any]) -> Any:
        """Insert copies of the nodes of another graph, and return its result in this one. ``val_map`` has the values of
        nodes that are not copied, and gets the copies of the others.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                return map_arg(node.args[0], val_map.__getitem__)
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that nothing uses and that have no effect. Return whether there were some."""
        impure = is_impure_node or Node.is_impure
        dead = [node for node in self._nodes if not node.users and not impure(node)]
        for node in reversed(self._nodes[:]):
            if not node.users and not impure(node):
                self.erase_node(node)
        return bool(dead)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes with an op, and a target if one is given."""
        return [node for node in self._nodes if node.op == op and (target is None or node.target == target)]

    def lint(self) -> None:
        """Check that each node uses nodes before it, and that names differ. Raise RuntimeError otherwise."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self._nodes:
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(f"fx.Graph: {node.name} uses {used.name}, which does not come before it")
            if node.name in names:
                raise RuntimeError(f"fx.Graph: two nodes have the name {node.name}")
            names.add(node.name)
            seen.add(node)

    # -- text ---------------------------------------------------------------------------------------------------------
    def python_code(self, root_module: str = "self") -> PythonCode:
        """Return a function ``forward`` that does what the graph does, its source and its globals."""
        writer = _Source(root_module)
        parameters = [root_module]
        lines: list[str] = []
        for node in self._nodes:
            if node.op == "placeholder":
                default = f" = {writer.text(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{default}")
                if node.name != node.target.lstrip("*"):
                    lines.append(f"{node.name} = {node.target.lstrip('*')}")
            elif node.op == "output":
                lines.append(f"return {writer.text(node.args[0])}")
            else:
                lines.append(f"{node.name} = {writer.call(node)}")
        names = {**writer.globals, "__name__": "candelabra.fx.generated"}
        function = build_once("forward", ", ".join(parameters), lines or ["pass"], names, "fx graph")
        return PythonCode(f"\n\n\n{source_of(function)}", writer.globals, function)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        header = ("opcode", "name", "target", "args", "kwargs")
        rows = [(n.op, n.name, n.target_name, str(n.args), str(n.kwargs)) for n in self._nodes]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in (header, tuple(["-" * width for width in widths]), *rows):
            texts = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            sys.stdout.write("  ".join(texts).rstrip() + "\n")

    def __str__(self) -> str:
        arguments = ", ".join(f"%{n.name}" for n in self._nodes if n.op == "placeholder")
        return "\n    ".join([f"graph({arguments}):", *(node.format_node() for node in self._nodes)])


class _Source:
    """Names and texts of one function."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.globals: dict[str, Any] = {}

    def name_of(self, value: Any) -> str:
        """Return the global name of an object."""
        base = re.sub(r"\W", "_", qualified_name(value) if callable(value) else type(value).__name__.lower())
        name, count = base, 0
        while name in self.globals and self.globals[name] is not value:
            count += 1
            name = f"{base}_{count}"
        self.globals[name] = value
        return name

    def text(self, argument: Any) -> str:
        """Return an argument as an expression."""
        if isinstance(argument, Node):
            return argument.name
        if isinstance(argument, tuple) and not hasattr(argument, "_fields") and type(argument) is tuple:
            return f"({', '.join(map(self.text, argument))}{',' if len(argument) == 1 else ''})"
        if type(argument) is list:
            return f"[{', '.join(map(self.text, argument))}]"
        if type(argument) is dict:
            return "{" + ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in argument.items()) + "}"
        if isinstance(argument, slice):
            return f"slice({', '.join(self.text(p) for p in (argument.start, argument.stop, argument.step))})"
        plain = isinstance(argument, (bool, int, str, type(None), type(...)))
        finite = isinstance(argument, float) and abs(argument) < float("inf")
        return repr(argument) if plain or finite else self.name_of(argument)

    def call(self, node: Node) -> str:
        """Return the expression of a node."""
        given = [*map(self.text, node.args), *(f"{key}={self.text(item)}" for key, item in node.kwargs.items())]
        if node.op == "get_attr":
            return self.attribute(node.target)
        if node.op == "call_module":
            return f"{self.attribute(node.target)}({', '.join(given)})"
        if node.op == "call_method":
            return f"{given[0]}.{node.target}({', '.join(given[1:])})"
        name = getattr(node.target, "__name__", "")
        if node.target is getattr(operator, name, None) and not node.kwargs:
            if name in BINARY and len(given) == 2:
                return f"{given[0]} {BINARY[name]} {given[1]}"
            if name == "getitem":
                return f"{given[0]}[{given[1]}]"
            if name == "neg":
                return f"-{given[0]}"
        if node.target is getattr:
            return f"getattr({', '.join(given)})"
        return f"{self.name_of(node.target)}({', '.join(given)})"

    def attribute(self, path: str) -> str:
        """Return the expression of an attribute of the module, whose path may contain numbers."""
        found = self.root
        for part in path.split("."):
            found = f"{found}.{part}" if part.isidentifier() else f"getattr({found}, {part!r})"
        return found


def _candidate(op: str, target: Any) -> str:
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if op in ("get_attr", "call_module"):
        return name.replace(".", "_")
    return name.strip("_") or name


__all__ = ["Graph", "PythonCode"]


def __dir__() -> list[str]:
    return sorted(__all__)
