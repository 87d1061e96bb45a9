"""Imports that run at the first use of their names, for public modules that gather names of many others.

Such a module has its imports below ``if TYPE_CHECKING:``, where type checkers and readers find them, and
``__getattr__ = deferred_imports(__name__)`` below the opposite condition. The generated index lists the imports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from candelabra._annotations import Any
from candelabra._namespace import index


def deferred_imports(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module: it runs the import of a name and stores the name in the module."""
    names = vars(sys.modules[module])

    def find(name: str) -> Any:
        imports = index.DEFERRED_IMPORTS.get(module)
        if imports is None:
            raise index.StaleIndex(index.stale(f"it lists no deferred imports of {module}"))
        if name not in imports:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, attribute = imports[name]
        source = import_module(home)
        found = names[name] = getattr(source, attribute) if attribute else source
        return found

    return find
