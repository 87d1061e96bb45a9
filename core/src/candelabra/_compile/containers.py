"""The arguments and the result of a compiled call as leaves and a structure.

Objects of dataclasses are containers here, in addition to those of ``utils._pytree``: a call gets and returns new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import BuiltinFunctionType, EllipsisType, FunctionType, MemberDescriptorType, ModuleType

from candelabra._annotations import Any, Final
from candelabra._compile.environment import SCALARS
from candelabra.utils._pytree import TreeSpec, register_pytree_node, tree_flatten, tree_unflatten

Leaf = Callable[[Any], bool] | None

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


def is_same(leaves: Sequence[Any], spec: TreeSpec, tree: Any) -> bool:
    """Return whether a tree still has these leaves and this structure."""
    now, structure = flattened(tree)
    return structure == spec and all(a is b for a, b in zip(now, leaves, strict=True))


def is_constant(value: Any) -> bool:
    """Return whether an object that a call has created may be the result of another call, too."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_constant, value))
    if isinstance(value, FunctionType):
        return not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value))
    return isinstance(value, CONSTANTS)


__all__ = ["Attributes", "classes_in", "flattened", "is_constant", "is_same"]
