"""Copies, casts and fills; concatenation, assignment to basic indices, and views as another dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from struct import pack, unpack
from typing import Any

from candelabra.backend import indexed_geometry
from candelabra.dtypes import COMPLEX, INTEGER, dtype, float16
from candelabra.dtypes import dtype as DType

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import scalar, scalar_converter, scalar_types
from candelabra_clike.language import constant, value_type
from candelabra_clike.layouts import overlapping
from candelabra_clike.templates.elementwise.elementwise import Elementwise, cast_kernel, copy_kernel
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

PARALLEL_COPY_SIZE = 1 << 21
"""The size in bytes from which a copy on a CPU device is a kernel: drivers copy on one core."""


def copy_into(destination: StridedArray, source: StridedArray) -> StridedArray:
    """Copy ``source`` (same dtype, broadcast) into ``destination``. The two may overlap."""
    if not destination.size:
        return destination
    same_layout = destination.contiguous and source.contiguous and source.shape == destination.shape
    if same_layout and overlapping(destination, source):
        if source.offset == destination.offset:
            return destination
        source = clone(source)
    if same_layout and not copies_in_parallel(destination):
        size = destination.dtype.itemsize
        destination.engine.copy(
            destination.buffer, destination.offset * size, source.buffer, source.offset * size, source.size * size
        )
        return destination
    result: StridedArray = copy_kernel(destination.dtype)(source, out=destination)
    return result


def copies_in_parallel(array: StridedArray) -> bool:
    """Whether a kernel copies the array faster than the driver."""
    return array.engine.traits.serial and array.size * array.dtype.itemsize >= PARALLEL_COPY_SIZE


def clone(array: StridedArray) -> StridedArray:
    """A contiguous copy."""
    copy = array.engine.empty(array.shape, array.dtype)
    return copy_into(copy, array)


def contiguous(array: StridedArray) -> StridedArray:
    """Return the array itself if it is contiguous, otherwise a contiguous copy."""
    return array if array.contiguous else clone(array)


def cast(array: StridedArray, dtype: dtype) -> StridedArray | Any:
    """A copy in another dtype."""
    if dtype is array.dtype:
        return clone(array)
    if array.engine.lacks(dtype):
        return NotImplemented
    result: StridedArray = cast_kernel(array.dtype, dtype)(array)
    return result


def copied(array: StridedArray, src: StridedArray) -> StridedArray:
    """Return ``src``, broadcast to the shape of ``array``, in new memory."""
    return copy_into(array.engine.empty(array.shape, array.dtype), src)


# -- fills ------------------------------------------------------------------------------------------------------------
@lru_cache(None)
def fill_function(d: dtype) -> Callable[[StridedArray, Any], StridedArray]:
    """Return the function that fills arrays of a dtype with a number."""
    nest = Elementwise(f"fill_{d.name}", scalar(d, 0), (), d, scalar_types(d))
    convert = scalar_converter(d)
    bits = 31 if d.itemsize <= 4 else 63
    least, beyond = -(1 << bits), 1 << bits << (not d.is_signed)

    def fill(out: StridedArray, value: Any) -> StridedArray:
        if value.__class__ is complex and d.category != COMPLEX:
            value = value.real
        if d is float16:
            value = round_to_float16(value)
        elif d.category == INTEGER and value.__class__ is float and not least <= value < beyond:
            value = least if d.is_signed else 0  # the result of a cast
        if not out.contiguous:
            return nest.general((), convert(value), out)  # type: ignore[no-any-return]
        launch, chunk, _ = nest.flat[out.engine]
        launch(-(-out.size // chunk), out.buffer, out.offset, out.size, *convert(value))
        return out

    return fill


def round_to_float16(value: Any) -> float:
    """Return the float16 number nearest to a number. Rounding to float32 first could give another one."""
    try:
        return float(unpack("e", pack("e", value))[0])
    except OverflowError:
        return inf if value > 0 else -inf


def filled_(array: StridedArray, value: Any) -> StridedArray:
    """Fill an array with a number, or with an array that broadcasts."""
    if type(value) is StridedArray:
        return copy_into(array, value)
    return fill_function(array.dtype)(array, value)


def filled(array: StridedArray, value: Any) -> StridedArray:
    """Return a new array that is filled with a number."""
    return filled_(array.engine.empty(array.shape, array.dtype), value)


def zeros(like: StridedArray, shape: tuple[int, ...], d: dtype) -> StridedArray:
    """Return an array of zeros on the device of ``like``."""
    out = like.engine.empty(shape, d)
    if out.size:
        zero(bits(d))(out=out)
    return out


@lru_cache(64)
def zero(d: dtype) -> Elementwise:
    """Return the kernel that fills an array with 0."""
    return Elementwise(f"zero_{CTYPES[d].memory}", constant(value_type(d), 0), (), d)


def cat(tensors: Sequence[StridedArray], dim: int) -> StridedArray:
    """Concatenate tensors along ``dim``."""
    first = tensors[0]
    front, back = first.shape[:dim], first.shape[dim + 1 :]
    total = 0
    for tensor in tensors:
        if not tensor.shape or tensor.shape[:dim] != front or tensor.shape[dim + 1 :] != back:
            raise ValueError(f"cat() expects equal sizes except along dim {dim}, got {first.shape} and {tensor.shape}")
        total += tensor.shape[dim]
    out = first.engine.empty((*front, total, *back), first.dtype)
    at, step = 0, out.strides[dim]
    for tensor in tensors:
        if tensor.size:
            copy_into(out.restrided(tensor.shape, out.strides, at), tensor)
        at += tensor.shape[dim] * step
    return out


def basic_index_adjoint(x: StridedArray, shape: Shape, index: tuple[Any, ...]) -> StridedArray:
    """Zeros with ``x`` at ``[index]``."""
    return _assign(zeros(x, shape, x.dtype), x, index)


def basic_index_scatter(x: StridedArray, src: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """A copy with ``src`` at ``[index]``."""
    return _assign(clone(x), src, index)


def _assign(out: StridedArray, part: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    """Write ``part``, which broadcasts, to ``out[index]`` and return ``out``."""
    copy_into(out.restrided(*indexed_geometry(out.shape, out.strides, out.offset, index)), part)
    return out


# -- complex numbers as pairs -----------------------------------------------------------------------------------------
def view_as_real(array: StridedArray) -> StridedArray:
    """View complex numbers as pairs (real, imaginary) along a new last axis."""
    steps = tuple(2 * step for step in array.strides)
    return array.restrided((*array.shape, 2), (*steps, 1), 2 * array.offset, array.dtype.to_real())


def view_as_complex(array: StridedArray) -> StridedArray:
    """View pairs along the last axis as complex numbers. Raises ``ValueError`` if the layout does not allow it."""
    steps = array.strides
    if array.shape[-1:] != (2,) or steps[-1] != 1 or array.dtype.is_half or array.offset % 2:
        raise ValueError(f"view_as_complex: expected pairs of float32 or float64, got {array!r}")
    if any(step % 2 for step, size in zip(steps[:-1], array.shape) if size != 1):
        raise ValueError(f"view_as_complex: expected even strides, so that pairs are aligned, got {steps}")
    halves = tuple(step // 2 for step in steps[:-1])
    return array.restrided(array.shape[:-1], halves, array.offset // 2, array.dtype.to_complex())


def view_dtype(array: StridedArray, dtype: DType) -> StridedArray:
    """Return a view as another dtype. The last dim grows or shrinks with the item size.

    Raises ``ValueError`` if the last dim is not contiguous or its size is not divisible.
    """
    old, new = array.dtype.itemsize, dtype.itemsize
    shape, steps, offset = array.shape, array.strides, array.offset
    if old == new:
        return array.restrided(shape, steps, offset, dtype)
    if not shape or steps[-1] != 1:
        raise ValueError(f"view_dtype: expected a last dim with stride 1, got {array!r} with strides {steps}")
    if old > new:
        ratio = old // new
        narrow = tuple([step * ratio for step in steps[:-1]])
        return array.restrided((*shape[:-1], shape[-1] * ratio), (*narrow, 1), offset * ratio, dtype)
    ratio = new // old
    if any(n % ratio for n in (shape[-1], offset, *steps[:-1])):
        raise ValueError(
            f"view_dtype: the size, offset or strides of {array!r} are not divisible by {ratio} for {dtype.name}"
        )
    wide = tuple([step // ratio for step in steps[:-1]])
    return array.restrided((*shape[:-1], shape[-1] // ratio), (*wide, 1), offset // ratio, dtype)


KERNELS: dict[str, Any] = {
    "cat": cat, "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
    "clone": clone, "cast": cast, "copied": copied, "copied_": copy_into, "filled": filled, "filled_": filled_,
    "view_as_real": view_as_real, "view_as_complex": view_as_complex, "view_dtype": view_dtype,
}  # fmt: skip
