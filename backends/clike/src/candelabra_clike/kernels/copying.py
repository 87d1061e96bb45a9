"""Copies and casts: what moves elements without computing with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from struct import pack, unpack
from typing import Any

from candelabra.dtypes import COMPLEX, INTEGER, dtype, float16

from candelabra_clike.array import StridedArray
from candelabra_clike.conversions import conversion
from candelabra_clike.layouts import overlapping
from candelabra_clike.numbers import converter, number_types, number_word
from candelabra_clike.templates.elementwise.elementwise import Elementwise, identity

SHARED = 1 << 21
"""Bytes of a copy from which on it is a kernel on processors: their drivers copy with one core."""


def copy_into(destination: StridedArray, source: StridedArray) -> StridedArray:
    """Write the elements of ``source`` (same dtype, a shape that broadcasts) into ``destination``; they may overlap."""
    if not destination.size:
        return destination
    alike = destination.contiguous and source.contiguous and source.shape == destination.shape
    if alike and overlapping(destination, source):
        if source.offset == destination.offset:
            return destination
        source = clone(source)
    if alike and not by_all_cores(destination):
        size = destination.dtype.itemsize
        destination.engine.copy(
            destination.buffer, destination.offset * size, source.buffer, source.offset * size, source.size * size
        )
        return destination
    result: StridedArray = identity(destination.dtype)(source, out=destination)
    return result


def by_all_cores(array: StridedArray) -> bool:
    """Whether a kernel fills it sooner than a copy by the driver."""
    return array.engine.traits.serial and array.size * array.dtype.itemsize >= SHARED


def clone(array: StridedArray) -> StridedArray:
    """A contiguous copy."""
    if array.contiguous and by_all_cores(array):
        result: StridedArray = identity(array.dtype)(array)
        return result
    copy = array.engine.empty(array.shape, array.dtype)
    return copy_into(copy, array)


def dense(array: StridedArray) -> StridedArray:
    """The array itself where it is contiguous, else a copy."""
    return array if array.contiguous else clone(array)


@lru_cache(None)
def casting(source: dtype, target: dtype) -> Elementwise:
    """The conversion of elements of one dtype into another."""
    return Elementwise(f"{source.name}_as_{target.name}", conversion(source, target), (source,), target)


def cast(array: StridedArray, dtype: dtype) -> StridedArray:
    """A copy in another dtype."""
    if dtype is array.dtype:
        return clone(array)
    result: StridedArray = casting(array.dtype, dtype)(array)
    return result


def copied(array: StridedArray, src: StridedArray) -> StridedArray:
    """``src``, broadcast to the shape of ``array``, in memory of its own."""
    return copy_into(array.engine.empty(array.shape, array.dtype), src)


# -- one value everywhere ---------------------------------------------------------------------------------------------
@lru_cache(None)
def filling(d: dtype) -> Callable[[StridedArray, Any], StridedArray]:
    """The function that writes a number everywhere into arrays of a dtype."""
    nest = Elementwise(f"fill_{d.name}", number_word(d, 0), (), d, number_types(d))
    convert = converter(d)
    bits = 31 if d.itemsize <= 4 else 63
    least, beyond = -(1 << bits), 1 << bits << (not d.is_signed)

    def fill(out: StridedArray, value: Any) -> StridedArray:
        if value.__class__ is complex and d.category != COMPLEX:
            value = value.real
        if d is float16:
            value = half(value)
        elif d.category == INTEGER and value.__class__ is float and not least <= value < beyond:
            value = least if d.is_signed else 0  # what a cast gives
        return nest.general((), convert(value), out)  # type: ignore[no-any-return]

    return fill


def half(value: Any) -> float:
    """The float16 number nearest to a number, which float32 on the way would miss."""
    try:
        return float(unpack("e", pack("e", value))[0])
    except OverflowError:
        return inf if value > 0 else -inf


def filled_(array: StridedArray, value: Any) -> StridedArray:
    """``value``, a number or an array that broadcasts, everywhere."""
    if type(value) is StridedArray:
        return copy_into(array, value)
    return filling(array.dtype)(array, value)


def filled(array: StridedArray, value: Any) -> StridedArray:
    """The same in an array of its own."""
    return filled_(array.engine.empty(array.shape, array.dtype), value)


# -- complex numbers as pairs -----------------------------------------------------------------------------------------
def view_as_real(array: StridedArray) -> StridedArray:
    """Pairs (real, imaginary) along a last axis, over the same memory."""
    steps = tuple(2 * step for step in array.strides)
    return array.restrided((*array.shape, 2), (*steps, 1), 2 * array.offset, array.dtype.to_real())


def view_as_complex(array: StridedArray) -> StridedArray:
    """Pairs along the last axis as complex numbers, over the same memory. ``ValueError`` where there are no pairs."""
    steps = array.strides
    if array.shape[-1:] != (2,) or steps[-1] != 1 or array.dtype.itemsize < 4 or array.offset % 2:
        raise ValueError(f"view_as_complex: expected pairs of float32 or float64, got {array!r}")
    if any(step % 2 for step, size in zip(steps[:-1], array.shape) if size != 1):
        raise ValueError(f"view_as_complex: pairs have to begin at even places, got strides {steps}")
    halves = tuple(step // 2 for step in steps[:-1])
    return array.restrided(array.shape[:-1], halves, array.offset // 2, array.dtype.to_complex())


KERNELS: dict[str, Any] = {
    "clone": clone, "cast": cast, "copied": copied, "copied_": copy_into, "filled": filled, "filled_": filled_,
    "view_as_real": view_as_real, "view_as_complex": view_as_complex,
}  # fmt: skip
