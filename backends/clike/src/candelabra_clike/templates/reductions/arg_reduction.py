"""Arg-reductions: the index of the largest or smallest element. The first of equal elements wins, and NaN before all
others.

On serial devices, ``rows`` first finds the stretch with the extreme, which vectors do fast, and then the element in it.
``columns`` keeps a value and an index for each output of a block. Each lane of a work-group does the same, and a tree
combines them. If an output is divided into parts, a second launch combines these.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, check_dims
from candelabra_clike.templates.reduction_dims import (
    ReductionDims,
    check_not_empty,
    max_offset,
    reduction_dims,
)
from candelabra_clike.templates.reductions.arg_source import ArgReductionSourceBuilder, Comparison
from candelabra_clike.templates.reductions.fold import TypedFold
from candelabra_clike.templates.reductions.partitioning import GRAIN, split_units, uses_columns
from candelabra_clike.types import CTYPES

Call = tuple[Launch, int, tuple[int, ...]]
"""A launch, its count and its numbers."""


class ArgReduction:
    """``better`` and ``equal`` are the comparisons of two elements; ``fold`` computes the extreme."""

    def __init__(self, name: str, better: Comparison, equal: Comparison, fold: TypedFold, d: dtype) -> None:
        self.name = name
        self.dtype = d
        self.element = CTYPES[d]
        self.text = ArgReductionSourceBuilder(name, better, equal, fold, self.element)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dim: int | None, keepdim: bool) -> tuple[StridedArray, StridedArray]:
        """Return the extremes and their indices along ``dim``, or in the flattened array."""
        engine, dims = x.engine, None if dim is None or not x.shape else (dim,)
        shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, False)
        if x.offset + last >= WIDE:
            shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, True)
        values, indices = engine.empty(shape, self.dtype), engine.empty(shape, int64)
        if first is None:
            return values, indices
        launch, count, numbers = first
        if second is None:
            launch(count, values.buffer, indices.buffer, x.buffer, x.offset, *numbers)
            return values, indices
        partial_values = engine.allocate(values.size * parts * self.dtype.itemsize)
        partial_indices = engine.allocate(values.size * parts * 8)
        launch(count, partial_values, partial_indices, x.buffer, x.offset, *numbers)
        launch, count, numbers = second
        launch(count, values.buffer, indices.buffer, partial_values, partial_indices, *numbers)
        return values, indices

    def _planned(
        self, engine: Engine, shape: Shape, strides: Shape, dims: Shape | None, keepdim: bool, wide: bool
    ) -> tuple[Shape, int, int, Call | None, Call | None]:
        check_dims(shape, dims)
        result, last = reduced_shape(shape, dims, keepdim), max_offset(shape, strides)
        check_not_empty(self.name, shape, dims)
        if not prod(result):
            return result, last, 1, None, None
        loop_dims = reduction_dims(shape, strides, dims, ordered=True)
        parts, first = self._first(engine, loop_dims, wide)
        if parts == 1:
            return result, last, 1, first, None
        second = engine.compile(self.text.rest(wide, 1 if engine.traits.serial else None))
        return result, last, parts, first, (second, loop_dims.outputs, (loop_dims.outputs, parts))

    def _first(self, engine: Engine, loop_dims: ReductionDims, wide: bool) -> tuple[int, Call]:
        """Return the number of parts per output, and the launch that reduces them."""
        traits, text = engine.traits, self.text
        outputs, size = loop_dims.outputs, loop_dims.reduced[-1]
        indices = loop_dims.numbers()
        if traits.serial and uses_columns(loop_dims) and len(loop_dims.reduced) == 1:
            columns = loop_dims.kept[-1]
            blocks = -(-columns // text.block)
            nest = loop_dims.form(True, loop_dims.kept_strides[-1] == 1, False)
            call = engine.compile(text.columns(nest, wide))
            return 1, (call, outputs // columns * blocks, (outputs, size, size, 1, size, 1, blocks, *indices))
        adjacent = loop_dims.reduced_strides[-1] == 1
        nest = loop_dims.form(False, adjacent, adjacent)
        pieces = -(-size // text.piece)
        units = prod(loop_dims.reduced[:-1]) * pieces
        if traits.serial:
            target_items = max(1, min(outputs * loop_dims.count // GRAIN, 8 * traits.compute_units))
            parts, per_part = split_units(units, -(-target_items // outputs))
            per_item = -(-outputs // target_items) if parts == 1 else 1
            count, source = -(-outputs // per_item) * parts, text.rows(nest, size >= 32, wide)
        else:
            parts, per_part = split_units(units, min(-(-8 * traits.compute_units // outputs), units // 8))
            per_item, group = 1, min(text.group, 1 << (traits.group.bit_length() - 1))
            count, source = outputs * parts, text.groups(nest, wide, group)
        numbers = (outputs, loop_dims.count, units, parts, per_part, pieces, per_item, *indices)
        return parts, (engine.compile(source), count, numbers)
