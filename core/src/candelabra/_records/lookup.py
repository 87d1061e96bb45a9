"""Find entries of the registry, and the functions that users call, by their public names.

A name in the index is declared by importing its module. Layers below the operators call a few of them by name.
"""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._namespace import index
from candelabra._records.registry import ENTRIES, METHODS, Entry


def entries() -> list[Entry]:
    """Return the distinct entries of all public functions and methods. This imports every module with declarations."""
    index.load_all()
    found = [*ENTRIES.values(), *(entry for entry, _ in METHODS.values())]
    return list({id(entry): entry for entry in found}.values())


def entry_named(name: str) -> Entry | None:
    """Return the entry of a public name, such as ``"linalg.inv"`` or ``"Tensor.to"``, or None if it does not exist.

    An unknown name may be one of a plugin: their operators are declared then. Raises ``StaleIndex`` if the index lists
    the name for a module that does not declare it.
    """
    found = _declared_entry(name)
    if found is None:
        index.declare_contributed()
        found = _declared_entry(name)
    return found


def _declared_entry(name: str) -> Entry | None:
    """Return the entry of a public name that the library or a loaded plugin declares."""
    if name.startswith("Tensor."):
        method = name.removeprefix("Tensor.")
        if method not in METHODS and method in index.METHODS_IN:
            index.load(index.METHODS_IN[method])
        return METHODS[method][0] if method in METHODS else None
    if name not in ENTRIES and name in index.FUNCTIONS_IN:
        index.load(index.FUNCTIONS_IN[name])
        if name not in ENTRIES:
            raise index.StaleIndex(index.stale(f"{index.FUNCTIONS_IN[name]} declares no function {name!r}"))
    return ENTRIES.get(name)


def public_function(name: str) -> Any:
    """Return the function ``candelabra.<name>``, or None. In-place methods are functions too: ``candelabra.add_``."""
    entry = _declared_entry(name)
    if entry is not None:
        return entry.form("function")
    if not is_inplace(name):
        return None
    if name in index.METHODS_IN:
        index.load(index.METHODS_IN[name])
    entry, form = METHODS.get(name, (None, ""))
    return entry.form(form) if entry is not None else None


def is_inplace(name: str) -> bool:
    """Return whether a method's name is that of one that writes to its tensor: ``add_``, and not ``__add__``."""
    return name[-1:] == "_" and name[:1] != "_"


def inplace_names() -> list[str]:
    """Return the names of the methods that write to their tensor, which are functions of the package, too."""
    return sorted({name for name in (*METHODS, *index.METHODS_IN) if is_inplace(name)})


def public_names() -> list[str]:
    """Return the names of all functions of the package and its namespaces: ``exp``, ``linalg.inv``."""
    return sorted({*ENTRIES, *index.FUNCTIONS_IN})
