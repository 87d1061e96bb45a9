"""Filters that were packed before: what a convolution reads in place of its weight."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.templates.copies.packing import strided_copy
from candelabra_clike.templates.matmul.matmul import micro_tile_for
from candelabra_clike.templates.matmul.packing import StridedRows, pack_panels
from candelabra_clike.types import CTYPES


class FilterLayout(NamedTuple):
    """The order in which a kernel reads the filters of a convolution, or those of one phase of its adjoint.

    ``filters`` are elements of a contiguous weight. They are in panels of ``rows``, see
    :mod:`candelabra_clike.templates.matmul.packing`, or with 0 one after another.
    """

    filters: StridedRows
    rows: int
    dtype: dtype

    @property
    def shape(self) -> Shape:
        """The shape of the packed array."""
        count, depth = self.filters.rows, prod(self.filters.sizes)
        if not self.rows:
            return self.filters.matrices, count, depth
        return self.filters.matrices * -(-count // self.rows), depth, self.rows

    def __repr__(self) -> str:
        kind = f"panels of {self.rows} filters" if self.rows else "contiguous filters"
        flipped = ", flipped" if any(step < 0 for step in self.filters.steps) else ""
        return f"<{kind}{flipped}>"


class PackedFilters(NamedTuple):
    """Takes the place of a contiguous weight whose filters are packed, in each of the layouts that are read."""

    shape: Shape
    parts: Mapping[StridedRows, StridedArray]

    @property
    def strides(self) -> Shape:
        """The strides of the weight."""
        return contiguous_strides(self.shape)

    @property
    def offset(self) -> int:
        """The offset of the weight, to which the layouts refer."""
        return 0


def filter_layout(engine: Engine, d: dtype, filters: StridedRows) -> FilterLayout:
    """Return the layout in which the convolution of dtype ``d`` reads filters on a device."""
    traits, rows = engine.traits, 0
    if traits.serial:
        rows = micro_tile_for(filters.rows, CTYPES[d].value, traits.lanes, traits.registers).rows
    return FilterLayout(filters, rows, d)


def pack_filters(w: StridedArray, layout: FilterLayout) -> StridedArray:
    """Return the filters of a weight in a layout. The weight is contiguous and of the layout's dtype."""
    shape, filters = layout.shape, layout.filters._replace(first=layout.filters.first + w.offset)
    if not layout.rows:
        sizes = (filters.matrices, filters.rows, *filters.sizes)
        steps = (filters.matrix_step, filters.row_step, *filters.steps)
        return strided_copy(w, sizes, steps, filters.first).reshaped(shape)
    memory = CTYPES[layout.dtype].memory
    buffer = pack_panels(w.engine, w.buffer, filters, memory, layout.dtype.itemsize, layout.rows)
    strides = contiguous_strides(shape)
    return StridedArray(w.engine, buffer, shape, strides, 0, layout.dtype, prod(shape), True)
