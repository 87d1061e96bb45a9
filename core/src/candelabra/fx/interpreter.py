"""Run a graph node by node, and build a changed graph while doing so."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra._annotations import Any
from candelabra.fx.graph import Graph
from candelabra.fx.node import Node, map_arg
from candelabra.fx.proxy import Proxy, Tracer


class Interpreter:
    """Runs the graph of a GraphModule. A subclass changes what a kind of node does."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        """The values of the nodes that have run."""
        self.garbage_collect_values = garbage_collect_values
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph, and return its result."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        last = {used: node for node in self.graph.nodes for used in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in node.all_input_nodes:
                    if last[used] is node:
                        self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """Run one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node, with values for nodes."""
        args, kwargs = map_arg((n.args, n.kwargs), self.env.__getitem__)
        return args, kwargs

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the next argument, or its default."""
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"fx.Interpreter.run(): the argument {target!r} is missing and has no default")

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute of the module at a path."""
        found = self.module
        for part in target.split("."):
            found = getattr(found, part)
        return found

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the result."""
        return args[0]


class Transformer(Interpreter):
    """Builds a new graph by running the old one on proxies. A subclass returns other proxies for a kind of node."""

    def __init__(self, module: Any) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.tracer = Tracer()
        self.tracer.root, self.tracer.graph, self.tracer.constants = module, Graph(), {}
        self.new_graph = self.tracer.graph

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> Any:
        """Return a GraphModule with the new graph."""
        from candelabra.nn.modules.graph_module import GraphModule

        self.new_graph.output(self.tracer.create_arg(self.run()))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph on proxies."""
        return super().run(*args, initial_env=initial_env)


__all__ = ["Interpreter", "Transformer"]


def __dir__() -> list[str]:
    return sorted(__all__)
