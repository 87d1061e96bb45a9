"""Which module declares what, so that a module is imported when one of its names is first asked for.

Every distribution that declares public names has a generated table, ``candelabra/_index/<distribution>.py``: for each
module the operators that it declares, the public functions, the methods of Tensor, and which of these are properties.
Builds write it (``hatch_build.py``), and ``make index`` does in a checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module

from candelabra import _journal as journal
from candelabra._annotations import Any, Final, TypeVar

V = TypeVar("V")

OPERATORS_IN: Final[dict[str, str]] = {}
"""Operator → the module that declares it."""
FUNCTIONS_IN: Final[dict[str, str]] = {}
"""Public function, ``exp`` or ``linalg.inv`` → the module that declares it."""
METHODS_IN: Final[dict[str, str]] = {}
"""Method of Tensor → likewise."""
PROPERTIES: Final[set[str]] = set()
_read: Final[set[str]] = set()


def read(path: list[str]) -> bool:
    """Read the tables in the folders ``_index`` of a package's path; whether there was one that is new."""
    before = len(_read)
    for folder in path:
        try:
            files = sorted(os.listdir(os.path.join(folder, "_index")))
        except OSError:
            continue
        for file in files:
            name, dot, suffix = file.partition(".")
            if dot + suffix == ".py" and name not in _read:
                _read.add(name)
                enter(import_module(f"candelabra._index.{name}").MODULES)
    return len(_read) > before


def enter(modules: dict[str, tuple[str, str, str, str]]) -> None:
    """Take a table in: ``{module: (operators, functions, methods, properties)}``, names separated by spaces."""
    for module, (operators, functions, methods, properties) in modules.items():
        OPERATORS_IN.update(dict.fromkeys(operators.split(), module))
        FUNCTIONS_IN.update(dict.fromkeys(functions.split(), module))
        METHODS_IN.update(dict.fromkeys(methods.split(), module))
        PROPERTIES.update(properties.split())


def load(module: str) -> None:
    """Import a module that declares. It stays whatever becomes of the plugin in whose loading it was asked for."""
    with journal.unrecorded():
        import_module(module)  # also where it is in sys.modules: another thread may be at it, and is waited for


def load_all() -> None:
    """Import every module that declares."""
    for places in (OPERATORS_IN, FUNCTIONS_IN, METHODS_IN):
        for module in dict.fromkeys(places.values()):
            load(module)


class StaleIndex(RuntimeError):
    """The index names what its module does not declare."""


def stale(what: str) -> str:
    """The text of the error for an index that does not fit the sources."""
    return f"the index of public names is not current: {what}. In a checkout run `make index`"


class Declared(dict[str, V]):
    """Operators by name: what declares one is imported when it is asked for; who walks over it gets everything."""

    def __missing__(self, name: str) -> V:
        load(OPERATORS_IN[name])
        found: V | None = dict.get(self, name)
        if found is None:
            raise StaleIndex(stale(f"{OPERATORS_IN[name]} declares no operator {name!r}"))
        return found

    def present(self) -> dict[str, V]:
        """What is declared by now, as a plain dict: nothing is imported for it."""
        return {name: dict.__getitem__(self, name) for name in dict.__iter__(self)}

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in OPERATORS_IN

    def __iter__(self) -> Iterator[str]:
        load_all()
        return dict.__iter__(self)

    def __len__(self) -> int:
        load_all()
        return dict.__len__(self)

    def keys(self) -> Any:
        load_all()
        return dict.keys(self)

    def values(self) -> Any:
        load_all()
        return dict.values(self)

    def items(self) -> Any:
        load_all()
        return dict.items(self)
