"""The array of a device that runs C-like kernels: a shape and strides over a buffer in device memory."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from candelabra.backend import contiguous_strides, is_contiguous_layout
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra_clike.engine import Engine

Shape = tuple[int, ...]


@lru_cache(4096)
def extent(shape: Shape, strides: Shape) -> int:
    """Return the number of elements of the buffer from the first one of an array to after its last one."""
    return 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


@lru_cache(4096)
def layout(shape: Shape, strides: Shape) -> tuple[int, bool]:
    """Return the size of an array, and whether it is contiguous."""
    return prod(shape), is_contiguous_layout(shape, strides)


class StridedArray:
    """A payload. ``strides`` and ``offset`` count elements; ``contiguous`` is true if the strides are in C order.

    ``buffer`` is the object of the engine that is passed to kernels. Views share one buffer.
    """

    __slots__ = ("buffer", "contiguous", "dtype", "engine", "offset", "shape", "size", "strides")

    def __init__(
        self,
        engine: Engine,
        buffer: Any,
        shape: Shape,
        strides: Shape,
        offset: int,
        dtype: dtype,
        size: int,
        contiguous: bool,
    ) -> None:
        self.engine = engine
        self.buffer = buffer
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.size = size
        self.contiguous = contiguous

    def restrided(self, shape: Shape, strides: Shape, offset: int, dtype: dtype | None = None) -> StridedArray:
        """Return a view of the same buffer.

        Shape, strides and offset are absolute: those of this array do not matter.
        """
        size, is_contiguous = layout(shape, strides)
        return StridedArray(
            self.engine, self.buffer, shape, strides, offset, dtype or self.dtype, size, is_contiguous
        )  # fmt: skip

    def reshaped(self, shape: Shape) -> StridedArray:
        """Return a contiguous array with another shape of the same size."""
        assert self.contiguous
        return StridedArray(
            self.engine, self.buffer, shape, contiguous_strides(shape), self.offset, self.dtype, self.size, True
        )

    @property
    def span(self) -> tuple[int, int]:
        """The first element of the buffer that belongs to the array, and one past the last."""
        return self.offset, self.offset + extent(self.shape, self.strides)

    def __repr__(self) -> str:
        return f"<{self.dtype.name} {list(self.shape)} on {self.engine}>"
