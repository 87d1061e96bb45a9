"""The arguments and the result of a compiled call as leaves and a structure.

Objects of dataclasses are containers here, in addition to those of ``utils._pytree``: a call gets and returns new ones.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from enum import Enum
from types import BuiltinFunctionType, EllipsisType, FunctionType, MemberDescriptorType, ModuleType

from candelabra._annotations import Any, Final
from candelabra._compile.environment import SCALARS
from candelabra.utils._pytree import TreeSpec, register_pytree_node, tree_flatten, tree_unflatten

Leaf = Callable[[Any], bool] | None

CHANGEABLE: Final = frozenset((list, dict, OrderedDict, defaultdict, deque))
CONSTANTS: Final = (*SCALARS, type, ModuleType, Enum, BuiltinFunctionType, EllipsisType)
"""The types of objects that every call may return, since nothing changes them."""


class Attributes:
    """An object of a dataclass, as the container of its attributes. Those for which ``is_leaf`` is true are leaves."""

    def __init__(self, value: Any, is_leaf: Leaf) -> None:
        self.value = value
        self.is_leaf = is_leaf


def _flatten(container: Attributes) -> tuple[list[Any], Any]:
    value, cls = container.value, type(container.value)
    slots = [name for name in cls.__dataclass_fields__ if isinstance(getattr(cls, name, None), MemberDescriptorType)]
    names = (*getattr(value, "__dict__", ()), *(name for name in slots if hasattr(value, name)))
    return [_with_attributes(getattr(value, name), container.is_leaf) for name in names], (cls, names)


def _unflatten(children: Iterable[Any], context: Any) -> Any:
    cls, names = context
    instance = object.__new__(cls)
    for name, child in zip(names, children, strict=True):
        object.__setattr__(instance, name, child)
    return instance


register_pytree_node(Attributes, _flatten, _unflatten)


def _is_dataclass(value: Any) -> bool:
    cls: Any = type(value)
    return hasattr(cls, "__dataclass_fields__") and cls.__new__ is object.__new__ and not hasattr(value, "_parameters")


def _with_attributes(tree: Any, is_leaf: Leaf) -> Any:
    def converted(leaf: Any) -> Any:
        if not _is_dataclass(leaf) or (is_leaf is not None and is_leaf(leaf)):
            return leaf
        return Attributes(leaf, is_leaf)

    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(converted, leaves), spec)


def flattened(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree in order, and its structure. Objects for which ``is_leaf`` is true are leaves."""
    leaves, spec = tree_flatten(tree, is_leaf)
    if any(map(_is_dataclass, leaves)):
        return tree_flatten(_with_attributes(tree, is_leaf), is_leaf)
    return leaves, spec


def classes_in(spec: TreeSpec) -> set[type]:
    """Return the dataclasses of a structure."""
    here = {spec.context[0]} if spec.type is Attributes else set[type]()
    return here.union(*map(classes_in, spec.children_specs))


# -- containers among the arguments, which a function may return or change -------------------------------------------
def _content(container: Any) -> list[tuple[Any, Any]]:
    """Return the keys, positions or names of a container, with the items."""
    if isinstance(container, dict):
        return list(container.items())
    if _is_dataclass(container):
        (_, names), attributes = (found := _flatten(Attributes(container, lambda _: True)))[1], found[0]
        return list(zip(names, attributes, strict=True))
    return list(enumerate(container))


class Containers:
    """The lists, dicts, deques and objects of dataclasses among the arguments of a call, from the outside inwards."""

    def __init__(self, args: Iterable[Any], kwargs: dict[str, Any]) -> None:
        self.found: list[Any] = []
        for tree in (*args, *kwargs.values()):
            self._visit(tree)
        self.before: list[list[tuple[Any, Any]]] = []

    def _visit(self, tree: Any) -> None:
        if type(tree) in CHANGEABLE or _is_dataclass(tree):
            self.found.append(tree)
        elif not isinstance(tree, tuple):
            return
        for _, item in _content(tree):
            self._visit(item)

    def aliases(self) -> tuple[int, ...]:
        """Return for each container the position at which the same object stands first."""
        first: dict[int, int] = {}
        return tuple([first.setdefault(id(container), i) for i, container in enumerate(self.found)])

    def position(self, value: Any) -> int:
        """Return the position of a container, or -1 for another object."""
        return next((i for i, container in enumerate(self.found) if container is value), -1)

    def remember(self) -> None:
        """Remember the contents, for :meth:`changes`."""
        self.before = [_content(container) for container in self.found]

    def changes(self) -> dict[int, Any]:
        """Return the present contents of the containers that have changed, as lists and dicts, by position."""
        found: dict[int, Any] = {}
        for i, (container, before) in enumerate(zip(self.found, self.before, strict=True)):
            now = _content(container)
            if len(now) != len(before) or any(
                key != old or value is not item for (key, value), (old, item) in zip(now, before, strict=True)
            ):
                found[i] = [value for _, value in now] if isinstance(container, (list, deque)) else dict(now)
        return found


def refill(container: Any, content: Any) -> None:
    """Give a container among the arguments the content that the function has left in it."""
    if isinstance(container, list):
        container[:] = content
    elif isinstance(container, deque):
        container.clear()
        container.extend(content)
    elif isinstance(container, dict):
        container.clear()
        container.update(content)
    else:
        for name, _ in _content(container):
            if name not in content:
                object.__delattr__(container, name)
        for name, value in content.items():
            object.__setattr__(container, name, value)


def is_constant(value: Any) -> bool:
    """Return whether an object that a call has created may be the result of another call, too."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_constant, value))
    if isinstance(value, FunctionType):
        return not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value))
    return isinstance(value, CONSTANTS)


__all__ = ["Attributes", "Containers", "classes_in", "flattened", "is_constant", "refill"]
