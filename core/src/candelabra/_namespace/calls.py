"""What a public callable calls, read off its code: operators, overload sets and other public callables.

Documentation and ``candelabra explain`` show it. A call by way of a variable is not found.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType, ModuleType

from candelabra._annotations import Any
from candelabra._namespace.publishing import entries, entry_named
from candelabra._records.callables import PublicCallable
from candelabra._records.overloads import OverloadSet
from candelabra._records.record import OPERATORS, Operator
from candelabra._records.registry import title_of


def called_by(entry: PublicCallable) -> list[str]:
    """The names of the operators and the public names that a callable names, itself or in helper functions."""
    return Names(entry).found()


class Names:
    """The names in one public callable, found by following its code into functions of the library."""

    def __init__(self, entry: PublicCallable) -> None:
        self.entry = entry
        self.names: set[str] = set()
        self.seen: set[CodeType] = set()
        self.callables = {id(e.form("function")): e for e in entries() if isinstance(e, PublicCallable)}

    def found(self) -> list[str]:
        """The names in alphabetical order."""
        self.follow(self.entry.declared)
        return sorted(self.names - {title_of(self.entry)})

    def follow(self, function: Any) -> None:
        """Read the code of a function."""
        function = getattr(function, "__wrapped__", function)
        self.read(function.__code__, function.__globals__)

    def read(self, code: CodeType, scope: dict[str, Any]) -> None:
        """Note what the instructions load: globals, attributes of modules, imports, methods that are called."""
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
        """Keep the name of an operator, a set or a callable; read the code of any other function of the library."""
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
    """The operator or overload set whose function a value is, or None."""
    if not isinstance(value, FunctionType) or value.__module__ != "candelabra":
        return None
    for entry in (OPERATORS.get(value.__name__), entry_named(value.__name__)):
        if entry is not None and entry.form("function") is value:
            return entry
    return None


def is_method(instruction: dis.Instruction) -> bool:
    """Whether an instruction loads a method for a call. From Python 3.12 on that is a flag of ``LOAD_ATTR``."""
    if instruction.opname == "LOAD_METHOD":
        return True
    return sys.version_info >= (3, 12) and bool((instruction.arg or 0) & 1)
