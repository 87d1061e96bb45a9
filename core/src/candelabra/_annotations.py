"""What annotations are written with, without the price of ``typing``.

Importing ``typing`` costs a quarter of the time that ``import candelabra`` takes (it brings ``re`` and ``enum``), for
names that are read by type checkers only. They read the stub beside this file, which is ``typing`` itself; at run time
annotations are strings, and these stand-ins only need to be there and to take brackets. ``NamedTuple`` is the one that
does something.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False


class _Mark:
    """A name that may stand in an annotation, with or without brackets."""

    def __init__(self, *_: object, **__: object) -> None:
        """Arguments, as those of a TypeVar, say nothing at run time."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


class Any(_Mark): ...


class BinaryIO(_Mark): ...


class Final(_Mark): ...


class Generic(_Mark): ...


class Literal(_Mark): ...


class NoReturn(_Mark): ...


class ParamSpec(_Mark): ...


class Protocol(_Mark): ...


class TypeVar(_Mark): ...


def cast(_: object, value: object) -> object:
    """``value``; what it is cast to is for type checkers."""
    return value


def overload(function: object) -> object:
    """The signature of an overload is for type checkers: the definition that follows replaces it."""
    return function


class _TupleMaker(type):
    """Makes a named tuple of a class body: its annotations are the fields, in order, its values their defaults."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
        if not bases:
            return type.__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))  # type: ignore[arg-type]
        defaults = [body[field] for field in fields if field in body]
        made = namedtuple(name, fields, defaults=defaults, module=str(body["__module__"]))  # type: ignore[misc]
        for key, value in body.items():
            if key not in fields and key not in ("__module__", "__qualname__", "__dict__", "__weakref__"):
                setattr(made, key, value)
        return made


class NamedTuple(metaclass=_TupleMaker):
    """As ``typing.NamedTuple``, in class form."""
