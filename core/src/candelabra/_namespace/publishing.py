"""Publish functions of ``candelabra`` and its namespaces, and methods of Tensor.

All of them come from one registry (``candelabra._records.registry``). Nothing is compiled at import. A method is a
small descriptor until its first use, which replaces it by the function. A function of a module is found by the module's
``__getattr__`` and stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from candelabra._annotations import Any, Final
from candelabra._namespace import index
from candelabra._records import registry
from candelabra._records.lookup import entry_named, public_function, public_names
from candelabra._records.record import Operator
from candelabra._records.registry import METHODS, OPERATORS, Entry
from candelabra._tensor import Tensor

BINARY: Final[dict[str, str]] = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
"""Python's operators with a reflected and an in-place form, and the records that implement them."""
COMPARISONS: Final[dict[str, str]] = {name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")}
UNARY: Final[dict[str, str]] = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}


class LazyMethod:
    """A method that is compiled at its first use, and then replaces this descriptor in its class."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: type) -> Any:
        made = self.make()
        setattr(Tensor, self.name, made)
        return made.__get__(instance, owner)


class LazyProperty(LazyMethod):
    """The same for a property: an assignment must reach the property, not the tensor's own attributes."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.__get__(None, Tensor)
        setattr(instance, self.name, value)


def data_model() -> dict[str, tuple[str, str]]:
    """Return ``{"__add__": (operator, form)}`` for every operator of Python's data model that a record implements."""
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
    """Attach every method to Tensor. Called once, at the import of the package."""
    registry.ADDED.append(publish)
    Tensor._constructed = LazyMethod("_constructed", constructor)  # type: ignore[assignment]
    Tensor.__repr__ = LazyMethod("__repr__", printer)  # type: ignore[assignment]
    for name, (operator, form) in data_model().items():
        setattr(Tensor, name, LazyMethod(name, partial(form_of, operator, form)))
    install_indexed()


def install_indexed() -> None:
    """Attach the methods that the index lists."""
    there = vars(Tensor)
    for name, module in index.METHODS_IN.items():
        if name not in there:
            lazy = LazyProperty if name in index.PROPERTIES else LazyMethod
            setattr(Tensor, name, lazy(name, partial(find_method, name, module)))


def find_method(name: str, module: str) -> Any:
    """Return a method from the module that declares it according to the index."""
    index.load(module)
    try:
        return method_made(*METHODS[name])
    except KeyError:
        raise AttributeError(index.stale(f"{module} declares no method {name!r}")) from None


def added_method(name: str) -> Any:
    """The method of that name, which an entry of a plugin or a user declares."""
    return method_made(*METHODS[name])


def constructor() -> Any:
    """Return the function that ``Tensor(*data)`` calls. It is declared with the operators that create tensors."""
    from candelabra._operators.creation.from_data import legacy_tensor

    return staticmethod(legacy_tensor)


def printer() -> Any:
    """Return the function behind ``repr(tensor)``, which few programs call."""
    from candelabra._printing import tensor_repr

    return tensor_repr


def form_of(operator: str, form: str) -> Any:
    """A form of an operator, as a function."""
    return OPERATORS[operator].form(form)


def method_made(entry: Entry, form: str) -> Any:
    """Return a form of an entry as an attribute of Tensor: a function or a property."""
    return property(entry.form(form)) if entry.is_property else entry.form(form)


def publish(entry: Entry) -> Callable[[], None]:
    """Attach the methods of an entry that is not in the index (of a plugin or user), and return the undo function.

    Raises ValueError if Tensor already has an attribute of that name: existing attributes are not replaced.
    """
    methods = {name: form for name, form in entry.methods().items() if name not in index.METHODS_IN}
    hidden = [name for name in methods if hasattr(Tensor, name)]
    if hidden and not entry.declared_in.startswith("candelabra."):
        raise ValueError(f"operator {entry.name!r} would hide Tensor.{hidden[0]}: give it method=False or another name")
    added = [name for name in methods if name not in hidden]
    for name in added:
        lazy = LazyProperty if entry.is_property else LazyMethod
        setattr(Tensor, name, lazy(name, partial(added_method, name)))

    def withdraw() -> None:
        package = vars(sys.modules["candelabra"])
        for method in added:
            delattr(Tensor, method)
        for function in (entry.name, entry.name + "_", *entry.aliases):
            package.pop(function, None)

    return withdraw


def operator_named(name: str) -> Operator[..., Any] | None:
    """Return an operator by its name, public name or alias (``linalg_svd``, ``linalg.svd``, ``arccos``), or None."""
    found: Any = OPERATORS.get(name)
    if found is None:
        found = entry_named(name)
    return found if isinstance(found, Operator) else None


def members(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module such as ``candelabra.linalg``.

    ``__getattr__`` also computes the module's ``__all__``. A name of the module's ``_also`` that it does not define is
    the function of the package with that name. A name of its ``_unlisted``, which ``__all__`` does not contain, is the
    attribute that this dict gives as "module:attribute".
    """
    module = sys.modules[f"candelabra.{namespace}"]
    start = namespace + "."

    def find(name: str) -> Any:
        if name == "__all__":
            return names()
        elsewhere = vars(module).get("_unlisted", {}).get(name)
        if elsewhere is not None:
            home, _, attribute = elsewhere.partition(":")
            __import__(home)
            found = getattr(sys.modules[home], attribute)
        else:
            found = public_function(name if name in vars(module).get("_also", ()) else start + name)
        if found is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        setattr(module, name, found)
        return found

    def names() -> list[str]:
        ours = [n.removeprefix(start) for n in public_names() if n.startswith(start)]
        return sorted({*vars(module).get("_also", ()), *(n for n in ours if "." not in n and n[0] != "_")})

    return find, names
