"""Replacements for the names of ``typing`` that annotations use, which avoid its import.

Importing ``typing`` takes a quarter of the time of ``import candelabra`` (it imports ``re`` and ``enum``), for names
that only type checkers read. They read the stub of this module, which is ``typing`` itself. At run time annotations are
strings, so these classes only need to exist and to accept brackets. Only ``NamedTuple`` has a function.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False


class _Mark:
    """A name for annotations, with or without brackets."""

    def __init__(self, *_: object, **__: object) -> None:
        """Ignore arguments, such as those of a TypeVar."""

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
    """Return ``value``. The type is for type checkers."""
    return value


def overload(function: object) -> object:
    """Return ``function``, an overload for type checkers that a later definition replaces."""
    return function


class _TupleMaker(type):
    """The metaclass that converts a class body to a named tuple: annotations are fields, values are defaults."""

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
