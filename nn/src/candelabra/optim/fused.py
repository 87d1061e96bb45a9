"""A whole step of an optimiser by a kernel of the device, for many parameters at once, where it has one.

The records are in :mod:`candelabra.nn._operators.steps`. A kernel of the record's name with ``_`` at its end takes, in
the place of each tensor of the record, a sequence of arrays, one for each parameter; it writes the arguments that the
record's outputs are named after. A step without such a kernel is done by the operators that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from candelabra.dtypes import BY_BIT, DTYPE_MASK
from candelabra.library import AUTOGRAD, DEVICE_SHIFT, NO_GRAD, Operator, fail, instance_of_key, kernel_for, state

__all__ = ["Row", "steps_by_kernel"]

PLAIN: Final = AUTOGRAD | NO_GRAD | DTYPE_MASK
"""What the key of a call may have that a kernel serves directly: no view, no mode, no layer that would see the call."""
NUMBERS: Final = frozenset((bool, int, float))
"""What a kernel takes beside tensors; a learning rate that is a tensor goes to the operators."""
Row = tuple[Any, ...]
"""A parameter, its gradient and what is kept beside it: the tensors of a record, in its order."""


def steps_by_kernel(op: Operator[..., Any], rows: Sequence[Row], *numbers: float) -> Sequence[Row]:
    """Do the step ``op`` of all rows in place by their devices' kernels; the rows for which there is none.

    ``numbers`` are the arguments of ``op`` after its tensors. Parameters of one device and dtype are one call. Shapes
    that do not fit are told in the words of the operator's rule, for the row at fault, before any row of the call
    changes.
    """
    if not NUMBERS.issuperset(map(type, numbers)):
        return rows
    kinds: dict[int, list[Row]] = {}
    mode = state.bits
    for row in rows:
        key = mode
        for t in row:
            key |= t._keys
        kinds.setdefault(key, []).append(row)
    left: list[Row] = []
    for key, alike in kinds.items():
        kernel = _kernel(op, key)
        if kernel is None:
            left += alike
        else:
            _run(op, kernel, alike, numbers)
    return left


def _kernel(op: Operator[..., Any], key: int) -> Callable[..., Any] | None:
    """What serves tensors whose keys together are ``key``."""
    devices = key >> DEVICE_SHIFT
    d = BY_BIT.get(key & DTYPE_MASK)
    if devices & (devices - 1) or d is None or key & ((1 << DEVICE_SHIFT) - 1) & ~PLAIN:
        return None
    instance = instance_of_key(key)
    return None if instance.immutable else kernel_for(instance, op.name + "_", d)


def _run(op: Operator[..., Any], kernel: Callable[..., Any], rows: Sequence[Row], numbers: tuple[float, ...]) -> None:
    columns = list(zip(*rows, strict=True))
    try:
        kernel(*[[t._payload for t in column] for column in columns], *numbers)
    except Exception as error:
        fail(op, error, (*_at_fault(rows), *numbers))
    for i in _written(op):
        for t in columns[i]:
            t._version[0] += 1


def _at_fault(rows: Sequence[Row]) -> Row:
    """The first row whose shapes differ, else the first."""
    return next((row for row in rows if len({t._payload.shape for t in row}) > 1), rows[0])


@lru_cache(None)
def _written(op: Operator[..., Any]) -> tuple[int, ...]:
    """Which tensors of the record its step changes: the parameter, and what outputs are named after."""
    outputs = op.schema.outputs
    return tuple(i for i, p in enumerate(op.schema.parameters) if not i or p.name in outputs)


def __dir__() -> list[str]:
    return sorted(__all__)
