"""Access a payload's whole storage as a host array, to write faults of layout and of side effects."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import contiguous_strides
from numpy.lib.stride_tricks import as_strided

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of

Steps = tuple[int, ...]


def whole(mirror: Mirror, image: Image) -> Image:
    """Return a 1-d payload over the whole storage of ``image``."""
    size = image.memory.size // mirror.dtype_of(image).itemsize
    flat: Image = mirror.restride(image, (size,), (1,), 0)
    return flat


def seen(storage: Array, shape: Steps, strides: Steps, offset: int) -> Array:
    """Return a writable view of a storage with this layout. Indices beyond the storage's end wrap around."""
    reach = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1
    if 0 in shape or reach <= storage.size:
        return as_strided(storage[offset:], shape, [step * storage.itemsize for step in strides])
    places = offset + sum(
        np.arange(n).reshape(-1, *[1] * (len(shape) - 1 - i)) * step
        for i, (n, step) in enumerate(zip(shape, strides, strict=True))
    )
    return np.asarray(storage[np.asarray(places) % max(storage.size, 1)]).reshape(shape)


def read_as(mirror: Mirror, image: Image, strides: Steps | None = None, offset: int | None = None) -> Image:
    """Return a new payload with the content at other strides or another offset than the payload's own."""
    right_strides, right_offset = mirror.reference.layout(image.inner)
    storage = array_of(mirror, whole(mirror, image))
    wrong = seen(
        storage,
        image.shape,
        right_strides if strides is None else strides,
        right_offset if offset is None else offset,
    )
    return payload_of(mirror, wrong.copy(), image.index)


def as_if_contiguous(mirror: Mirror, image: Image) -> Image:
    """Return a new payload with the content of a contiguous payload at the same offset."""
    return read_as(mirror, image, strides=contiguous_strides(image.shape))


def is_contiguous(mirror: Mirror, image: Image) -> bool:
    """Return whether the payload is contiguous."""
    return mirror.reference.layout(image.inner)[0] == contiguous_strides(image.shape)


def each_image(value: Any, function: Any) -> Any:
    """Return the arguments with ``function`` applied to each payload, also inside lists."""
    if isinstance(value, Image):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(each_image(v, function) for v in value)
    return value


def overwrite(mirror: Mirror, image: Image, array: Array) -> None:
    """Write an array of the payload's shape and dtype into its memory, correctly."""
    mirror.reference.copy_(image.inner, payload_of(mirror, array, image.index).inner)
