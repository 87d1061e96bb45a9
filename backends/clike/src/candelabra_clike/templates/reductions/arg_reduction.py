"""Where the largest or smallest element is: the first of equal ones, and a NaN before all else.

``rows`` on serial devices look for the extreme of stretches, which vectors do quickly, and only then into the stretch
where it is. ``columns`` keep a value and a place for each output of a block. Groups of lanes do so for each lane, and
a tree joins them. Where an output is made of several parts, a second launch joins these.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.templates.reductions.arg_text import ArgText
from candelabra_clike.templates.reductions.cuts import GRAIN, in_columns, parts_of
from candelabra_clike.templates.reductions.fold import Fold
from candelabra_clike.templates.walks import Nest, Walk, need_elements, reach, walk
from candelabra_clike.types import CTYPES

Call = tuple[Launch, int, tuple[int, ...]]
"""A launch, its count and its numbers."""


class ArgReduction:
    """``better`` is the comparison, ``>`` or ``<``; the fold gives the extreme of the same order."""

    def __init__(self, name: str, better: str, fold: Fold, d: dtype) -> None:
        self.name = name
        self.dtype = d
        self.element = CTYPES[d]
        self.text = ArgText(name, better, fold, self.element)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dim: int | None, keepdim: bool) -> tuple[StridedArray, StridedArray]:
        """The extremes and their places along ``dim``, or in the flattened array."""
        engine, dims = x.engine, None if dim is None or not x.shape else (dim,)
        shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, False)
        if x.offset + last >= WIDE:
            shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, True)
        values, places = engine.empty(shape, self.dtype), engine.empty(shape, int64)
        if first is None:
            return values, places
        launch, count, numbers = first
        if second is None:
            launch(count, values.buffer, places.buffer, x.buffer, x.offset, *numbers)
            return values, places
        found = engine.allocate(values.size * parts * self.dtype.itemsize)
        there = engine.allocate(values.size * parts * 8)
        launch(count, found, there, x.buffer, x.offset, *numbers)
        launch, count, numbers = second
        launch(count, values.buffer, places.buffer, found, there, *numbers)
        return values, places

    def _planned(
        self, engine: Engine, shape: Shape, strides: Shape, dims: Shape | None, keepdim: bool, wide: bool
    ) -> tuple[Shape, int, int, Call | None, Call | None]:
        result, last = reduced_shape(shape, dims, keepdim), reach(shape, strides)
        need_elements(self.name, shape, dims)
        if not prod(result):
            return result, last, 1, None, None
        way = walk(shape, strides, dims, ordered=True)
        parts, first = self._first(engine, way, wide)
        if parts == 1:
            return result, last, 1, first, None
        second = engine.compile(self.text.rest(wide, 1 if engine.traits.serial else None))
        return result, last, parts, first, (second, way.outputs, (way.outputs, parts))

    def _first(self, engine: Engine, way: Walk, wide: bool) -> tuple[int, Call]:
        """How many parts an output has, and the launch that finds them."""
        traits, text = engine.traits, self.text
        outputs, size = way.outputs, way.reduced[-1]
        places = (*way.kept, *way.kept_steps, *way.reduced, *way.reduced_steps)
        if traits.serial and in_columns(way) and len(way.reduced) == 1:
            columns = way.kept[-1]
            blocks = -(-columns // text.block)
            nest = Nest(len(way.kept), 1, way.kept_steps[-1] == 1, False)
            call = engine.compile(text.columns(nest, wide))
            return 1, (call, outputs // columns * blocks, (outputs, size, size, 1, size, 1, blocks, *places))
        adjacent = way.reduced_steps[-1] == 1
        nest = Nest(len(way.kept), len(way.reduced), adjacent, adjacent)
        pieces = -(-size // text.piece)
        units = prod(way.reduced[:-1]) * pieces
        if traits.serial:
            wanted = max(1, min(outputs * way.count // GRAIN, 8 * traits.compute_units))
            parts, per_part = parts_of(units, -(-wanted // outputs))
            per_item = -(-outputs // wanted) if parts == 1 else 1
            count, source = -(-outputs // per_item) * parts, text.rows(nest, size >= 32, wide)
        else:
            parts, per_part = parts_of(units, min(-(-8 * traits.compute_units // outputs), units // 8))
            per_item, group = 1, min(text.group, 1 << (traits.group.bit_length() - 1))
            count, source = outputs * parts, text.groups(nest, wide, group)
        numbers = (outputs, way.count, units, parts, per_part, pieces, per_item, *places)
        return parts, (engine.compile(source), count, numbers)
