"""``compile``: trace a function at its first call and run it as compiled graphs from then on. As ``torch.compile``.

The other names are PyTorch's controls of its compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any
from candelabra._compile.calling import CompiledFunction, forced_eager, forget_programs, without_recompiling
from candelabra._compile.compiled_autograd import compiled_autograd
from candelabra._dispatch.tracing import is_compiling, outside_graph, untraced

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Return a compiled form of a function or module; without one, a decorator.

    The first call of each kind runs the function and records the operators that it runs. Later calls of that kind run
    the recorded graphs without dispatch: the result, and the effects on tensors, are those of the function. A kind is
    the structure of the arguments, the shapes, strides, dtypes and devices of tensors, the values of numbers, the grad
    mode, and what the function refers to: closure cells, globals, attributes of modules. Other effects of Python code,
    such as printing, happen while recording only.

    What a graph cannot repeat, such as reading a value of a tensor (``.item()``), makes the function run in segments:
    its Python at every call, the operators between two such places compiled. One warning names the line; with
    ``fullgraph=True`` it is a ``RuntimeError``. ``disable=True`` returns ``model``. ``dynamic``, ``backend``, ``mode``
    and ``options`` are accepted for PyTorch's programs and change nothing: each device has one compiler. See
    docs/compile.md.
    """
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable)
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"compile() expects a function or a module, not {type(model).__name__}")
    function = CompiledFunction(model, fullgraph)
    networks = sys.modules.get("candelabra.nn.modules.module")
    if networks is None or not isinstance(model, networks.Module):
        return function
    from candelabra.nn.modules.compiled import OptimizedModule

    return OptimizedModule(model, function)


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return a function that compiled functions call as Python at every call; without ``fn``, a decorator.

    Its tensors must come from outside, for example attributes of objects: it is called with the same arguments at each
    call, and must return None. Other calls make the compiled function run eagerly.
    """
    if fn is None:
        return lambda function: disable(function)
    if isinstance(fn, CompiledFunction):
        return fn.function
    if hasattr(fn, "_orig_mod"):
        return fn._orig_mod

    return outside_graph(fn)


class set_stance:
    """Change what compiled functions do: at once, for all threads, and as a context manager until the end of the block.
    As a decorator, it changes it for the calls of a function.

    ``"force_eager"`` runs them eagerly. With ``"eager_on_recompile"`` calls that would be compiled run eagerly, with
    ``"fail_on_recompile"`` they raise ``RuntimeError``. ``"default"`` compiles.

    Raises ``RuntimeError`` for another stance, and inside a compiled function.
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid stance {stance!r}: expected one of {', '.join(STANCES)}")
        if is_compiling():
            raise RuntimeError(
                f"set_stance({stance!r}) inside a compiled function would have no effect on its graph: call it outside"
            )
        self._stance = stance
        self._before = (*forced_eager, *without_recompiling)
        self._set(stance)

    @staticmethod
    def _set(*stances: str) -> None:
        forced_eager[:] = [stance for stance in stances if stance == "force_eager"]
        without_recompiling[:] = [stance for stance in stances if stance.endswith("_on_recompile")]

    def __enter__(self) -> None:
        """Do nothing: the constructor has set the stance."""

    def __exit__(self, *_: object) -> None:
        self._set(*self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the stance in force during its calls."""
        self._set(*self._before)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return call


def allow_in_graph(fn: Any) -> Any:
    """Return ``fn``: operators are traced wherever they are called."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Return ``fn``, without one a decorator: regions that a compiled function calls are parts of its graph."""
    return (lambda function: function) if fn is None else fn


def assume_constant_result(fn: Any) -> Any:
    """Return a function whose results are constants of the compiled functions that call it: it runs while recording
    only, and may do what no graph can repeat, such as reading a value.
    """

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with untraced():
            return fn(*args, **kwargs)

    call._opaque_to_compile = True  # type: ignore[attr-defined]  # nothing of it is guarded
    return call


is_dynamo_compiling: Callable[[], bool] = is_compiling


def is_exporting() -> bool:
    """Return False: candelabra exports no programs."""
    return False


def reset() -> None:
    """Forget the graphs of all compiled functions. They are traced again at their next calls."""
    forget_programs()


def cudagraph_mark_step_begin() -> None:
    """Do nothing: no call of a compiled function overwrites the results of another."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Return the only compiler, ``["candelabra"]``."""
    return ["candelabra"]


__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "compiled_autograd", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "reset",
    "set_stance",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
