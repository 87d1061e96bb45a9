"""Kernels that come late: one operator on one device type replaced or added, and put back."""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._plugins import registry
from candelabra._plugins.loading import check_kernel
from candelabra._records.record import OPERATORS, Operator
from candelabra.errors import BackendError

if TYPE_CHECKING:
    from candelabra.backend import Kernel

_lock: Final = threading.Lock()
_overrides: Final[dict[tuple[int, str], list[Any]]] = {}
"""(identity of a kernel table, kernel's name) → what stood there first (None: nothing), then each override."""


def register_kernel(device_type: str, operator: str | Operator[..., Any], kernel: Kernel) -> Callable[[], None]:
    """Let ``kernel`` serve ``operator`` on every device of a type, from the next call on; returns the undo function.

    ``operator`` is a name, with ``_`` at its end for the in-place kernel, or a record. Calls resolved before are
    forgotten. Of several overrides the newest serves; they may be undone in any order, each once. Raises
    ``BackendError`` for an unknown device type or operator and for a kernel that is not callable.
    """
    name = operator if isinstance(operator, str) else operator.name
    made, table = registry.backend(device_type)
    check_kernel(made.name, name, kernel)
    place = (id(table), name)
    mark = (kernel,)  # an identity of its own: the same function may be registered twice
    with _lock:
        _overrides.setdefault(place, [(table.get(name),)]).append(mark)
        _serve(table, name, place)

    def undo() -> None:
        with _lock:
            stack = _overrides.get(place, [])
            if not any(entry is mark for entry in stack):
                return
            stack[:] = [entry for entry in stack if entry is not mark]
            _serve(table, name, place)

    journal.note(undo)
    return undo


def _serve(table: dict[str, Any], name: str, place: tuple[int, str]) -> None:
    (kernel,) = _overrides[place][-1]
    if len(_overrides[place]) == 1:
        del _overrides[place]
    if kernel is None:
        table.pop(name, None)
    else:
        table[name] = kernel
    record = OPERATORS.get(name) or OPERATORS.get(name[:-1])
    if record is not None:
        record.clear()


def get_kernel(device_type: str, operator: str | Operator[..., Any]) -> Kernel:
    """The kernel that serves an operator on a device type now. BackendError where there is none."""
    name = operator if isinstance(operator, str) else operator.name
    _, table = registry.backend(device_type)
    try:
        return table[name]
    except KeyError:
        raise BackendError(f"backend {device_type!r} has no kernel {name!r}") from None
