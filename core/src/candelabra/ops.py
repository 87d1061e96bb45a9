"""Operators by namespace: ``ops.aten.<name>``, and the operators of ``candelabra.library.custom_op``.

``ops.aten.relu`` and ``ops.aten.relu.default`` are the public function ``candelabra.relu``; other names are those of
``nn.functional``, ``linalg`` and Tensor's methods. Names of PyTorch's overloads are accepted, and
the arguments select the overload.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any
from candelabra._custom_operators import DEFINED

__all__ = ["aten", "load_library"]


class OperatorNamespace:
    """The operators of one namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<operators of {self.__name__!r}>"

    def __getattr__(self, name: str) -> Any:
        found = DEFINED.get(f"{self.__name__}::{name}")
        if found is None:
            raise AttributeError(f"no operator {self.__name__}::{name} is declared")
        return found


class _OfPyTorch(OperatorNamespace):
    """The public functions under the names of PyTorch's dispatcher."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        package = sys.modules["candelabra"]
        start, _, rest = name.partition("_")
        for where, attribute in ((package, name), (package.nn.functional, name), (package, start)):
            found = getattr(where, attribute, None)
            if attribute == start and rest:
                found = getattr(found, rest, None) if start in ("linalg", "fft", "special") else None
            if callable(found):
                break
        else:
            method = getattr(package.Tensor, name, None)
            if method is None:
                raise AttributeError(f"candelabra has no function for the operator aten::{name}")
            found = method
        setattr(self, name, packet := Packet(f"aten::{name}", found))
        return packet


class Packet:
    """One function with the names of its overloads, which are all the function itself."""

    def __init__(self, name: str, function: Any) -> None:
        self._qualname, self._function = name, function
        self.__name__, self.__doc__ = name.partition("::")[2], function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self._qualname}>"

    def __getattr__(self, overload: str) -> Packet:
        if overload[:1] == "_":
            raise AttributeError(overload)
        packet = Packet(f"{self._qualname}.{overload}", self._function)
        setattr(self, overload, packet)
        return packet


aten = _OfPyTorch("aten")


def load_library(path: Any) -> None:
    """Raise ``OSError``: compiled operators of PyTorch's extensions cannot be loaded."""
    raise OSError(f"ops.load_library(): {path} has kernels for PyTorch, which candelabra cannot load")


def __getattr__(name: str) -> OperatorNamespace:
    if name[:1] == "_":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, OperatorNamespace(name))  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted(__all__)
