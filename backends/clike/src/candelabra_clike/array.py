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
_new = object.__new__
_contiguous_strides = lru_cache(4096)(contiguous_strides)


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

    __slots__ = ("__weakref__", "buffer", "contiguous", "dtype", "engine", "offset", "shape", "size", "strides")

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
        out = _new(StridedArray)  # calling the class would take twice as long
        out.engine = self.engine
        out.buffer = self.buffer
        out.shape = shape
        out.strides = strides
        out.offset = offset
        out.dtype = dtype or self.dtype
        out.size, out.contiguous = layout(shape, strides)
        return out

    def reshaped(self, shape: Shape) -> StridedArray:
        """Return a contiguous array with another shape of the same size."""
        assert self.contiguous
        out = _new(StridedArray)
        out.engine = self.engine
        out.buffer = self.buffer
        out.shape = shape
        out.strides = _contiguous_strides(shape)
        out.offset = self.offset
        out.dtype = self.dtype
        out.size = self.size
        out.contiguous = True
        return out

    @property
    def span(self) -> tuple[int, int]:
        """The first element of the buffer that belongs to the array, and one past the last."""
        return self.offset, self.offset + extent(self.shape, self.strides)

    def __repr__(self) -> str:
        return f"<{self.dtype.name} {list(self.shape)} on {self.engine}>"
