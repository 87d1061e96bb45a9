"""A module whose ``forward`` is generated from a graph of calls: ``candelabra.fx.GraphModule``."""

from __future__ import annotations

import copy
import sys
from typing import Any

from candelabra.fx.graph import Graph
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = ["GraphModule"]


class GraphModule(Module):
    """``graph`` as a module. ``root``, a module or a dict, has the attributes and submodules that the nodes name.

    ``forward`` is generated when ``graph`` is set, and again by :meth:`recompile`, after changes of the graph.
    Attributes that no node names are not copied.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # A class of its own, since ``forward`` belongs to the class.
        made: GraphModule = super().__new__(type(cls.__name__, (cls,), {"__module__": cls.__module__}))
        return made

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = type(self).__qualname__ = class_name
        paths = dict.fromkeys(node.target for node in graph.nodes if node.op in ("get_attr", "call_module"))
        for path in paths:
            self._copy_attribute(root, path)
        self.training = getattr(root, "training", True)
        self.graph = graph

    def _copy_attribute(self, root: Any, path: str) -> None:
        *prefix, name = path.split(".")
        if isinstance(root, dict):
            if path not in root:
                raise RuntimeError(f"GraphModule: a node of the graph names {path!r}, which the dict does not contain")
            value = root[path]
        else:
            value = root
            for part in (*prefix, name):
                if not hasattr(value, part):
                    raise RuntimeError(f"GraphModule: a node of the graph names {path!r}, which the module has not")
                value = getattr(value, part)
        target: Module = self
        for part in prefix:
            if not hasattr(target, part):
                target.add_module(part, Module())
            target = getattr(target, part)
        if isinstance(value, Module):
            target.add_module(name, value)
        elif not isinstance(value, Parameter) and hasattr(value, "_payload"):
            target.register_buffer(name, value)
        else:
            setattr(target, name, value)

    @property
    def graph(self) -> Graph:
        """The graph. Call :meth:`recompile` after changes of it."""
        found: Graph = self.__dict__["_graph"]
        return found

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of ``forward``."""
        found: str = self.__dict__["_code"]
        return found

    def recompile(self) -> Any:
        """Generate ``forward`` from the graph, and return its source with the objects that it names."""
        generated = self.graph.python_code("self")
        self.__dict__["_code"] = generated.src
        setattr(type(self), "forward", generated.function)  # noqa: B010  # the class is this instance's alone
        return generated

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Return the source as a class, and print it unless ``print_output`` is False."""
        body = "".join(f"    {line}\n" if line else "\n" for line in self.code.strip().splitlines())
        text = f"class {type(self).__name__}(candelabra.nn.Module):\n{body}"
        if print_output:
            sys.stdout.write(text + "\n")
        return text

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        graph = Graph()
        values: dict[Any, Any] = {}
        graph.output(graph.graph_copy(self.graph, values))
        made = GraphModule(self, graph, type(self).__name__)
        for kind in ("_parameters", "_buffers", "_modules"):
            made.__dict__[kind] = copy.deepcopy(self.__dict__[kind], memo)
        made.training = self.training
        return made


def __dir__() -> list[str]:
    return sorted(__all__)
