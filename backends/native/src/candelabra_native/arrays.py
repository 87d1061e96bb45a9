"""NumPy arrays as the strided arrays of C kernels, and back, without a copy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra_clike import StridedArray
from candelabra_clike.templates.elementwise.calls import STRIDES
from candelabra_cpu.backend import FROM_NUMPY, TO_NUMPY, storage_of

from candelabra_native.launch._launch import Block, address_of

ndarray: Final = np.ndarray


class Unsuitable(Exception):
    """A call that the owner's kernel serves: an array with negative strides or elements off their boundaries, which C
    kernels do not address, or a value for which the call raises an error.
    """


def strided(x: Any, engine: Any) -> StridedArray:
    """Return an array that is only read. Its buffer is the array itself. Raises :class:`Unsuitable`."""
    flags = x.flags
    if flags.c_contiguous and flags.aligned:
        shape = x.shape
        return StridedArray(engine, x, shape, STRIDES[shape], 0, FROM_NUMPY[x.dtype], x.size, True)
    return _with_steps(x, engine, x, 0, FROM_NUMPY[x.dtype])


def shared(x: Any, engine: Any) -> StridedArray:
    """Return an array of a call that writes to one of its arrays.

    Arrays of one storage have one buffer, so that kernels see where they overlap. Raises :class:`Unsuitable`, also for
    arrays that must not be written, and for foreign memory, of which two arrays may exist that know nothing of each
    other.
    """
    buffer: Any = x.base
    flags = x.flags
    if buffer is None and flags.c_contiguous and flags.aligned and flags.writeable:  # most parameters: no view
        shape = x.shape
        return StridedArray(engine, x, shape, STRIDES[shape], 0, FROM_NUMPY[x.dtype], x.size, True)
    if buffer.__class__ is not Block:
        owner: Any = storage_of(x)
        buffer = owner if owner.base is None else owner.base
        if buffer is not owner and buffer.__class__ is not Block:
            raise Unsuitable
    distance, off = divmod(address_of(x) - address_of(buffer), x.itemsize)
    if off or not flags.writeable:
        raise Unsuitable
    return _with_steps(x, engine, buffer, distance, FROM_NUMPY[x.dtype])


def dense(x: Any, engine: Any) -> StridedArray:
    """Return an array that a kernel over rows may write, one after another.

    Raises :class:`Unsuitable` if it is not contiguous: a second kernel would copy the result back, and if that one were
    missing, some rows would be written and others not.
    """
    array = shared(x, engine)
    if not array.contiguous:
        raise Unsuitable
    return array


def _with_steps(x: Any, engine: Any, buffer: Any, offset: int, d: Any) -> StridedArray:
    size = x.itemsize
    steps = []
    for step in x.strides:
        if step < 0 or step % size:
            raise Unsuitable
        steps.append(step // size)
    flags = x.flags
    if not flags.aligned:
        raise Unsuitable
    contiguous = flags.c_contiguous
    strides = STRIDES[x.shape] if contiguous else tuple(steps)
    return StridedArray(engine, buffer, x.shape, strides, offset, d, x.size, contiguous)


def payload(a: Any) -> Any:
    """Return the NumPy array over the memory of a kernel's result."""
    if a.__class__ is not StridedArray:
        return a if a.__class__ is not tuple else tuple([payload(each) for each in a])
    if a.contiguous:
        return ndarray(a.shape, TO_NUMPY[a.dtype], a.buffer, a.offset * a.dtype.itemsize)
    size = a.dtype.itemsize
    return ndarray(a.shape, TO_NUMPY[a.dtype], a.buffer, a.offset * size, [step * size for step in a.strides])
