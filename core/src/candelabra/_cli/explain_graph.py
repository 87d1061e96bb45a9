"""``candelabra explain --graph SCRIPT``: run a program, and show the graphs of its compiled functions."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._compile.calling import CompiledFunction, compiled_functions
from candelabra._compile.first_call import Program
from candelabra._graph.structure import Graph


def explain_graphs(script: str) -> int:
    """Run a script and print each compiled function: its graphs, what was fused, bytes moved, and why it is eager.

    Returns 0, or 1 if there is no such script or none of its functions was compiled.
    """
    before = set(compiled_functions)
    arguments, sys.argv = sys.argv, [script]
    try:
        kept = runpy.run_path(script, run_name="__main__")
    except OSError as error:
        print(f"candelabra: {error}", file=sys.stderr)
        return 1
    finally:
        sys.argv = arguments
    functions = sorted(set(compiled_functions) - before, key=lambda function: function.number)
    for function in functions:
        _explain(function)
    if not functions:
        print(f"candelabra: {script} compiles no function that still exists at its end", file=sys.stderr)
    del kept  # until here: it refers to the compiled functions
    return 0 if any(function.programs for function in functions) else 1


def _explain(function: CompiledFunction) -> None:
    count = len(function.programs)
    print(f"{function.title}: {count} program{'' if count == 1 else 's'}")
    if function.eager is not None:
        how = "eagerly" if function.segments is None else "in segments"
        print(f"  other calls run {how}: {function.eager}")
    for number, program in enumerate(function.programs, 1):
        print(f"  program {number}, {len(program.environment.reasons)} guards besides those of the arguments")
        for graph, run in _graphs(program):
            _show(graph, getattr(run, "graph", None))


def _graphs(program: Program) -> list[tuple[Graph, Callable[..., Any]]]:
    """Return the graphs of a program that have nodes, each with the function that runs it; the backward graph last."""
    found = [(graph, run) for graph, run in zip(program.graphs, program.runs, strict=True) if graph.nodes]
    if program.derivative is not None:
        found.append((program.derivative.graph, program.derivative.run))
    return found


def _show(graph: Graph, fused: Graph | None) -> None:
    shown = graph if fused is None else fused
    groups = sum(isinstance(node.op, Graph) for node in shown)
    moved = f"{graph.traffic / 2**20:.3g} MiB read and written"
    if groups:
        moved += f" by single kernels, {shown.traffic / 2**20:.3g} MiB by {groups} fused ones and the rest"
    print(f"    {len(graph)} operators, {len(shown)} kernels and views, {moved}")
    print("\n".join(f"    {line}" for line in str(shown).splitlines()))
