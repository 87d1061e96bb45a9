"""PyTorch's helpers of its compiler of kernels."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._compile.calling import compiled_functions
from candelabra._compile.observing import program_sources
from candelabra.compiler import fresh_cache

fresh_inductor_cache = fresh_cache


def run_and_get_code(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """Call a function, and return its result and the generated code of each program that was compiled meanwhile."""
    before = {id(program) for function in compiled_functions for program in function.programs}
    result = fn(*args, **kwargs)
    made = [p for f in sorted(compiled_functions, key=lambda f: f.number) for p in f.programs if id(p) not in before]
    return result, [program_sources(program) for program in made]


__all__ = ["fresh_cache", "fresh_inductor_cache", "run_and_get_code"]
