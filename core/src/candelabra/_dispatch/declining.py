"""Kernels that decline calls: the first declined call of each kernel and dtype, with the reason that the kernel gave.

A kernel returns ``NotImplemented`` to decline a call, and another step of dispatch serves it. The result is right, so
an error in the kernel's own code would pass unnoticed. :func:`decline` keeps its text; the suite's reports and
:func:`~candelabra.library.declined_kernels` list it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra.dtypes import dtype

NO_REASON: Final = "no reason given"


class DeclinedKernel(NamedTuple):
    """A kernel that declined a call, and the reason of the first one in a dtype."""

    device: str
    operator: str
    dtype: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator} in {self.dtype}: {self.reason}"


class _Reason(threading.local):
    text = NO_REASON


_reason: Final = _Reason()
_declined: Final[dict[tuple[str, str, str], DeclinedKernel]] = {}


def decline(reason: BaseException | str) -> Any:
    """Return ``NotImplemented``, by which a kernel declines a call, and keep the reason: an exception or a text.

    The suite's reports list the kernels that declined calls with the reason of the first call, so that errors in a
    kernel's own code are not hidden. Use it in place of a plain ``return NotImplemented`` wherever a kernel catches
    exceptions.
    """
    # Only the text: an exception refers to frames, and these to arrays.
    text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
    _reason.text = text.partition("\n")[0][:500]
    return NotImplemented


def note(instance: Instance, operator: str, compute: dtype) -> None:
    """Keep the reason of the first call that a kernel declined in a dtype."""
    text, _reason.text = _reason.text, NO_REASON
    mark = str(instance.device), operator, compute.name
    _declined.setdefault(mark, DeclinedKernel(*mark, text))


def noting(function: Callable[..., Any], instance: Instance, operator: str, compute: dtype) -> Callable[..., Any]:
    """Return the function that serves the calls that a kernel declines, which keeps the reason of the first one."""
    noted = False

    def run(*args: Any) -> Any:
        nonlocal noted
        if not noted:
            noted = True
            note(instance, operator, compute)
        return function(*args)

    return run


def declined_kernels() -> tuple[DeclinedKernel, ...]:
    """Return the kernels that declined calls in this process, by operator and dtype in the order of the first calls."""
    return tuple(_declined.values())


def reason_of(instance: Instance, operator: str, compute: dtype) -> str | None:
    """Return why a kernel declined its first call in a dtype, or None if it declined none in this process."""
    found = _declined.get((str(instance.device), operator, compute.name))
    return None if found is None else found.reason
