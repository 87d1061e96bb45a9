"""NumPy arrays as the strided arrays of C kernels, and back, without a copy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra_clike import StridedArray
from candelabra_clike.templates.elementwise.calls import STRIDES
from candelabra_cpu.backend import FROM_NUMPY, TO_NUMPY, storage_of

from candelabra_native.launch._launch import Block, address_of

ndarray: Final = np.ndarray
new: Final = object.__new__


class Unsuitable(Exception):
    """A call that the owner's kernel serves: an array with negative strides or elements off their boundaries, which C
    kernels do not address, or a value for which the call raises an error.
    """


def strided(x: Any, engine: Any, buffer: Any = None, offset: int = 0) -> StridedArray:
    """Return an array that is only read. Raises :class:`Unsuitable`.

    Its buffer is the array itself, unless another one is given, in which it starts at an offset.
    """
    flags, shape = x.flags, x.shape
    out = new(StridedArray)  # calling the class would take twice as long
    out.engine = engine
    out.buffer = x if buffer is None else buffer
    out.shape = shape
    out.contiguous = contiguous = flags.c_contiguous
    out.strides = STRIDES[shape] if contiguous else steps_of(x)
    out.offset = offset
    out.dtype = FROM_NUMPY[x.dtype]
    out.size = x.size
    if not flags.aligned:
        raise Unsuitable
    return out


def steps_of(x: Any) -> tuple[int, ...]:
    """Return the strides of an array in elements. Raises :class:`Unsuitable`."""
    size, steps = x.itemsize, []
    for step in x.strides:
        if step < 0 or step % size:
            raise Unsuitable
        steps.append(step // size)
    return tuple(steps)


def shared(x: Any, engine: Any) -> StridedArray:
    """Return an array of a call that writes to one of its arrays.

    Arrays of one storage have one buffer, so that kernels see where they overlap. Raises :class:`Unsuitable`, also for
    arrays that must not be written, and for foreign memory, of which two arrays may exist that know nothing of each
    other.
    """
    buffer: Any = x.base
    flags = x.flags
    if buffer is None and flags.c_contiguous and flags.aligned and flags.writeable:  # most parameters: no view
        return strided(x, engine)
    if buffer.__class__ is not Block:
        owner: Any = storage_of(x)
        buffer = owner if owner.base is None else owner.base
        if buffer is not owner and buffer.__class__ is not Block:
            raise Unsuitable
    distance, off = divmod(address_of(x) - address_of(buffer), x.itemsize)
    if off or not flags.writeable:
        raise Unsuitable
    return strided(x, engine, buffer, distance)


def dense(x: Any, engine: Any) -> StridedArray:
    """Return an array that a kernel over rows may write, one after another.

    Raises :class:`Unsuitable` if it is not contiguous: a second kernel would copy the result back, and if that one were
    missing, some rows would be written and others not.
    """
    array = shared(x, engine)
    if not array.contiguous:
        raise Unsuitable
    return array


def payload(a: Any) -> Any:
    """Return the NumPy array over the memory of a kernel's result."""
    if a.__class__ is not StridedArray:
        if a.__class__ is not tuple:
            return a
        arrays = []
        for each in a:  # most are contiguous
            if each.__class__ is StridedArray and each.contiguous:
                d = each.dtype
                arrays.append(ndarray(each.shape, TO_NUMPY[d], each.buffer, each.offset * d.itemsize))
            else:
                arrays.append(payload(each))
        return tuple(arrays)
    if a.contiguous:
        return ndarray(a.shape, TO_NUMPY[a.dtype], a.buffer, a.offset * a.dtype.itemsize)
    size = a.dtype.itemsize
    return ndarray(a.shape, TO_NUMPY[a.dtype], a.buffer, a.offset * size, [step * size for step in a.strides])
