"""The properties by name, as their modules declare them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.context import Context


class Axis(NamedTuple):
    """One place on which a property is tried. No dtype, no layout: it is not about that."""

    dtype: dtype | None
    layout: str
    level: int


Axes = Callable[[Context, Operator[..., Any]], Iterator[Axis]]
DeviceAxes = Callable[[Context], Iterator[Axis]]
F = TypeVar("F", bound=Callable[..., Any])


class Property(NamedTuple):
    """A check and where it is made."""

    name: str
    check: Callable[..., float | None]
    axes: Callable[..., Iterator[Axis]]


OF_OPERATORS: Final[dict[str, Property]] = {}
OF_DEVICES: Final[dict[str, Property]] = {}


def operator_property(name: str, axes: Axes) -> Callable[[F], F]:
    """Declare a property of operators."""

    def declare(check: F) -> F:
        OF_OPERATORS[name] = Property(name, check, axes)
        return check

    return declare


def device_property(name: str, axes: DeviceAxes) -> Callable[[F], F]:
    """Declare a property of the device itself."""

    def declare(check: F) -> F:
        OF_DEVICES[name] = Property(name, check, axes)
        return check

    return declare


@cache
def load() -> None:
    """Import every module of this folder once."""
    package = importlib.import_module("candelabra_conformance.properties")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
