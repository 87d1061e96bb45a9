"""Backward passes in compiled form, whichever code starts them: ``with compiled_autograd(): loss.backward()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from candelabra._annotations import Any, Final
from candelabra._autograd.api import interception, pass_of
from candelabra._compile.calling import CompiledFunction
from candelabra._dispatch.tracing import is_compiling


def run_backward(outputs: tuple[Any, ...], gradients: tuple[Any, ...], keep_graph: bool) -> None:
    """Run a backward pass that accumulates into leaves. Compiled, it has a program for each structure of graphs."""
    pass_of(outputs, gradients, keep_graph, False)


class CompiledPasses(CompiledFunction):
    """The compiled function of all backward passes, which have more structures than the calls of one function."""

    recompile_limit = 64


_passes: Final = CompiledPasses(run_backward)


@contextmanager
def compiled_autograd(compiler: Callable[[Callable[..., Any]], Any] | None = None) -> Iterator[None]:
    """Compile the backward passes that this thread starts inside the block, each as one function.

    ``compiler`` takes the function of a pass and returns the compiled one, as ``candelabra.compile(fullgraph=True)``
    does; by default, all such blocks share the compiled passes. Passes of ``backward()`` are compiled;
    ``autograd.grad`` and passes with ``create_graph=True`` run as usual. See docs/compile.md.
    """
    function = _passes if compiler is None else compiler(run_backward)
    with _intercepted(function):
        yield


@contextmanager
def disabled() -> Iterator[None]:
    """Inside the block, backward passes of this thread run as usual."""
    with _intercepted(None):
        yield


@contextmanager
def _intercepted(function: Callable[..., Any] | None) -> Iterator[None]:
    before = interception.run
    interception.run = None if function is None else _outside_of_passes(function)
    try:
        yield
    finally:
        interception.run = before


def _outside_of_passes(function: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that runs a pass by ``function``, and returns False for one that starts inside of another."""

    def run(outputs: Any, gradients: Any, keep_graph: bool) -> bool:
        if is_compiling():
            return False
        before, interception.run = interception.run, None
        try:
            function(outputs, gradients, keep_graph)
        finally:
            interception.run = before
        return True

    return run


__all__ = ["compiled_autograd", "disabled"]
