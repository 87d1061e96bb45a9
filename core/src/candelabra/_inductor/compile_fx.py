"""PyTorch's name of the function that compiles a GraphModule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from candelabra._annotations import Any
from candelabra._compile.backends import graph_compiler
from candelabra._compile.calling import CompiledFunction


def compile_fx(gm: Any, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None) -> Any:
    """Return a function that does what a GraphModule does, compiled by the device.

    A backend of the program calls it after it has changed the graph. Each kind of inputs is compiled at its first call.
    """
    return CompiledFunction(gm, True, graph_compiler(None, None, options))


__all__ = ["compile_fx"]
