"""Backends of ``compile``, which compile recorded graphs to functions.

The default is the compiler of the graph's device. A program may have one of its own, as for PyTorch:
``backend(graph_module, example_inputs)`` returns a function of tensors. Forward and backward passes are
graphs of their own, after autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._compile.config import config
from candelabra._compile.graph_modules import CompilerError, example_inputs, graph_module, on_payloads, retraced
from candelabra._compile.observing import counters
from candelabra._compile.pytorch_options import without_effect
from candelabra._dispatch.tracing import untraced
from candelabra._graph.compiling import compile_graph
from candelabra._graph.packing import with_packed_operands
from candelabra._graph.passes import simplified
from candelabra._graph.running import runner
from candelabra._graph.structure import Graph, Value
from candelabra._keys import LAYER_MASK, NO_GRAD, mode
from candelabra._tensor import Tensor

Run = Callable[..., tuple[Any, ...]]
MODES: Final[dict[str, dict[str, Any]]] = {
    "default": {}, "reduce-overhead": {}, "max-autotune": {}, "max-autotune-no-cudagraphs": {},
}  # fmt: skip
"""PyTorch's modes, and the options that each stands for: none, since a compiled function has no slower form."""
OPTIONS: Final[dict[str, type]] = {"fuse": bool, "passes": tuple}
"""The options of ``compile``. ``fuse``: let the device compile graphs; otherwise one kernel per node runs."""


class CompiledGraph(NamedTuple):
    """A graph as it is called, its function, and whether the nodes that it has prepared are part of it."""

    graph: Graph
    run: Run


class GraphCompiler:
    """How the graphs of one compiled function become functions of payloads."""

    name = "candelabra"
    at_once = False
    """Whether a segment is compiled when it occurs for the first time, and not for the second."""

    def __init__(self, fuse: bool = True, passes: Sequence[Callable[[Any], Any]] = ()) -> None:
        self.fuse, self.passes = fuse, tuple(passes)

    def __call__(
        self, graph: Graph, tensors: Mapping[Value, Tensor], is_fixed: Callable[[Value], bool] = lambda _: False
    ) -> CompiledGraph:
        """Compile a graph. ``tensors``: those from outside. ``is_fixed`` tells those that rarely change."""
        passes = (*self.passes, *config.passes)
        if passes and graph.nodes and not any(value.is_number for value in graph.inputs):
            graph = simplified(graph)
            return CompiledGraph(graph, self._changed(graph, passes))
        packed = with_packed_operands(simplified(graph), is_fixed)
        return CompiledGraph(packed, compile_graph(packed) if self.fuse else runner(packed))

    def _changed(self, graph: Graph, passes: Iterable[Callable[[Any], Any]]) -> Run:
        """Compile a graph that passes of the program have changed."""
        module = graph_module(graph)
        for each in passes:
            each(module.graph)
        module.graph.lint()
        module.recompile()
        changed = simplified(retraced(module, graph))
        run = compile_graph(changed) if self.fuse else runner(changed)
        extra = tuple([changed.captured[value]._payload for value in changed.inputs[len(graph.inputs) :]])
        if not extra:
            return run
        bound: Any = lambda *payloads: run(*payloads, *extra)  # noqa: E731  # an attribute follows
        bound.graph = getattr(run, "graph", changed)
        return bound  # type: ignore[no-any-return]


class ProgramCompiler(GraphCompiler):
    """A backend of the program."""

    at_once = True

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        self.function, self.options = function, options
        self.name = getattr(function, "__name__", None) or type(function).__name__

    def __call__(
        self, graph: Graph, tensors: Mapping[Value, Tensor], is_fixed: Callable[[Value], bool] = lambda _: False
    ) -> CompiledGraph:
        graph = simplified(graph)
        if not graph.nodes:
            return CompiledGraph(graph, runner(graph))
        module, examples = graph_module(graph), example_inputs(graph, {**tensors, **graph.captured})
        try:
            with untraced(), mode(include=NO_GRAD, exclude=LAYER_MASK):
                function = self.function(module, examples, **self.options)
        except Exception as error:
            if config.suppress_errors:
                counters["backend_errors"][self.name] += 1
                return CompiledGraph(graph, compile_graph(graph))
            raise CompilerError(f"backend={self.name!r} raised:\n{type(error).__name__}: {error}") from error
        if not callable(function):
            raise CompilerError(
                f"backend={self.name!r} returned {type(function).__name__}, expected a function of the graph's inputs, "
                "such as gm.forward"
            )
        return CompiledGraph(graph, on_payloads(function, graph, self.name))


def _eager() -> GraphCompiler:
    return GraphCompiler(fuse=False)


_BUILT_IN: Final[dict[str, tuple[Callable[[], GraphCompiler], tuple[str, ...]]]] = {
    "candelabra": (GraphCompiler, ()),
    "inductor": (GraphCompiler, ()),
    "eager": (_eager, ("debug",)),
    "aot_eager": (_eager, ("debug",)),
}
"""The names of the core's: the device's compiler, also by the name of PyTorch's, and one kernel per node."""
_registered: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {}


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Give a backend of the program a name for ``compile(backend=name)``; also a decorator. Return the function.

    ``compiler_fn(graph_module, example_inputs)`` returns a function of the graph's inputs, which returns a tuple with a
    tensor for each output. ``tags`` are for ``list_backends``. Raises ``ValueError`` for a name that is in use.
    """
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend() expects a function, not {type(compiler_fn).__name__}")
    name = name or compiler_fn.__name__
    if name in _BUILT_IN or _registered.get(name, (compiler_fn,))[0] is not compiler_fn:
        raise ValueError(f"register_backend(): the name {name!r} belongs to another backend; pass name=")
    _registered[name] = (compiler_fn, tuple(tags))
    return compiler_fn


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """Return the names of the backends that have none of the tags."""
    excluded = set(exclude_tags or ())
    tagged = [*((name, tags) for name, (_, tags) in _BUILT_IN.items()), *((n, t) for n, (_, t) in _registered.items())]
    return sorted(name for name, tags in tagged if not excluded.intersection(tags))


def lookup_backend(compiler_fn: Any) -> Any:
    """Return the backend of a name: the function that was registered, or the core's. A function is returned as it is.

    Raises ``RuntimeError`` for an unknown name.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _registered:
        return _registered[compiler_fn][0]
    if compiler_fn in _BUILT_IN:
        return _BUILT_IN[compiler_fn][0]
    raise RuntimeError(
        f"compile(): invalid backend {compiler_fn!r}: expected a function, or a name among "
        f"{', '.join(list_backends(None))}; candelabra.compiler.register_backend adds names"
    )


def graph_compiler(backend: Any, mode_name: str | None, options: Mapping[str, Any] | None) -> GraphCompiler:
    """Return how ``compile`` with these arguments compiles graphs.

    Raises ``RuntimeError`` for an unknown backend, mode or option, and for a mode with options.
    """
    found = lookup_backend("candelabra" if backend is None else backend)
    if mode_name is not None and options:
        raise RuntimeError("compile(): either mode or options can be specified, but both can't be at the same time")
    if mode_name is not None and mode_name not in MODES:
        raise RuntimeError(f"compile(): unrecognized mode={mode_name}, should be one of: {', '.join(MODES)}")
    if isinstance(backend, str | None) and (backend or "candelabra") in _BUILT_IN:
        compiler: GraphCompiler = found()
        for name, value in (options or {}).items():
            _set_option(compiler, name, value)
        return compiler
    if not callable(found):
        raise TypeError(f"compile(): backend must be a function or a name, not {type(found).__name__}")
    given = {"options": dict(options)} if options else {}
    return ProgramCompiler(found, **({"mode": mode_name, **given} if mode_name is not None else given))


def _set_option(compiler: GraphCompiler, name: str, value: Any) -> None:
    if name not in OPTIONS:
        if without_effect(name):
            return
        raise RuntimeError(f"compile(): unexpected option {name}, known options are {', '.join(OPTIONS)}")
    value = tuple(value) if OPTIONS[name] is tuple and isinstance(value, (list, tuple)) else value
    if not isinstance(value, OPTIONS[name]):
        raise RuntimeError(f"compile(): the option {name} expects {OPTIONS[name].__name__}, got {type(value).__name__}")
    setattr(compiler, name, value)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Return the options that a mode of ``compile`` stands for, or those of all modes, by mode."""
    if mode is None:
        return {name: dict(options) for name, options in MODES.items()}
    if mode not in MODES:
        raise RuntimeError(f"list_mode_options(): unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    return dict(MODES[mode])


def list_options() -> list[str]:
    """Return the names of the options of ``compile``."""
    return list(OPTIONS)


__all__ = [
    "CompilerError", "GraphCompiler", "graph_compiler", "list_backends", "list_mode_options", "list_options",
    "lookup_backend", "register_backend",
]  # fmt: skip
