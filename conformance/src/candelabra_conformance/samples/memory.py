"""Samples of functions about the memory of a tensor: its format, its size, and other memory."""

from __future__ import annotations

from collections.abc import Iterator

import candelabra as cd

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("Tensor.contiguous", "clone_in_format")
def in_order(t: Maker) -> Iterator[Sample]:
    """Yield the contiguous and the channels-last format."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 4, 2), memory_format=cd.channels_last)
    yield sample(t(2, 3, 2, 2, 2), memory_format=cd.channels_last_3d)
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@mistakes("Tensor.contiguous", "clone_in_format")
def in_no_order(t: Maker) -> Iterator[Sample]:
    """Yield formats for other ranks, and arguments that are not formats."""
    yield sample(t(3, 5), memory_format=cd.channels_last, note="another rank")
    if t.operator == "Tensor.contiguous":  # clone() keeps any format
        yield sample(t(3, 5), memory_format=cd.preserve_format, note="any order")
    yield sample(t(3, 5), memory_format="last", note="no format")


@inputs("Tensor.dim_order")
def orders(t: Maker) -> Iterator[Sample]:
    """Yield contiguous tensors."""
    yield sample(t(2, 3, 4), gradient=False, layouts=("contiguous",))
    yield sample(t(2, 3), ambiguity_check=True, gradient=False, layouts=("contiguous",))
    yield sample(t(), kind="0-d", gradient=False)


@inputs("Tensor.resize_")
def fewer_elements(t: Maker) -> Iterator[Sample]:
    """Yield shapes with at most as many elements."""
    yield sample(t(2, 3), 3, 2, gradient=False, layouts=("contiguous",))
    yield sample(t(7), (2, 2), gradient=False, layouts=("contiguous",))
    yield sample(t(), 1, 1, kind="0-d", gradient=False)
    yield sample(t(2), 0, 3, kind="zero-size", gradient=False)


@mistakes("Tensor.resize_")
def no_sizes(t: Maker) -> Iterator[Sample]:
    """Yield negative sizes, and sizes that are not integers."""
    yield sample(t(3), -1, note="negative")
    yield sample(t(3), "3", note="no integer")


@inputs("resize_as_")
def in_the_shape_of_a_template(t: Maker) -> Iterator[Sample]:
    """Yield templates with at most as many elements."""
    yield sample(t(2, 3), t(3, 2), gradient=False, layouts=("contiguous",))
    yield sample(t(7), t(2, 2), gradient=False, layouts=("contiguous",))


@inputs("Tensor.set_")
def memory_of_another(t: Maker) -> Iterator[Sample]:
    """Yield the other tensor's layout, and other sizes and strides."""
    yield sample(t(2), t(2, 3), gradient=False, layouts=("contiguous",))
    yield sample(t(2), t(6), 1, (2, 2), (2, 1), gradient=False, layouts=("contiguous",))
    yield sample(t(3), gradient=False, layouts=("contiguous",))


@mistakes("Tensor.set_")
def memory_of_nothing(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not tensors, and an offset without sizes."""
    yield sample(t(2), [1.0], note="no tensor")
    yield sample(t(2), t(2), 1, note="no sizes")


@inputs("Tensor.is_set_to")
def whose_memory(t: Maker) -> Iterator[Sample]:
    """Yield another tensor."""
    yield sample(t(2, 3), t(2, 3), gradient=False, layouts=("contiguous",))
    yield sample(t(2), t(3), gradient=False, layouts=("contiguous",))
