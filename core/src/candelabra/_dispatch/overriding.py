"""The functions that serve calls with objects that define ``__torch_function__``; see ``candelabra._overrides``."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance
from candelabra._overrides import call_override, participates
from candelabra._records.registry import ENTRIES
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def overriding(op: Operator[..., Any], inplace: bool) -> Callable[..., Any]:
    """Return the function that passes calls of an operator to ``__torch_function__``.

    The handler gets the public function, and the arguments without those that are equal to their defaults.
    """
    kind = "inplace" if inplace else "function"
    function = public_form(op, kind)

    def handled(*args: Any) -> Any:
        positional, named = as_called(op, args)
        return call_override(function, args, positional, named, Tensor)

    return handled


def handle_arguments(op: Operator[..., Any], kind: str, arguments: dict[str, Any]) -> Any:
    """Serve a call whose arguments are not all tensors, or return NotImplemented if none of them handles calls."""
    values = [value for name in arguments for value in _items(arguments[name])]
    if not any(participates(type(value)) and not isinstance(value, Tensor) for value in values):
        return NotImplemented
    args = tuple([arguments.get(p.name, p.default) for p in op.schema.parameters])
    return overriding(op, kind == "inplace")(*args)


def _items(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def public_form(op: Operator[..., Any], kind: str) -> Callable[..., Any]:
    """Return the function that users call: that of the operator, or of the overload set that it belongs to."""
    if not op.public:
        for entry in list(ENTRIES.values()):
            if any(member is op for member, _ in getattr(entry, "members", ())):
                return entry.form(kind)
    return op.form(kind)


def as_called(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return canonical arguments as a user would pass them: without defaults, and by name after a gap."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    gap = False
    for p, value in zip(op.schema.parameters, args, strict=True):
        if isinstance(value, Instance):
            value = value.device
        if p.variadic:
            positional += value
        elif _is_default(value, p.default):
            gap = True
        elif p.keyword_only or gap:
            named[p.name] = value
        else:
            positional.append(value)
    return tuple(positional), named


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, float, str, tuple)) and value == default
