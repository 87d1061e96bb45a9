"""The protocol ``__torch_function__``, as ``torch.overrides``.

A class takes part in calls of candelabra's operators by defining the class method
``__torch_function__(cls, func, types, args=(), kwargs=None)``. Subclasses of Tensor inherit one that gives the results
the class of the arguments. ``func`` is the public function, and the same object for the function and the method. A
function that is not an operator (``candelabra.explain(NAME)`` says so) calls the operators that it consists of, each of
which is handled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from candelabra._annotations import Any
from candelabra._keys import FUNCTION_MODE, NO_OVERRIDE, state
from candelabra._overrides import (
    BaseTorchFunctionMode,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    call_override,
    disabled_torch_function,
    overloaded_arguments,
)
from candelabra._records.lookup import entry_named, public_names
from candelabra._tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "resolve_name", "wrap_torch_function",
]  # fmt: skip

_disabled_torch_function_impl = disabled_torch_function


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of the values handles calls, or a function mode is active."""
    if state.bits & FUNCTION_MODE:
        return True
    return not state.bits & NO_OVERRIDE and bool(overloaded_arguments(relevant_args, Tensor))


def has_torch_function_unary(value: Any) -> bool:
    """Return whether one value handles calls; see :func:`has_torch_function`."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """Return whether one of the arguments handles calls; see :func:`has_torch_function`."""
    return has_torch_function(values)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call ``__torch_function__`` of the relevant arguments, for a function of the user that supports the protocol.

    Raises ``TypeError`` if each of them returns NotImplemented.
    """
    return call_override(public_api, relevant_args, args, kwargs, Tensor)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a function of the user. ``dispatcher`` returns the relevant ones of its arguments."""
    from functools import wraps

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Return whether a value is a Tensor, or of a class that defines ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that are operators, by the module or class that contains them."""
    import candelabra

    found: dict[Any, list[Callable[..., Any]]] = {}
    for name in public_names():
        entry = entry_named(name)
        if entry is None or not _is_operator(entry):
            continue
        owner: Any = candelabra
        for part in name.split(".")[:-1]:
            owner = getattr(owner, part)
        found.setdefault(owner, []).append(entry.form("function"))
    return found


def _is_operator(entry: Any) -> bool:
    return hasattr(entry, "schema") or hasattr(entry, "members")


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return the public functions that ``__torch_function__`` does not get: they call operators, which it does get."""
    entries = [entry_named(name) for name in public_names()]
    return {entry.form("function") for entry in entries if entry is not None and not _is_operator(entry)}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return a function with the same parameters, which returns -1, for every function that can be overridden."""
    return {
        function: lambda *args, **kwargs: -1  # the parameters are checked by the operator
        for functions in get_overridable_functions().values()
        for function in functions
    }


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the public name of a function, such as ``"candelabra.add"``, or None."""
    for name in public_names():
        entry = entry_named(name)
        if entry is not None and entry.form("function") is f:
            return f"candelabra.{name}"
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function is a method of Tensor, or the ``__get__`` of one of its properties."""
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) is func


def __dir__() -> list[str]:
    return sorted(__all__)
