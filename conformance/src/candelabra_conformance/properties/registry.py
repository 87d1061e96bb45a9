"""The properties by name, as their modules declare them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from candelabra.dtypes import dtype
from candelabra.library import Operator, OverloadSet

from candelabra_conformance.context import Context
from candelabra_conformance.records import Record


class Axis(NamedTuple):
    """One combination of dtype and layout on which a property is checked. Both may be absent."""

    dtype: dtype | None
    layout: str
    level: int


Axes = Callable[[Context, Any], Iterator[Axis]]
"""A function of the tested object: a record, or an overload set."""
DeviceAxes = Callable[[Context], Iterator[Axis]]
F = TypeVar("F", bound=Callable[..., Any])


class Property(NamedTuple):
    """A check and its axes."""

    name: str
    check: Callable[..., float | None]
    axes: Callable[..., Iterator[Axis]]


OF_OPERATORS: Final[dict[str, Property]] = {}
OF_CALLABLES: Final[dict[str, Property]] = {}
OF_OVERLOADS: Final[dict[str, Property]] = {}
OF_DEVICES: Final[dict[str, Property]] = {}


def operator_property(name: str, axes: Axes, callables: Axes | None = None) -> Callable[[F], F]:
    """Declare a property of operators; with ``callables``, of public callables too, on these axes."""

    def declare(check: F) -> F:
        OF_OPERATORS[name] = Property(name, check, axes)
        if callables is not None:
            OF_CALLABLES[name] = Property(name, check, callables)
        return check

    return declare


def callable_property(name: str, axes: Axes) -> Callable[[F], F]:
    """Declare a property of public callables only."""

    def declare(check: F) -> F:
        OF_CALLABLES[name] = Property(name, check, axes)
        return check

    return declare


def overload_property(name: str, axes: Axes) -> Callable[[F], F]:
    """Declare a property of overload sets."""

    def declare(check: F) -> F:
        OF_OVERLOADS[name] = Property(name, check, axes)
        return check

    return declare


def device_property(name: str, axes: DeviceAxes) -> Callable[[F], F]:
    """Declare a property of the device itself."""

    def declare(check: F) -> F:
        OF_DEVICES[name] = Property(name, check, axes)
        return check

    return declare


def properties_of(tested: Record | OverloadSet) -> dict[str, Property]:
    """Return the properties of a tested object."""
    if isinstance(tested, OverloadSet):
        return OF_OVERLOADS
    return OF_OPERATORS if isinstance(tested, Operator) else OF_CALLABLES


@cache
def load() -> None:
    """Import every module of this package once."""
    package = importlib.import_module("candelabra_conformance.properties")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
