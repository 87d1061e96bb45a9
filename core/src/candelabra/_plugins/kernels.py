"""Replace or add the kernel of one operator on one device type at run time, and undo it.

A kernel that is registered here serves before all others of its operator, contributed ones included, and also inside
``own_kernels()``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._plugins import registry
from candelabra._plugins.checking import check_kernel
from candelabra._records.registry import OPERATORS
from candelabra.errors import BackendError

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.backend import Kernel

_lock: Final = threading.Lock()
_overrides: Final[dict[tuple[int, str], list[Any]]] = {}
"""(id of a kernel table, kernel's name) → the original entry (or None), then the overrides in order."""


def register_kernel(device_type: str, operator: str | Operator[..., Any], kernel: Kernel) -> Callable[[], None]:
    """Let ``kernel`` serve ``operator`` on every device of a type, and return the undo function.

    ``operator`` is a record or a name; a name that ends in ``_`` means the in-slot kernel. The kernel serves all later
    calls. The newest of several overrides is active; they may be undone in any order, each once. Raises
    ``BackendError`` for an unknown device type or operator and for a kernel that is not callable.
    """
    name = operator if isinstance(operator, str) else operator.name
    backend, table = registry.backend(device_type)
    check_kernel(f"backend {backend.name!r}", name, kernel)
    slot = (id(table), name)
    mark = (kernel,)  # a distinct object, since the same function may be registered twice
    with _lock:
        _overrides.setdefault(slot, [(table.get(name),)]).append(mark)
        _serve(table, name, slot)

    def undo() -> None:
        with _lock:
            stack = _overrides.get(slot, [])
            if not any(entry is mark for entry in stack):
                return
            stack[:] = [entry for entry in stack if entry is not mark]
            _serve(table, name, slot)

    journal.note(undo)
    return undo


def _serve(table: dict[str, Any], name: str, slot: tuple[int, str]) -> None:
    (kernel,) = _overrides[slot][-1]
    if len(_overrides[slot]) == 1:
        del _overrides[slot]
    if kernel is None:
        table.pop(name, None)
    else:
        table[name] = kernel
    record = OPERATORS.get(name) or OPERATORS.get(name[:-1])
    if record is not None:
        record.clear()


def rebase(table: dict[str, Any], entries: Mapping[str, Any]) -> None:
    """Replace the original entries of a table, to which undoing returns. Registered kernels stay in force."""
    with _lock:
        for name in [*table, *(name for name in entries if name not in table)]:
            stack = _overrides.get((id(table), name))
            if stack is not None:
                stack[0] = (entries.get(name),)
            elif name in entries:
                table[name] = entries[name]
            else:
                del table[name]


def get_kernel(device_type: str, operator: str | Operator[..., Any]) -> Kernel:
    """Return the active kernel of an operator on a device type. Raise BackendError if it has none."""
    name = operator if isinstance(operator, str) else operator.name
    _, table = registry.backend(device_type)
    try:
        return table[name]
    except KeyError:
        raise BackendError(f"backend {device_type!r} has no kernel {name!r}") from None
