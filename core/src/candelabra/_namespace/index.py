"""The index of public names: the module that declares each name, which is imported at the first use of the name.

Every distribution that declares public names has a generated table, ``candelabra/_index/<distribution>.py``. For each
module it lists the operators, the public functions, the methods of Tensor, those that are properties or unguarded, and
the imports that some public modules defer. Builds write the table (``hatch_build.py``); in a checkout ``make index``
does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

from candelabra import _journal as journal
from candelabra._annotations import Any, Final, NamedTuple, TypeVar

V = TypeVar("V")


class OperatorOutline(NamedTuple):
    """What the index contains of an operator's record. Tables of kernels are checked and built with it, before the
    modules of the operators are imported."""

    parameters: int
    """The number of its parameters."""
    view: bool
    inplace: bool


OPERATORS_IN: Final[dict[str, str]] = {}
"""Operator → the module that declares it."""
OUTLINES: Final[dict[str, OperatorOutline]] = {}
"""Operator → the outline of its record."""
FUNCTIONS_IN: Final[dict[str, str]] = {}
"""Public function, ``exp`` or ``linalg.inv`` → the module that declares it."""
METHODS_IN: Final[dict[str, str]] = {}
"""Method of Tensor → the module that declares it."""
PROPERTIES: Final[set[str]] = set()
UNGUARDED_METHODS: Final[set[str]] = set()
"""Methods of Tensor that are the declared functions themselves; see ``PublicCallable.guarded``."""
DEFERRED_IMPORTS: Final[dict[str, dict[str, tuple[str, str]]]] = {}
"""Public module → name → the module and the attribute that it imports at the first use; no attribute: the module."""
_indexed: Final[set[str]] = set()
_read: Final[set[str]] = set()


def read(path: list[str]) -> bool:
    """Read the tables in the folders ``_index`` of a package's path, and return whether one of them is new."""
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
                table = import_module(f"candelabra._index.{name}")
                enter(table.MODULES)
                DEFERRED_IMPORTS.update(getattr(table, "DEFERRED_IMPORTS", {}))
    return len(_read) > before


def enter(modules: dict[str, tuple[str, ...]]) -> None:
    """Add a table: ``{module: (operators, functions, methods, properties, unguarded methods)}``, names separated by
    spaces.

    An operator's name is followed by a colon, the number of its parameters, and the letters ``v`` of a view and ``i``
    of an operator with an in-place form.
    """
    _indexed.update(modules)
    for module, (operators, functions, methods, properties, unguarded) in modules.items():
        for operator in operators.split():
            name, _, outline = operator.partition(":")
            OPERATORS_IN[name] = module
            OUTLINES[name] = OperatorOutline(int(outline.rstrip("iv")), "v" in outline, "i" in outline)
        FUNCTIONS_IN.update(dict.fromkeys(functions.split(), module))
        METHODS_IN.update(dict.fromkeys(methods.split(), module))
        PROPERTIES.update(properties.split())
        UNGUARDED_METHODS.update(unguarded.split())


def load(module: str) -> None:
    """Import a module that declares names. It stays imported even if the plugin that needs it fails to load."""
    with journal.unrecorded():
        import_module(module)  # also if it is in sys.modules: another thread may still import it, and this waits for it


def await_import(module: str) -> None:
    """Wait until no other thread is importing a module.

    A module's declarations can be found as soon as each of them is made, while the functions below them, which their
    bodies call, do not exist yet. In the thread that imports the module this does not wait.
    """
    spec = getattr(sys.modules.get(module), "__spec__", None)
    if getattr(spec, "_initializing", False):
        import_module(module)


def note(module: str, undo: journal.Undo) -> None:
    """Record how to withdraw a declaration if a plugin fails to load.

    The declarations of an indexed module stay: the plugin may have imported it, but it belongs to the library.
    """
    if module not in _indexed:
        journal.note(undo)


CONTRIBUTORS: Final[list[Callable[[], None]]] = []
"""Functions that declare operators which no index lists, each of them once. The package adds that of plugins."""


def declare_contributed() -> None:
    """Declare the operators of plugins without a device, once."""
    for declare in CONTRIBUTORS:
        declare()


def load_all() -> None:
    """Import every module that declares names, and declare the operators of plugins without a device."""
    for places in (OPERATORS_IN, FUNCTIONS_IN, METHODS_IN):
        for module in dict.fromkeys(places.values()):
            load(module)
    declare_contributed()


class StaleIndex(RuntimeError):
    """The index lists a name that the module does not declare."""


def stale(reason: str) -> str:
    """Return the text of the error for an index that does not match the sources."""
    return f"the index of public names is not current: {reason}. In a checkout run `make index`"


class Declared(dict[str, V]):
    """Operators by name. Looking up a name imports the module that declares it; iteration imports all modules."""

    def __missing__(self, name: str) -> V:
        if name not in OPERATORS_IN:
            declare_contributed()
            return self.present()[name]
        load(OPERATORS_IN[name])
        found: V | None = dict.get(self, name)
        if found is None:
            raise StaleIndex(stale(f"{OPERATORS_IN[name]} declares no operator {name!r}"))
        return found

    def present(self) -> dict[str, V]:
        """Return the entries that are declared so far, as a plain dict, without importing modules."""
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
