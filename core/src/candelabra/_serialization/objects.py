"""Modules in files: the name of a class, and plain data and tensors.

An object is written as its class's name and its state (what ``__reduce_ex__`` returns; usually its attributes), or as
a class's name and the arguments of a call of it. It is rebuilt only if the class is one of candelabra.nn, or if the
program allowed it (`safe_globals`). Nothing else in a file is looked up; a file that names another class raises an
error.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any, NamedTuple
from candelabra._records.lookup import public_function, public_names
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.safe_globals import allowed, name_of

__all__ = [
    "Reduced", "empty", "function_named", "is_rebuilt_tensor", "name_of_function", "reduced", "rebuilt", "resolved",
    "set_state",
]  # fmt: skip

PACKAGE = "candelabra.nn."
CALLED = (f"{PACKAGE}parameter._buffer",)
"""The functions of candelabra that rebuild objects."""
FUNCTIONS = ("nn.functional.", "")
"""The namespaces whose public functions may be attributes of objects, such as an activation."""
MEMBERS = ("_parameters", "_buffers", "_modules")


class Reduced(NamedTuple):
    """An object as data: the name of its class, and a state, or the arguments of a call."""

    name: str
    state: Any
    arguments: tuple[Any, ...] | None


def reduced(obj: Any) -> Reduced | None:
    """Return the reduced form of a module, or of an instance of a class that is allowed; None for other objects."""
    cls = type(obj)
    if isinstance(obj, type) or not (hasattr(cls, "named_modules") or _may_rebuild(cls)):
        return None
    value = obj.__reduce_ex__(2)
    if not isinstance(value, tuple):
        return None
    function, arguments, state, *items = (*value, None)[: max(len(value), 3)]
    if any(item is not None for item in items):
        return None
    if getattr(function, "__name__", "") == "__newobj__":
        return Reduced(name_of(cls), state, None) if arguments == (cls,) else None
    if state is not None or not (function is cls or name_of(function) in CALLED):
        return None
    return Reduced(name_of(function), None, arguments)


def is_rebuilt_tensor(obj: Any) -> bool:
    """Return whether a tensor is of a class that is rebuilt: a parameter or a buffer."""
    return _may_rebuild(type(obj))


def _may_rebuild(cls: type) -> bool:
    return name_of(cls).startswith(PACKAGE) or allowed(name_of(cls)) is cls


def resolved(name: str) -> Any:
    """Return the class of a name in a file.

    Raises:
        ValueError: no class of candelabra.nn, and none that the program allowed.
    """
    found = allowed(name)
    if found is not None:
        return found
    found = _in_package(name) if name.startswith(PACKAGE) else None
    if found is None:
        short = name.rpartition(".")[2][:60]
        raise ValueError(
            f"an object of the class {name[:200]}. load() rebuilds classes of candelabra.nn, and those that the "
            f"program allows: candelabra.serialization.add_safe_globals([{short}])"
        )
    return found


def _in_package(name: str) -> Any:
    """Return a class that a module of candelabra.nn defines, or None."""
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    if name in CALLED:
        return found
    return found if isinstance(found, type) and name_of(found) == name else None


def empty(cls: Any) -> Any:
    """Return an instance without a state. Raise ValueError if the class makes none without arguments."""
    try:
        return cls.__new__(cls)
    except Exception as error:
        raise ValueError(f"{name_of(cls)} without arguments: {error}") from error


def rebuilt(cls: Any, arguments: list[Any]) -> Any:
    """Return an object that a call of its class makes. Raise ValueError if the call fails.

    Of the classes of candelabra.nn only tensors are called: a layer would allocate as much memory as a file asks for.
    """
    name = name_of(cls)
    if name.startswith(PACKAGE) and not name.startswith(PACKAGE + "parameter.") and allowed(name) is None:
        raise ValueError(f"arguments of {name}, which has a state")
    try:
        return cls(*arguments)
    except Exception as error:
        raise ValueError(f"{name_of(cls)} with arguments that it refuses: {error}") from error


def set_state(obj: Any, state: Any) -> None:
    """Give an object its state. Raise ValueError if it refuses the state."""
    name = name_of(type(obj))
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise ValueError(f"{kind_of(state)} as state of {name}")
    if hasattr(type(obj), "named_modules") and not all(type(state.get(key)) is dict for key in MEMBERS):
        raise ValueError(f"{name} without parameters, buffers or modules")
    try:
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            obj.__dict__.update(state)
    except Exception as error:
        raise ValueError(f"{name} with a state that it refuses: {error}") from error


def name_of_function(value: Any) -> str | None:
    """Return the public name of a function of candelabra, such as ``nn.functional.relu``, or the name of an allowed
    function or class; None for other values.
    """
    if not callable(value) or not hasattr(value, "__qualname__"):
        return None
    if allowed(name_of(value)) is value or (isinstance(value, type) and name_of(value).startswith(PACKAGE)):
        return name_of(value)
    short = value.__qualname__
    for space in FUNCTIONS:
        home = sys.modules.get(f"candelabra.{space}".rstrip("."))
        if home is not None and getattr(home, short, None) is value:
            return space + short if _is_public(space + short) else None
    return None


def _is_public(name: str) -> bool:
    """Return whether a name is that of an operator or public callable, which do nothing but compute."""
    return name in public_names()


def function_named(name: str) -> Any:
    """Return the function or class of a name that `name_of_function` returned. Raise ValueError for others."""
    if allowed(name) is not None or name.startswith(PACKAGE + "modules."):
        return resolved(name)
    if name.rpartition(".")[0] + "." not in (".", "nn.functional.") or not _is_public(name):
        raise ValueError(f"the function {name[:200]}, which is none of candelabra's operators")
    return public_function(name)
