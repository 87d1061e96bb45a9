"""Determine from its code what a public callable calls: operators, overload sets and other public callables.

Documentation and ``candelabra explain`` show the result. A call through a variable is not found.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType, ModuleType

from candelabra._annotations import Any
from candelabra._records.callables import PublicCallable
from candelabra._records.lookup import entries, entry_named
from candelabra._records.overloads import OverloadSet
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS, dotted, title_of


def called_by(entry: PublicCallable) -> list[str]:
    """Return the names of the operators and public callables that a callable or its helper functions use."""
    return Names(entry).sorted_names()


class Names:
    """The names in one public callable. Its code is followed into functions of the library."""

    def __init__(self, entry: PublicCallable) -> None:
        self.entry = entry
        self.names: set[str] = set()
        self.seen: set[CodeType] = set()
        self.callables = {
            id(function): e
            for e in entries()
            if isinstance(e, PublicCallable)
            for function in (e.form("function"), e.declared)
        }

    def sorted_names(self) -> list[str]:
        """Return the names in alphabetical order."""
        self.follow(self.entry.declared)
        return sorted(self.names - {title_of(self.entry)})

    def follow(self, function: Any) -> None:
        """Read the code of a function."""
        function = getattr(function, "__wrapped__", function)
        self.read(function.__code__, function.__globals__)

    def read(self, code: CodeType, scope: dict[str, Any]) -> None:
        """Record the names that instructions load: globals, attributes of modules, imports, methods that are called."""
        if code in self.seen:
            return
        self.seen.add(code)
        loaded: Any = None
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                loaded = scope.get(name)
            elif instruction.opname == "IMPORT_NAME":
                loaded = sys.modules.get(name)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
                module = loaded if isinstance(loaded, ModuleType) else None
                if module is None and is_method(instruction) and not name.startswith("__"):
                    self.note(entry_named(f"Tensor.{name}"))
                loaded = getattr(module, name, None)
                self.note(loaded)
                if instruction.opname == "IMPORT_FROM":
                    loaded = module
                continue
            else:
                if instruction.opname != "PUSH_NULL":
                    loaded = None
                continue
            self.note(loaded)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.read(constant, scope)

    def note(self, value: Any) -> None:
        """Record an operator, a set or a public callable, and read the code of any other function of the library."""
        entry = self.callables.get(id(value)) or published(value) or value
        if isinstance(entry, Operator):
            self.names.add(entry.name)
        elif isinstance(entry, (OverloadSet, PublicCallable)) and entry.public:
            self.names.add(title_of(entry))
        elif isinstance(entry, PublicCallable):  # a member of an overload set, without a name of its own
            self.follow(entry.declared)
        elif isinstance(entry, FunctionType) and entry.__module__.partition(".")[0] == "candelabra":
            self.follow(entry)


def published(value: Any) -> Any:
    """Return the operator or overload set whose function a value is, or None."""
    if not isinstance(value, FunctionType):
        return None
    package, _, namespace = value.__module__.partition(".")
    if package != "candelabra":
        return None
    for entry in (OPERATORS.get(value.__name__), entry_named(dotted(value.__name__, namespace))):
        if entry is not None and entry.form("function") is value:
            return entry
    return None


def is_method(instruction: dis.Instruction) -> bool:
    """Return whether an instruction loads a method for a call. Since Python 3.12 that is a flag of ``LOAD_ATTR``."""
    if instruction.opname == "LOAD_METHOD":
        return True
    return sys.version_info >= (3, 12) and bool((instruction.arg or 0) & 1)
