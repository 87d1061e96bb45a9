"""Where fronts are written down. The namespaces are computed from this and from the operators' registry."""

from __future__ import annotations

from collections.abc import Callable

from candelabra import _journal as journal
from candelabra._annotations import Any, Final, NamedTuple, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


class Front(NamedTuple):
    """A public function that is no record: how it is published."""

    function: Callable[..., Any]
    is_function: bool
    method: str | None
    """The method's name, None for no method."""
    is_property: bool = False


FRONTS: Final[dict[str, Front]] = {}
"""Functions and methods by public name, of the modules that are imported so far."""
METHODS: Final[dict[str, Front]] = {}
"""Those with a method, by its name."""


@overload
def front(function: F) -> F: ...
@overload
def front(
    *,
    function: bool = True,
    method: bool | str = True,
    is_property: bool = False,
    namespace: str = "",
    aliases: tuple[str, ...] = (),
) -> Callable[[F], F]: ...
def front(
    function: Any = True,
    *,
    method: bool | str = True,
    is_property: bool = False,
    namespace: str = "",
    aliases: tuple[str, ...] = (),
) -> Any:
    """Publish a function. ``method``: also (or under another name) as a Tensor method; ``function=False``: only so.

    ``namespace="linalg"`` publishes ``candelabra.linalg.<name>``, with a method only where ``method`` is a name.
    ``aliases`` are further public names, ``"concat"`` or ``"special.expit"``; one without a dot is a method where the
    function is.
    """
    if callable(function):
        return front()(function)

    def publish(made: F) -> F:
        name = made.__name__.rstrip("_") if made.__name__ in ("all_", "any_", "sum_") else made.__name__
        as_method = (name if method is True and not namespace else method) or None
        whole = f"{namespace}.{name}" if namespace else name
        _enter(whole, Front(made, bool(function), None if as_method is True else as_method, is_property))
        for alias in aliases:
            plain = as_method is not None and "." not in alias
            _enter(alias, Front(made, bool(function), alias if plain else None, is_property))
        return made

    return publish


def _enter(name: str, entry: Front) -> None:
    if name in FRONTS:
        raise ValueError(f"front {name!r} is declared twice")
    FRONTS[name] = entry
    if entry.method is not None:
        METHODS[entry.method] = entry
    journal.note(lambda: _withdraw(name))


def _withdraw(name: str) -> None:
    entry = FRONTS.pop(name, None)
    if entry is not None and entry.method is not None:
        METHODS.pop(entry.method, None)
