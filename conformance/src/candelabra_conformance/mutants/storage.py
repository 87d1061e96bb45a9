"""A payload's whole memory as a host array: what faults of layout and of effects are written with."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import contiguous_strides
from numpy.lib.stride_tricks import as_strided

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of

Steps = tuple[int, ...]


def whole(made: Mirror, image: Image) -> Image:
    """The payload of one dim over all the memory that ``image`` lies in."""
    size = image.memory.size // made.dtype_of(image).itemsize
    flat: Image = made.restride(image, (size,), (1,), 0)
    return flat


def seen(storage: Array, shape: Steps, strides: Steps, offset: int) -> Array:
    """What a payload of this layout shows of a storage; writable. Beyond the storage's end it goes round."""
    reach = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + 1
    if 0 in shape or reach <= storage.size:
        return as_strided(storage[offset:], shape, [step * storage.itemsize for step in strides])
    places = offset + sum(
        np.arange(n).reshape(-1, *[1] * (len(shape) - 1 - i)) * step
        for i, (n, step) in enumerate(zip(shape, strides, strict=True))
    )
    return np.asarray(storage[np.asarray(places) % max(storage.size, 1)]).reshape(shape)


def read_as(made: Mirror, image: Image, strides: Steps | None = None, offset: int | None = None) -> Image:
    """A fresh payload of what one would read with other strides or another offset than the right ones."""
    right_strides, right_offset = made.reference.layout(image.inner)
    storage = array_of(made, whole(made, image))
    wrong = seen(
        storage,
        image.shape,
        right_strides if strides is None else strides,
        right_offset if offset is None else offset,
    )
    return payload_of(made, wrong.copy(), image.index)


def as_if_contiguous(made: Mirror, image: Image) -> Image:
    """A fresh payload of what one reads who takes the memory behind the offset for C order."""
    return read_as(made, image, strides=contiguous_strides(image.shape))


def is_contiguous(made: Mirror, image: Image) -> bool:
    """Whether the elements lie in C order without gaps."""
    return made.reference.layout(image.inner)[0] == contiguous_strides(image.shape)


def each_image(value: Any, function: Any) -> Any:
    """The arguments with ``function`` applied to each payload, also inside lists."""
    if isinstance(value, Image):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(each_image(v, function) for v in value)
    return value


def overwrite(made: Mirror, image: Image, array: Array) -> None:
    """Write an array of the payload's shape and dtype into its memory, rightly."""
    made.reference.copy_(image.inner, payload_of(made, array, image.index).inner)
