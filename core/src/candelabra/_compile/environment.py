"""What a function depends on besides its arguments, as guards that are checked before each compiled call.

The function's closure cells, the globals that its code names, and everything that is reached from them: numbers and
texts by value, containers by length and items, tensors and other objects by identity, the attributes of modules and of
the user's objects. Code of installed packages is not searched.

A guard is a line of Python, ``if d3['training'] is not e3 and differs(d3['training'], e3): return MISS``, so checking
hundreds of them takes microseconds.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType

from candelabra._annotations import Any, Final
from candelabra._device import Instance, device
from candelabra._layout import layout
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype

SCALARS: Final = (int, float, bool, str, bytes, complex, type(None), dtype, device, layout, Instance, slice, range)
LONGEST: Final = 256
"""Containers with more items are guarded by identity and length."""
MOST: Final = 20_000
"""The number of guards, at most."""
_INSTALLED: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None}
)


class TooManyGuards(Exception):
    """A function depends on more values than are worth checking before each call."""


def differs(now: Any, then: Any) -> bool:
    """Return whether two numbers or texts are of different types or values."""
    return type(now) is not type(then) or not (now == then or (now != now and then != then))


class Environment:
    """The guards of the objects that some roots lead to, and the tensors among them."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {"differs": differs}
        self.lines: list[str] = []
        self.reasons: list[tuple[str, str]] = []
        """For each guard the expression and what it reads, in the user's terms."""
        self.tensors: dict[int, Tensor] = {}
        self._seen: dict[int, Any] = {}

    # -- guards -------------------------------------------------------------------------------------------------------
    def _name(self, value: Any) -> str:
        name = f"g{len(self.scope)}"
        self.scope[name] = value
        return name

    def _guard(self, failing: str, where: str) -> None:
        if len(self.lines) >= MOST:
            raise TooManyGuards(f"more than {MOST} values")
        self.lines.append(f"if {failing}: return MISS")
        self.reasons.append((failing, where))

    def require(self, holds: Callable[[], bool], where: str) -> None:
        """Guard that ``holds()`` returns True."""
        self._guard(f"not {self._name(holds)}()", where)

    def holds(self) -> bool:
        """Return whether all guards hold now."""
        return self.failure() is None

    def failure(self) -> str | None:
        """Return what has changed, in the user's terms, or None."""
        for failing, where in self.reasons:
            try:
                changed = eval(failing, self.scope)
            except (AttributeError, IndexError, KeyError, ValueError):
                changed = True
            if changed:
                return where
        return None

    # -- walking ------------------------------------------------------------------------------------------------------
    def value(self, read: str, value: Any, where: str) -> None:
        """Guard what the expression ``read`` yields now."""
        if isinstance(value, SCALARS):
            known = self._name(value)
            self._guard(f"{read} is not {known} and differs({read}, {known})", where)
            return
        known = self._name(value)
        self._guard(f"{read} is not {known}", where)
        self.visit(value, known, where)

    def visit(self, value: Any, name: str, where: str) -> None:
        """Guard what is reached from an object, whose identity is guarded already."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if getattr(value, "_opaque_to_compile", False):
            return
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
        elif type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            self._guard(f"len({name}) != {len(value)}", f"the length of {where}")
            if len(value) <= LONGEST:
                for i, item in enumerate(value):
                    self.value(f"{name}[{i}]", item, f"{where}[{i}]")
        elif isinstance(value, dict):
            self._items(value, name, where, "{}[{!r}]")
        elif isinstance(value, (FunctionType, MethodType)) or "__wrapped__" in getattr(value, "__dict__", ()):
            self.function(value, where)
        elif isinstance(value, partial):
            for part, what in ((value.func, "function"), (value.args, "arguments"), (value.keywords, "keywords")):
                self.visit(part, self._name(part), f"the {what} of {where}")
        elif isinstance(value, (type, ModuleType)):
            pass
        else:
            self._object(value, where)

    def _items(self, items: dict[Any, Any], name: str, where: str, text: str) -> None:
        self._guard(f"len({name}) != {len(items)}", f"the keys of {where}")
        if len(items) > LONGEST:
            return
        for key, item in items.items():
            read = f"{name}[{key!r}]" if isinstance(key, (str, int)) else f"{name}[{self._name(key)}]"
            self.value(read, item, text.format(where, key) if "{!r}" in text else f"{where}.{key}")

    def _object(self, value: Any, where: str) -> None:
        """Guard the attributes of a module or of an object of the user's classes, and what its methods name."""
        attributes = getattr(value, "__dict__", None)
        cls = type(value)
        if type(attributes) is not dict or not (is_user_code(cls.__module__) or hasattr(value, "_parameters")):
            return
        self._items(attributes, self._name(attributes), where, "{}.{}")
        for base in cls.__mro__:
            if is_user_code(base.__module__):
                for member in list(vars(base).values()):
                    function = getattr(member, "__func__", getattr(member, "fget", member))
                    if isinstance(function, FunctionType):
                        self.function(function, f"{base.__name__}.{function.__name__}")

    def function(self, function: Any, where: str) -> None:
        """Guard what a function of the user refers to: closure cells, globals, defaults, the object of a method."""
        if isinstance(function, MethodType):
            self.visit(function.__self__, self._name(function.__self__), f"the object of {where}")
            function = function.__func__
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.visit(wrapped, "", where)
        if not isinstance(function, FunctionType) or not is_user_code(function.__globals__.get("__name__", "")):
            if isinstance(function, FunctionType):  # a wrapper of an installed package, around the user's function
                for cell in function.__closure__ or ():
                    self._visit_cell(cell, where)
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            self.value(f"{self._name(cell)}.cell_contents", content, f"{name!r} of {function.__name__}")
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(f"{self._name(function)}.__defaults__[{i}]", default, f"a default of {function.__name__}")
        names = set(names_in(code))
        table = self._name(function.__globals__)
        for name in sorted(names & function.__globals__.keys()):
            content = function.__globals__[name]
            self.value(f"{table}[{name!r}]", content, f"the global {name!r}")
            if isinstance(content, ModuleType) and is_user_code(content.__name__):
                space = self._name(vars(content))
                for attribute in sorted(names & vars(content).keys()):
                    self.value(f"{space}[{attribute!r}]", vars(content)[attribute], f"{content.__name__}.{attribute}")

    def _visit_cell(self, cell: Any, where: str) -> None:
        try:
            content = cell.cell_contents
        except ValueError:
            return
        if isinstance(content, (FunctionType, MethodType)):
            self.visit(content, "", where)


def is_user_code(module: str) -> bool:
    """Return whether a module is neither candelabra's nor that of an installed package or of Python."""
    root = module.partition(".")[0]
    if root.startswith("candelabra") or root in sys.stdlib_module_names:
        return root == "__main__"
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    return file is None or not file.startswith(_INSTALLED)


def names_in(code: CodeType) -> Iterator[str]:
    """Return the names in a code object and in those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def environment_of(roots: list[tuple[Callable[..., Any], str]]) -> Environment:
    """Return the environment of functions, modules and other objects, each with its name in messages."""
    found = Environment()
    for root, where in roots:
        found.visit(root, found._name(root), where)
    return found


__all__ = ["Environment", "TooManyGuards", "differs", "environment_of", "is_user_code"]
