"""The public names, computed from the records and the fronts: functions of the module, methods of Tensor.

Nothing is compiled at import. A method is a small descriptor until it is first looked up, then the real function takes
its place; a function of the module is found by ``candelabra.__getattr__`` and stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from candelabra._annotations import Any, Final
from candelabra._namespace import index
from candelabra._operators.fronts.registry import FRONTS, METHODS
from candelabra._records.record import OPERATORS, PUBLISHERS, Operator
from candelabra._tensor import Tensor

BINARY: Final[dict[str, str]] = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
"""Python's operators with a reflected and an in-place form, and the records that serve them."""
COMPARISONS: Final[dict[str, str]] = {name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")}
UNARY: Final[dict[str, str]] = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}


ALIASES: Final[dict[str, Operator[..., Any]]] = {}
"""Operators by their further public names, of the modules that are imported so far."""


class LazyMethod:
    """A method that is made when it is first looked up, and then replaces this descriptor in its class."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: type) -> Any:
        made = self.make()
        setattr(Tensor, self.name, made)
        return made.__get__(instance, owner)


class LazyProperty(LazyMethod):
    """Likewise for a property: assigning to it must reach the property, not the tensor's own attributes."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.__get__(None, Tensor)
        setattr(instance, self.name, value)


def data_model() -> dict[str, tuple[str, str]]:
    """``{"__add__": (operator, form)}`` for every operator of Python's data model that records serve."""
    table = {}
    for symbol, name in BINARY.items():
        table[f"__{symbol}__"] = (name, "binary")
        table[f"__r{symbol}__"] = (name, "reflected")
        if symbol != "matmul":
            table[f"__i{symbol}__"] = (name, "assigned")
    for symbol, name in COMPARISONS.items():
        table[f"__{symbol}__"] = (name, "binary")
    for symbol, name in UNARY.items():
        table[f"__{symbol}__"] = (name, "function")
    return table


def install_methods() -> None:
    """Attach every method to Tensor. Called once, when the package is imported."""
    PUBLISHERS.append(publish)
    for name, (operator, form) in data_model().items():
        setattr(Tensor, name, LazyMethod(name, _former(operator, form)))
    install_indexed()


def install_indexed() -> None:
    """Attach the methods that the index knows."""
    there = vars(Tensor)
    for name, module in index.METHODS_IN.items():
        if name in there:
            continue
        lazy = LazyProperty if name in index.PROPERTIES else LazyMethod
        setattr(Tensor, name, lazy(name, _finder(name, module)))


def _finder(name: str, module: str) -> Callable[[], Any]:
    def find() -> Any:
        index.load(module)
        front = METHODS.get(name)
        if front is not None:
            return property(front.function) if front.is_property else front.function
        for operator, place in index.OPERATORS_IN.items():
            if place == module and (form := methods_of(OPERATORS[operator]).get(name)) is not None:
                return OPERATORS[operator].form(form)
        raise AttributeError(f"the index says that {module} declares Tensor.{name}, but it does not")

    return find


def methods_of(record: Operator[..., Any]) -> dict[str, str]:
    """``{method: form}`` of an operator."""
    found: dict[str, str] = {}
    if not record.public:
        return found
    if record.method:
        found[record.method if isinstance(record.method, str) else record.name] = "function"
    if record.inplace and not record.namespace:
        found[record.name + "_"] = "inplace"
    for alias in record.aliases:
        if "." not in alias:
            if record.method or record.namespace:
                found[alias] = "function"
            if record.inplace:
                found[alias + "_"] = "inplace"
    return found


def install_operator(record: Operator[..., Any]) -> None:
    """Attach one operator's methods; what a front has taken stays the front's."""
    for name, form in methods_of(record).items():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, LazyMethod(name, _former(record.name, form)))


def publish(record: Operator[..., Any]) -> Callable[[], None]:
    """Attach the methods of an operator that the index does not know (a plugin's, a user's); returns how to undo it.

    ValueError when Tensor has an attribute of that name already: nothing that was there is hidden.
    """
    ALIASES.update(dict.fromkeys(record.aliases, record))
    if record.declared.__module__.startswith("candelabra."):  # an overloaded front stands before its own record
        if record.name not in index.OPERATORS_IN:
            install_operator(record)
        return lambda: None
    before = set(vars(Tensor))
    name = record.method if isinstance(record.method, str) else record.name
    if record.method and record.public and hasattr(Tensor, name):
        OPERATORS.pop(record.name, None)
        raise ValueError(f"operator {record.name!r} would hide Tensor.{name}: give it method=False or another name")
    install_operator(record)
    added = set(vars(Tensor)) - before

    def withdraw() -> None:
        import candelabra

        for method in added:
            delattr(Tensor, method)
        for alias in record.aliases:
            ALIASES.pop(alias, None)
        for function in (record.name, record.name + "_", *record.aliases):
            vars(candelabra).pop(function, None)

    return withdraw


def _former(operator: str, form: str) -> Callable[[], Any]:
    return lambda: OPERATORS[operator].form(form)


def public_function(name: str) -> Any:
    """The function ``candelabra.<name>``, or None."""
    for places in (index.FUNCTIONS_IN, index.METHODS_IN):  # a front that is a method only hides a record's function
        if name in places:
            index.load(places[name])
    front = FRONTS.get(name)
    if front is not None:
        return front.function if front.is_function else None
    record = _by_public_name(name)
    if record is not None:
        return record.function
    if name.endswith("_") and (record := _by_public_name(name[:-1])) is not None and record.inplace:
        return record.form("inplace")
    return None


def _by_public_name(name: str) -> Operator[..., Any] | None:
    if name in index.FUNCTIONS_IN:
        index.load(index.FUNCTIONS_IN[name])
    namespace, dot, last = name.rpartition(".")
    record: Operator[..., Any] | None = OPERATORS.get(f"{namespace.replace('.', '_')}_{last}" if dot else name)
    if record is not None and record.public and record.public_name == name:
        return record
    return ALIASES.get(name)


def operator_named(name: str) -> Operator[..., Any] | None:
    """The operator of that name or public name: ``linalg_svd``, ``linalg.svd``, ``arccos``; None if there is none."""
    found: Operator[..., Any] | None = OPERATORS.get(name)
    return _by_public_name(name) if found is None and name not in FRONTS else found


def public_names() -> list[str]:
    """Every function that the module and its namespaces offer: ``exp``, ``linalg.inv``."""
    names = {n for n, f in FRONTS.items() if f.is_function}
    names |= {r.public_name for r in OPERATORS.present().values() if r.public}
    return sorted({*names, *ALIASES, *index.FUNCTIONS_IN})


def members(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package such as ``candelabra.linalg``: its operators and fronts."""
    module = sys.modules[f"candelabra.{namespace}"]

    def find(name: str) -> Any:
        found = public_function(f"{namespace}.{name}")
        if found is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        setattr(module, name, found)
        return found

    def names() -> list[str]:
        start = namespace + "."
        ours = {n.removeprefix(start) for n in public_names() if n.startswith(start)}
        return sorted({*vars(module), *(n for n in ours if "." not in n)})

    return find, names
