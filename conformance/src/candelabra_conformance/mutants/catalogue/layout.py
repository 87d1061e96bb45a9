"""Faults of layout: strides, offsets, broadcasting, overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel, contiguous_strides

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, breaks, breaks_backend, breaks_kernel, payload_of
from candelabra_conformance.mutants.storage import as_if_contiguous, each_image, overwrite, read_as, seen, whole

Layout = tuple[tuple[int, ...], int]


# -- reading ----------------------------------------------------------------------------------------------------------
@breaks_kernel("sub", "exp", "amax", caught_by="*/value/*/transposed")
def ignores_strides(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """Inputs are read as if they were contiguous after their offset."""
    return right(*each_image(args, lambda image: as_if_contiguous(mirror, image)))


@breaks_kernel("mul", "neg", "sum", caught_by="*/value/*/offset")
def drops_the_offset(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """Inputs are read from the start of their storage."""
    return right(*each_image(args, lambda image: read_as(mirror, image, offset=0)))


@breaks_kernel("add", "sqrt", "cumsum", caught_by="*/value/*/step")
def takes_every_element_for_its_neighbour(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """The stride of the last dim is taken for 1."""

    def wrong(image: Image) -> Image:
        strides, _ = mirror.reference.layout(image.inner)
        return read_as(mirror, image, strides=(*strides[:-1], 1)) if strides and strides[-1] else image

    return right(*each_image(args, wrong))


@breaks_kernel("matmul", caught_by="matmul/value/*/transposed")
def forgets_the_transposition(mirror: Mirror, right: Kernel, x: Image, y: Image) -> Any:
    """A transposed matrix is multiplied as if it were not transposed."""

    def wrong(image: Image) -> Image:
        strides, _ = mirror.reference.layout(image.inner)
        transposed = len(strides) >= 2 and strides[-2] == 1 and strides[-1] > 1
        return as_if_contiguous(mirror, image) if transposed else image

    return right(wrong(x), wrong(y))


@breaks_kernel("div", "maximum", caught_by="*/value/*/broadcast")
def reads_on_where_the_stride_is_0(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """A dim of stride 0 is read with a stride of 1."""

    def wrong(image: Image) -> Image:
        strides, _ = mirror.reference.layout(image.inner)
        return read_as(mirror, image, strides=tuple(step or 1 for step in strides)) if 0 in strides else image

    return right(*each_image(args, wrong))


@breaks_kernel("atan2", "sub", caught_by="*/value/*/broadcast")
def allocates_results_of_stride_0(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """The result gets the first input's strides, including 0, so elements overwrite each other."""
    out = right(*args)
    first = args[0]
    if not isinstance(first, Image) or first.shape != out.shape:
        return out
    array = array_of(mirror, out)
    for dim, step in enumerate(mirror.reference.layout(first.inner)[0]):
        if step == 0 and array.shape[dim] > 1:
            array = np.broadcast_to(np.take(array, [-1], axis=dim), array.shape)
    return payload_of(mirror, array, out.index)


@breaks("add", "where", caught_by="*/value/*")
def repeats_the_wrong_dim(right: Kernel, *args: Any) -> Any:
    """An operand that is broadcast along its last dim is repeated as a whole instead."""
    shape = np.broadcast_shapes(*(a.shape for a in args if isinstance(a, np.ndarray)))

    def wrong(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.size > 1 and value.shape[-1] == 1 and value.shape != shape:
            return np.resize(value, shape)
        return value

    return right(*(wrong(a) for a in args))


@breaks("mul", caught_by="mul/value/*")
def aligns_shapes_at_the_left(right: Kernel, x: Any, y: Any) -> Any:
    """An operand of fewer dims is repeated along the last dims instead of the first."""

    def wrong(value: Any, other: Any) -> Any:
        if not (isinstance(value, np.ndarray) and isinstance(other, np.ndarray) and 0 < value.ndim < other.ndim):
            return value
        if value.shape != other.shape[other.ndim - value.ndim :]:
            return value
        return np.repeat(value.reshape(-1), other.size // max(value.size, 1)).reshape(other.shape)

    return right(wrong(x, y), wrong(y, x))


# -- views ------------------------------------------------------------------------------------------------------------
@breaks_backend("basic_index", "diagonal", caught_by="basic_index/value/* */aliasing/*")
class StartsViewsOneElementLate(Mirror):
    """A view with an offset begins one element late."""

    def restride(self, payload: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """Add 1 to the offset if the storage is large enough."""
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        size = payload.memory.size // self.dtype_of(payload).itemsize
        return super().restride(payload, shape, strides, offset + 1 if offset > 0 and last + 1 < size else offset)


@breaks_backend("permute", "transpose", "basic_index", "expand", "view", caught_by="*/value/*/* */aliasing/*")
class ReportsContiguousStrides(Mirror):
    """``layout`` reports every payload as contiguous."""

    def layout(self, payload: Any) -> Layout:
        """Return the strides of a new payload."""
        return contiguous_strides(payload.shape), super().layout(payload)[1]


@breaks_backend("permute", "transpose", "basic_index", "expand", caught_by="*/value/*/offset */aliasing/*")
class ReportsNoOffset(Mirror):
    """``layout`` reports no offset."""

    def layout(self, payload: Any) -> Layout:
        """Return the layout without the offset."""
        return super().layout(payload)[0], 0


@breaks_backend("expand", caught_by="expand/value/* expand/aliasing/*")
class RestridesZeroAsOne(Mirror):
    """A view of stride 0 has the stride 1."""

    def restride(self, payload: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """Limit the strides to the storage, since an access outside it could end the process."""
        steps = tuple(step or 1 for step in strides)
        last = offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
        fits = last < payload.memory.size // self.dtype_of(payload).itemsize
        return super().restride(payload, shape, steps if fits else strides, offset)


@breaks_backend(caught_by="device/copy* device/roundtrip* device/aliasing*")
class ReadsOutInStorageOrder(Mirror):
    """``to_host`` returns the bytes in storage order."""

    def to_host(self, payload: Any) -> memoryview:
        """Ignore the strides."""
        return super().to_host(as_if_contiguous(self, payload))


# -- writing ----------------------------------------------------------------------------------------------------------
def _one_by_one(mirror: Mirror, target: Image, source: Any, step: Any) -> None:
    """Execute ``target[i] = step(target[i], source[i])`` in order, with each write visible to later reads."""
    flat = whole(mirror, target)
    storage = array_of(mirror, flat)
    into = seen(storage, target.shape, *mirror.reference.layout(target.inner))
    if isinstance(source, Image) and source.memory is target.memory:
        given: Array = np.broadcast_to(seen(storage, source.shape, *mirror.reference.layout(source.inner)), into.shape)
    else:
        given = np.broadcast_to(array_of(mirror, source) if isinstance(source, Image) else source, into.shape)
    for index in np.ndindex(into.shape):
        into[index] = step(into[index], given[index])
    overwrite(mirror, flat, storage)


@breaks_backend("copied", caught_by="device/overlap*")
class CopiesFrontToBack(Mirror):
    """A copy within one storage overwrites elements before it reads them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.table["copied_"] = self.copy_

    def copy_(self, destination: Any, source: Any) -> Any:
        """Copy element by element, in order."""
        if isinstance(source, Image) and source.memory is destination.memory and source.shape == destination.shape:
            _one_by_one(self, destination, source, lambda _, b: b)
            return destination
        given = array_of(self, source) if isinstance(source, Image) else source
        overwrite(self, destination, np.broadcast_to(given, destination.shape))
        return destination


@breaks_kernel("exp_", "neg_", "sub_", caught_by="*/inplace/*/*")
def writes_in_c_order(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """An in-place result is written after the offset without regard to strides."""
    before = array_of(mirror, whole(mirror, x))
    right(x, *rest)
    result = array_of(mirror, x).reshape(-1)
    start = mirror.reference.layout(x.inner)[1]
    after = before.copy()
    after[start : start + result.size] = result[: max(before.size - start, 0)]
    overwrite(mirror, whole(mirror, x), after)
    return x
