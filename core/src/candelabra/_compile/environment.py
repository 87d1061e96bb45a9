"""What a function depends on besides its arguments, as guards that are checked before each compiled call.

The function's closure cells, the globals that its code names, and everything that is reached from them: numbers and
texts by value, containers by length and items, tensors and other objects by identity, the attributes of modules, of the
user's objects and of their classes. Code of installed packages is not searched.

A guard is a line of Python, ``if d3['training'] is not e3 and differs(d3['training'], e3): return True``. All guards
are one function, so checking hundreds takes microseconds.
"""

from __future__ import annotations

import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dis import get_instructions
from enum import EnumType
from functools import lru_cache, partial
from io import IOBase
from types import CodeType, FunctionType, MethodType, ModuleType

from candelabra._annotations import Any, Final
from candelabra._codegen.source import build_once
from candelabra._device import Instance, device
from candelabra._layout import layout
from candelabra._size import Size
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype

SCALARS: Final = (
    int, float, bool, str, bytes, complex, type(None), dtype, device, layout, Instance, slice, range, Size
)  # fmt: skip
FAILURES: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What a guard may raise when an object is not what it was."""
LONGEST: Final = 256
"""Containers with more items are guarded by identity and length."""
MOST: Final = 20_000
"""The number of guards, at most."""
_INSTALLED: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None}
)


NAMESPACES: Final = ("types", "argparse")
"""The modules of Python whose classes have attributes that the user chooses: ``SimpleNamespace``, ``Namespace``."""


class Unguarded(Exception):
    """A function depends on something that no guard can check, or on more than is worth checking before each call."""


def differs(now: Any, then: Any) -> bool:
    """Return whether two numbers or texts are of different types or values."""
    return type(now) is not type(then) or not (now == then or (now != now and then != then))


class Environment:
    """The guards of the objects that some roots lead to, and the tensors among them."""

    def __init__(self, replaced: frozenset[str] = frozenset()) -> None:
        self.scope: dict[str, Any] = {"differs": differs, "Tensor": Tensor}
        self.reasons: list[tuple[str, str]] = []
        """For each guard the expression and what it reads, in the user's terms."""
        self.tensors: dict[int, Tensor] = {}
        self.replaced = replaced
        """What names tensors that other ones replace from call to call."""
        self.inputs: dict[int, tuple[str, Tensor]] = {}
        """The tensors that each call reads again, with the expressions: replaced ones, and results of operators."""
        self._captured: list[tuple[str, Tensor, str]] = []
        """The other tensors, with what they were read by, and their names in messages."""
        self._compiled: tuple[int, Callable[[], bool]] | None = None
        """The function of the first guards, and their number."""
        self._seen: dict[int, Any] = {}
        self._seen_classes: dict[int, type] = {}

    def states_of_generators(self) -> dict[int, Any]:
        """Return the states, by ``id``, of the generators of Python and NumPy that the function may draw from: those
        that were found, and those behind ``random.random()`` and ``numpy.random.rand()``.
        """
        python = getattr(sys.modules.get("random"), "_inst", None)
        numpy = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
        states = {id(value): _state_of_generator(value) for value in (python, numpy, *self._seen.values())}
        return {key: state for key, state in states.items() if state is not None}

    def reaches(self, value: Any) -> bool:
        """Return whether an object, whose identity is guarded then, was found from the roots."""
        return id(value) in self._seen

    # -- guards -------------------------------------------------------------------------------------------------------
    def _name(self, value: Any) -> str:
        name = f"g{len(self.scope)}"
        self.scope[name] = value
        return name

    def _guard(self, failing: str, where: str) -> None:
        if len(self.reasons) >= MOST:
            raise Unguarded(f"more than {MOST} values")
        self.reasons.append((failing, where))

    def require(self, holds: Callable[[], bool], where: str) -> None:
        """Guard that ``holds()`` returns True."""
        self._guard(f"not {self._name(holds)}()", where)

    def changed(self) -> Callable[[], bool]:
        """Return a function that tells whether a guard fails. It raises one of ``FAILURES`` if an object is another."""
        if self._compiled is None or self._compiled[0] != len(self.reasons):
            lines = [f"if {failing}: return True" for failing, _ in self.reasons]
            function = build_once("changed", "", [*lines, "return False"], self.scope, "guards")
            self._compiled = len(self.reasons), function
        return self._compiled[1]

    def failure(self) -> str | None:
        """Return what has changed, in the user's terms, or None."""
        try:
            if not self.changed()():
                return None
        except FAILURES:
            pass
        for failing, where in self.reasons:
            try:
                if eval(failing, self.scope):
                    return where
            except FAILURES:
                return where
        return None

    def replaced_tensors(self) -> frozenset[str]:
        """Return what names another tensor now."""
        found = set(self.replaced)
        for read, tensor, where in self._captured:
            try:
                now = eval(read, self.scope)
            except FAILURES:
                continue
            if now is not tensor and type(now) is type(tensor):
                found.add(where)
        return frozenset(found)

    # -- walking ------------------------------------------------------------------------------------------------------
    def _tensor(self, read: str, tensor: Tensor, where: str) -> bool:
        """Return whether each call reads a tensor again, instead of comparing its identity."""
        known = self.inputs.get(id(tensor))
        if known is not None:
            self._guard(f"{read} is not {known[0]}", where)
            return True
        node = tensor._node
        if id(tensor) in self._seen or not ((node is not None and not node.is_leaf) or where in self.replaced):
            self._captured.append((read, tensor, where))
            return False
        self.inputs[id(tensor)] = read, tensor
        self._seen[id(tensor)] = self.tensors[id(tensor)] = tensor
        self.reasons.append((f"type({read}) is not {self._name(type(tensor))}", where))
        return True

    def value(self, read: str, value: Any, where: str) -> None:
        """Guard what the expression ``read`` yields now."""
        if isinstance(value, SCALARS):
            known = self._name(value)
            self._guard(f"{read} is not {known} and differs({read}, {known})", where)
            return
        if isinstance(value, Tensor) and self._tensor(read, value, where):
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
        elif type(value) in (list, tuple, deque) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            self._guard(f"len({name}) != {len(value)}", f"the length of {where}")
            if len(value) <= LONGEST:
                for i, item in enumerate(value):
                    self.value(f"{name}[{i}]", item, f"{where}[{i}]")
        elif isinstance(value, (set, frozenset)):
            self._guard(f"{name} != {self._name(frozenset(value))}", f"the elements of {where}")
        elif isinstance(value, dict):
            self._items(value, name, where, "{}[{!r}]")
        elif isinstance(value, (FunctionType, MethodType)) or "__wrapped__" in getattr(value, "__dict__", ()):
            self.function(value, where)
        elif isinstance(value, partial):
            for part, what in ((value.func, "function"), (value.args, "arguments"), (value.keywords, "keywords")):
                self.visit(part, self._name(part), f"the {what} of {where}")
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, ModuleType):
            pass
        elif isinstance(value, Iterator) and not isinstance(value, IOBase):
            raise Unguarded(f"{where}, an iterator, whose position no guard sees")
        else:
            self._object(value, where)

    def _items(self, items: Mapping[Any, Any], name: str, where: str, text: str) -> None:
        self._guard(f"len({name}) != {len(items)}", f"the keys of {where}")
        if len(items) > LONGEST:
            return
        for key, item in items.items():
            read = f"{name}[{key!r}]" if isinstance(key, (str, int)) else f"{name}[{self._name(key)}]"
            self.value(read, item, text.format(where, key) if "{!r}" in text else f"{where}.{key}")

    def _object(self, value: Any, where: str) -> None:
        """Guard the attributes of a module or of an object of the user's classes, and what its methods name."""
        cls = type(value)
        is_module = hasattr(value, "_parameters")
        if not (is_module or cls.__module__ in NAMESPACES or is_user_code(cls.__module__)):
            return
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            self._items(attributes, self._name(attributes), where, "{}.{}")
        for base in cls.__mro__:
            slots = vars(base).get("__slots__", ()) if is_user_code(base.__module__) else ()
            for slot in (slots,) if isinstance(slots, str) else slots:
                if (item := getattr(value, slot, self)) is not self:
                    self.value(f"{self._name(value)}.{slot}", item, f"{where}.{slot}")
        self._class(cls)

    def _class(self, cls: type) -> None:
        """Guard the attributes of the user's class and of those that it extends, and what their methods name."""
        if isinstance(cls, EnumType):  # its members are constants
            return
        for base in cls.__mro__:
            if id(base) in self._seen_classes or not is_user_code(base.__module__):
                continue
            self._seen_classes[id(base)] = base
            space, members = self._name(vars(base)), dict(vars(base))
            self._guard(f"len({space}) != {len(members)}", f"the attributes of {base.__name__}")
            for name, member in members.items():
                read, where = f"{space}[{name!r}]", f"{base.__name__}.{name}"
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, FunctionType):
                    self._guard(f"{read} is not {self._name(member)}", where)
                    self.function(function, where)
                elif not (name.startswith("__") or hasattr(type(member), "__get__")):
                    self.value(read, member, where)

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
        if attributes := {name: item for name, item in vars(function).items() if name != "__wrapped__"}:
            space = self._name(vars(function))
            for name, item in attributes.items():
                self.value(f"{space}[{name!r}]", item, f"{function.__name__}.{name}")
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            self.value(f"{self._name(cell)}.cell_contents", content, f"{name!r} of {function.__name__}")
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(f"{self._name(function)}.__defaults__[{i}]", default, f"a default of {function.__name__}")
        for name, default in (function.__kwdefaults__ or {}).items():
            read = f"{self._name(function)}.__kwdefaults__[{name!r}]"
            self.value(read, default, f"a default of {function.__name__}")
        names, table = set(names_in(code)), self._name(function.__globals__)
        for name in sorted(globals_in(code) & function.__globals__.keys()):
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


def _state_of_generator(value: Any) -> Any:
    """Return the state of a generator of Python or NumPy, or of the one that a method belongs to; None for others.

    States can be compared.
    """
    if not hasattr(type(value), "__getattr__"):  # whose code might run otherwise
        value = getattr(value, "__self__", value)
    if type(value).__module__ == "random":
        return value.getstate()
    if type(value).__module__.startswith("numpy.random"):
        bits = getattr(value, "bit_generator", None) or getattr(value, "_bit_generator", value)
        return _comparable(getattr(bits, "state", None))
    return None


def _comparable(state: Any) -> Any:
    """Return the state of a generator of NumPy with bytes for arrays, whose comparison has no truth value."""
    if isinstance(state, dict):
        return {name: _comparable(item) for name, item in state.items()}
    return state.tobytes() if hasattr(state, "tobytes") else state


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


@lru_cache(1024)
def globals_in(code: CodeType) -> frozenset[str]:
    """Return the names in a code object, and in those inside it, that are those of globals and not of attributes."""
    found = {i.argval for i in get_instructions(code) if i.opname.endswith(("_GLOBAL", "_NAME"))}
    inside = [globals_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(found).union(*inside)


def environment_of(roots: list[tuple[Callable[..., Any], str]], replaced: frozenset[str] = frozenset()) -> Environment:
    """Return the environment of functions, modules and other objects, each with its name in messages.

    ``replaced``: what names other tensors from call to call, see :meth:`Environment.replaced_tensors`.
    """
    found = Environment(replaced)
    for root, where in roots:
        found.visit(root, found._name(root), where)
    return found


__all__ = ["FAILURES", "Environment", "Unguarded", "differs", "environment_of", "is_user_code"]
