"""A whole step of an optimiser by one kernel of the device, where it has one.

The records are in :mod:`candelabra.nn.operators.steps`. A kernel of the record's name with ``_`` at its end writes the
arguments that the record's outputs are named after; a step without one is done by the operators that it is made of.
"""

from __future__ import annotations

from typing import Any, Final

from candelabra.device import instance_of_key, kernel_for
from candelabra.dispatch.failure import fail
from candelabra.dtypes import BY_BIT, DTYPE_MASK
from candelabra.keys import AUTOGRAD, DEVICE_SHIFT, NO_GRAD, state
from candelabra.operator.record import Operator

__all__ = ["step_by_kernel"]

PLAIN: Final = AUTOGRAD | NO_GRAD | DTYPE_MASK
"""What the key of a call may have that a kernel serves directly: no view, no mode, no layer that would see the call."""
NUMBERS: Final = frozenset((bool, int, float))
"""What a kernel takes beside tensors; a learning rate that is a tensor goes to the operators."""


def step_by_kernel(op: Operator[..., Any], tensors: tuple[Any, ...], *numbers: float) -> bool:
    """Do the step in place by the device's kernel; False, and nothing done, where there is none for such tensors.

    ``tensors`` and ``numbers`` are the arguments of ``op``, whose first outputs name what is written.
    """
    key = state.bits
    for t in tensors:
        key |= t._keys
    devices = key >> DEVICE_SHIFT
    d = BY_BIT.get(key & DTYPE_MASK)
    if devices & (devices - 1) or d is None or key & ((1 << DEVICE_SHIFT) - 1) & ~PLAIN:
        return False
    instance = instance_of_key(key)
    kernel = None if instance.immutable else kernel_for(instance, op.name + "_", d)
    if kernel is None or not NUMBERS.issuperset(map(type, numbers)):
        return False
    try:
        kernel(*[t._payload for t in tensors], *numbers)
    except Exception as error:
        fail(op, error, (*tensors, *numbers))
    outputs = op.schema.outputs
    for parameter, t in zip(op.schema.parameters, tensors):
        if t is tensors[0] or parameter.name in outputs:
            t._version[0] += 1
    return True
