"""What the compiler has done: counters, and logs of graphs, breaks, guards, fusion and generated code.

``set_logs`` selects what is logged, each under a logger ``candelabra.compiler.<name>``. Nothing is formatted for a log
that is off.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter, defaultdict

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.source import source_of
from candelabra._compile.graph_modules import graph_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra._compile.calling import CompiledFunction
    from candelabra._compile.first_call import Program
    from candelabra._graph.structure import Graph

counters: Final[defaultdict[str, Counter[str]]] = defaultdict(Counter)
"""What was counted in this process: ``frames`` (``total`` traced calls, ``ok`` programs), ``stats`` (``unique_graphs``,
``calls_captured``), ``graph_break`` by reason, ``recompiles`` by function, ``inductor`` (``pattern_matcher_count``)."""

ARTIFACTS: Final[dict[str, str]] = {
    "graph": "the graph of each program, with shapes and the user's lines",
    "graph_code": "the graphs as Python code",
    "graph_breaks": "why a function runs in segments or eagerly, with the user's line",
    "recompiles": "why a function that has a program is compiled again",
    "guards": "what each program checks before it runs",
    "fusion": "the groups of operators that run as one kernel",
    "output_code": "the generated function of each program",
    "aot_graphs": "the graphs of forward and backward passes",
}
"""The logs, and what they contain."""
COMPONENTS: Final = ("all", "dynamo", "aot", "inductor")
"""PyTorch's parts of the compiler, which take a level of ``logging``: from INFO on, each compilation is logged."""
LOGGER: Final = logging.getLogger("candelabra.compiler")


class _Handler(logging.StreamHandler[Any]):
    """Writes to ``sys.stderr`` as it is at the time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None: ...


def default_formatter() -> logging.Formatter:
    """Return the formatter by ``CANDELABRA_LOGS_FORMAT`` or ``TORCH_LOGS_FORMAT``; empty: messages alone."""
    text = os.environ.get("CANDELABRA_LOGS_FORMAT", os.environ.get("TORCH_LOGS_FORMAT"))
    return logging.Formatter("[%(name)s] %(message)s" if text is None else text or None)


def set_formatter(formatter: logging.Formatter) -> None:
    """Write the logs in another format."""
    _install(formatter)


def set_logs(*, modules: dict[str, int | bool] | None = None, **selected: int | bool | None) -> None:
    """Select what is logged to ``sys.stderr``: ``set_logs(graph_breaks=True, recompiles=True)``; the rest is off.

    Names are those of ``compiler.LOGS``; ``all``, ``dynamo``, ``aot`` and ``inductor`` take a level of ``logging``, and
    log each compilation. ``modules`` sets levels of other loggers. False turns a log off. Raises ``ValueError`` for
    another name.
    """
    for name in selected:
        if name not in ARTIFACTS and name not in COMPONENTS:
            known = ", ".join([*ARTIFACTS, *COMPONENTS])
            raise ValueError(f"set_logs(): there is no log {name!r}; expected one of {known}")
    _install(None)
    for name in ARTIFACTS:
        LOGGER.getChild(name).setLevel(logging.DEBUG if selected.get(name) else logging.CRITICAL + 1)
    levels = [int(selected[name] or 0) for name in COMPONENTS if selected.get(name)]
    LOGGER.setLevel(min(levels) if levels else logging.WARNING)
    for module, level in (modules or {}).items():
        logging.getLogger(module).setLevel(level if type(level) is int else logging.DEBUG if level else logging.NOTSET)


def _install(formatter: logging.Formatter | None) -> None:
    """Give the logger its handler, and the handler a format; None: keep it."""
    handler = next((h for h in LOGGER.handlers if isinstance(h, _Handler)), None)
    if handler is None:
        handler, formatter = _Handler(), formatter or default_formatter()
        LOGGER.addHandler(handler)
        LOGGER.propagate = False
    if formatter is not None:
        handler.setFormatter(formatter)


def configure_from_environment() -> None:
    """Select the logs that ``CANDELABRA_LOGS`` or ``TORCH_LOGS`` names, as in ``"graph_breaks,+dynamo"``."""
    text = os.environ.get("CANDELABRA_LOGS", os.environ.get("TORCH_LOGS", ""))
    selected: dict[str, int | bool] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name = word.lstrip("+-")
        if name in ARTIFACTS:
            selected[name] = not word.startswith("-")
        elif name in COMPONENTS:
            selected[name] = {"+": logging.DEBUG, "-": logging.ERROR}.get(word[0], logging.INFO)
    if selected:
        set_logs(modules=None, **selected)


def _log(name: str, text: Callable[[], str]) -> None:
    logger = LOGGER.getChild(name)
    if logger.isEnabledFor(logging.DEBUG) and logger.level == logging.DEBUG:
        logger.debug("%s", text())


# -- events -----------------------------------------------------------------------------------------------------------
def tracing_begins(function: CompiledFunction, kinds: int) -> None:
    """A call is traced. ``kinds``: how many programs the function has."""
    counters["frames"]["total"] += 1
    LOGGER.info("tracing %s, program %d", function.title, kinds)


def recompiles(function: CompiledFunction, change: str) -> None:
    """A function that has programs is compiled for another kind of call."""
    counters["recompiles"][function.title] += 1
    _log("recompiles", lambda: f"Recompiling function {function.title}\n    triggered by a change of {change}")


def breaks(function: CompiledFunction, reason: str, how: str) -> None:
    """A function is no single graph, or has too many kinds of calls."""
    counters["graph_break"][reason] += 1
    _log("graph_breaks", lambda: f"Graph break in {function.title}: it runs {how}, since {reason}")


def broken(pieces: list[int]) -> None:
    """A traced call is no single graph. ``pieces``: the numbers of operators between its breaks."""
    counters["stats"]["unique_graphs"] += len(pieces)
    counters["stats"]["calls_captured"] += sum(pieces)


def compiled(function: CompiledFunction, program: Program) -> None:
    """A program was made."""
    graphs = [(graph, run, "") for graph, run in zip(program.graphs, program.runs, strict=True) if graph.nodes]
    if program.derivative is not None:
        graphs.append((program.derivative.graph, program.derivative.run, ", backward"))
    counters["frames"]["ok"] += 1
    if not function.is_segment:  # the pieces of a call were counted when it was traced
        counters["stats"]["unique_graphs"] += len(graphs)
        counters["stats"]["calls_captured"] += sum(len(graph) for graph, _, _ in graphs)
    LOGGER.debug("compiled %s: %d graphs", function.title, len(graphs))
    for graph, run, part in graphs:
        title = f"{function.title}{part}"
        _log("graph", lambda: f"TRACED GRAPH of {title}\n{graph}")  # noqa: B023  # it is called at once
        if part or program.derivative is not None:
            _log("aot_graphs", lambda: f"TRACED GRAPH of {title}\n{graph}")  # noqa: B023
        _log("graph_code", lambda: f"TRACED GRAPH of {title}\n{_code(graph)}")  # noqa: B023
        _log("fusion", lambda: f"FUSION of {title}\n{_fused(graph, run)}")  # noqa: B023
    _log("guards", lambda: f"GUARDS of {function.title}\n{_guards(program)}")
    _log("output_code", lambda: f"OUTPUT CODE of {function.title}\n{program_sources(program)}")


def _code(graph: Graph) -> str:
    text: str = graph_module(graph).print_readable(print_output=False)
    return text


def _fused(graph: Graph, run: Any) -> str:
    """Return a line for each kernel of the graph as it runs."""
    shown = getattr(run, "graph", graph)
    kernels = [node for node in shown if not node.is_view]
    lines = [f"{len(graph)} operators, {len(kernels)} kernels:", *(f"    {node.name}" for node in kernels)]
    return "\n".join(lines)


def _guards(program: Program) -> str:
    return "\n".join(f"    {line}" for line in guard_lines(program)) or "    none"


def guard_lines(program: Program) -> list[str]:
    """Return what a program checks: the kinds of its arguments, and what the function refers to."""
    return [*program.arguments, *(where for _, where in program.environment.reasons)]


def program_sources(program: Program) -> str:
    """Return the generated function, and those of its graphs."""
    runs = [*program.runs, *([program.derivative.run] if program.derivative is not None else [])]
    return "\n\n".join(filter(None, map(source_of, (program.function, *runs))))


configure_from_environment()

__all__ = [
    "ARTIFACTS", "breaks", "broken", "compiled", "configure_from_environment", "counters", "default_formatter",
    "guard_lines", "program_sources", "recompiles", "set_formatter", "set_logs", "tracing_begins",
]  # fmt: skip
