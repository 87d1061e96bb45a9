"""``compile``: trace a function at its first call and run it as compiled graphs from then on. As ``torch.compile``.

The other names are PyTorch's controls of its compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature

from candelabra._annotations import Any
from candelabra._compile.backends import (
    CompilerError,
    graph_compiler,
    list_backends,
    list_mode_options,
    list_options,
    lookup_backend,
    register_backend,
)
from candelabra._compile.caching import CacheInfo, fresh_cache, load_cache_artifacts, save_cache_artifacts
from candelabra._compile.calling import CompiledFunction, forced_eager, forget_programs, without_recompiling
from candelabra._compile.compiled_autograd import compiled_autograd
from candelabra._compile.config import config
from candelabra._compile.explaining import ExplainOutput, explain
from candelabra._compile.observing import ARTIFACTS as LOGS
from candelabra._compile.observing import counters, set_logs
from candelabra._compile.patterns import PatternPass
from candelabra._dispatch.tracing import is_compiling, note_break, outside_graph, untraced
from candelabra._records.lookup import public_function
from candelabra._tensor import Tensor
from candelabra.utils._pytree import tree_map

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
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
    ``fullgraph=True`` it is a ``RuntimeError``. ``disable=True`` returns ``model``.

    ``backend`` makes functions of the graphs: by default the compiler of their device, ``"eager"`` runs one kernel per
    operator, another name is one of :func:`register_backend`. A function ``backend(graph_module, example_inputs)``
    returns a function of tensors, with a tensor for each output. ``options`` are those of :func:`list_options`.
    ``mode`` is one of PyTorch's names, which have one meaning here; ``dynamic`` is accepted: each shape is compiled.
    See docs/compile.md. Raises ``RuntimeError`` for an unknown backend, mode or option.
    """
    compiler = graph_compiler(backend, mode, options)
    if model is None:
        given: dict[str, Any] = {"backend": backend, "mode": mode, "options": options}
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable, **given)
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"compile() expects a function or a module, not {type(model).__name__}")
    function = CompiledFunction(model, fullgraph, compiler)
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


def graph_break(msg: str = "") -> None:
    """End the graph of the compiled function that calls this: it runs in segments. Otherwise do nothing."""
    note_break(f"graph_break({msg!r}) is called" if msg else "graph_break() is called")


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that returns its function: an equivalent in Python of ``original_fn``.

    PyTorch's compiler reads Python and needs it. This one runs ``original_fn`` itself while recording. Raises
    ``TypeError`` if one is not callable, or takes other parameters and ``skip_signature_check`` is False.
    """

    def decorate(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        for function in (original_fn, traceable_fn):
            if not callable(function):
                raise TypeError(f"substitute_in_graph() expects functions, not {type(function).__name__}")
        if not skip_signature_check and _parameters(original_fn) not in (None, _parameters(traceable_fn)):
            raise TypeError(
                f"substitute_in_graph(): {traceable_fn.__name__} takes ({', '.join(_parameters(traceable_fn) or ())}), "
                f"expected the parameters of {original_fn.__name__}: ({', '.join(_parameters(original_fn) or ())})"
            )
        return traceable_fn

    return decorate


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of the parameters, or None if a function in C does not tell them."""
    try:
        return list(signature(function).parameters)
    except ValueError:
        return None


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that calls one of NumPy's arrays: tensors, also in containers, become arrays that
    share their memory, and arrays in the result tensors. A compiled function runs it between two segments.

    Raises ``RuntimeError`` for a tensor that requires grad, or of a device without host memory, as ``numpy()`` does.
    """
    as_tensor: Any = public_function("as_tensor")

    def converted(leaf: Any) -> Any:
        is_array = type(leaf).__module__ == "numpy" and hasattr(leaf, "__array_interface__")
        return as_tensor(leaf) if is_array else leaf

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, (args, kwargs))
        return tree_map(converted, fn(*args, **kwargs))

    return call


__all__ = [
    "CacheInfo", "CompilerError", "ExplainOutput", "LOGS", "PatternPass", "allow_in_graph",
    "assume_constant_result", "compile", "compiled_autograd", "config", "counters", "cudagraph_mark_step_begin",
    "disable", "explain", "fresh_cache", "graph_break", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "list_mode_options", "list_options", "load_cache_artifacts", "lookup_backend",
    "nested_compile_region", "register_backend", "reset", "save_cache_artifacts", "set_logs", "set_stance",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
