"""Fused optimizer steps: one call of a device's kernel updates many parameters.

The records are in :mod:`candelabra.nn._operators.steps`. The kernel has the record's name with ``_`` at its end. For
each tensor of the record it takes a sequence of arrays, one for each parameter, and it writes the arguments that the
record's outputs are named after. Without such a kernel, the step's operators are called for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from candelabra.dtypes import BY_BIT, DTYPE_MASK
from candelabra.library import AUTOGRAD, DEVICE_SHIFT, NO_GRAD, Operator, fail, instance_of_key, kernel_for, state

__all__ = ["Row", "steps_by_kernel"]

PLAIN: Final = AUTOGRAD | NO_GRAD | DTYPE_MASK
"""The bits of a key that a kernel serves directly: other bits mean a view, a mode or a layer."""
NUMBERS: Final = frozenset((bool, int, float))
"""The types of a kernel's arguments other than tensors. If the learning rate is a tensor, operators do the step."""
Row = tuple[Any, ...]
"""A parameter, its gradient and its state: the tensors of a record, in its order."""


def steps_by_kernel(op: Operator[..., Any], rows: Sequence[Row], *numbers: float) -> Sequence[Row]:
    """Do the step ``op`` of all rows in place by kernels of their devices. Return the rows without a kernel.

    ``numbers`` are the arguments of ``op`` after its tensors. Parameters of one device and dtype are updated by one
    call. For shapes that do not match, the operator's rule raises an error before any row of the call changes.
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
    for key, same_key in kinds.items():
        kernel = _kernel(op, key)
        if kernel is None:
            left += same_key
        else:
            _run(op, kernel, same_key, numbers)
    return left


def _kernel(op: Operator[..., Any], key: int) -> Callable[..., Any] | None:
    """Return the kernel for tensors whose combined key is ``key``, or None."""
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
        fail(op, error, (*_mismatched_row(rows), *numbers))
    for i in _written(op):
        for t in columns[i]:
            t._version[0] += 1


def _mismatched_row(rows: Sequence[Row]) -> Row:
    """Return the first row whose shapes differ, or the first row if there is none."""
    return next((row for row in rows if len({t._payload.shape for t in row}) > 1), rows[0])


@lru_cache(None)
def _written(op: Operator[..., Any]) -> tuple[int, ...]:
    """Return the indices of the tensors that the step changes: the parameter and those named by outputs."""
    outputs = op.schema.outputs
    return tuple(i for i, p in enumerate(op.schema.parameters) if not i or p.name in outputs)


def __dir__() -> list[str]:
    return sorted(__all__)
