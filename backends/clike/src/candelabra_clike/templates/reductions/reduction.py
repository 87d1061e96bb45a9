"""Reductions over any dims of arrays of any layout: which form serves, and how the work is cut into parts.

Where there are fewer outputs than a device has room for, each is made of several parts, whose totals a second launch
joins. Parts depend on shapes and on the device alone, so a result is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.templates.reductions.cuts import cut
from candelabra_clike.templates.reductions.fold import Fold
from candelabra_clike.templates.reductions.groups import GroupText
from candelabra_clike.templates.reductions.serial import SerialText
from candelabra_clike.templates.walks import Walk, need_elements, reach, walk
from candelabra_clike.types import CTYPES, CType


class Step(NamedTuple):
    """A launch: what it needs beside buffers, and into how many parts it divides each output."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    parts: int


class Plan(NamedTuple):
    """The launches of a reduction of one layout. ``reach`` is the place of the last element behind the first."""

    shape: Shape
    reach: int
    first: Step | None
    second: Step | None
    partial: int
    """Bytes of the totals between the two."""


class Reduction:
    """One fold over one type of element.

    ``fold`` gives it for devices with or without float64. The result is of ``output`` in memory. ``of_some`` says that
    of no elements there is none: the fold's first value is not its result.
    """

    def __init__(
        self, name: str, fold: Callable[[bool], Fold], element: CType, output: dtype, of_some: bool = False
    ) -> None:
        self.name = name
        self.of_some = of_some
        self.fold = lru_cache(2)(fold)
        self.element = element
        self.output = output
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dims: Shape | None, keepdim: bool) -> StridedArray:
        """A new array with the ``dims`` (None: all) reduced. IndexError where of no elements there is no result."""
        engine = x.engine
        plan = self._plan(engine, x.shape, x.strides, dims, keepdim, False)
        if x.offset + plan.reach >= WIDE:
            plan = self._plan(engine, x.shape, x.strides, dims, keepdim, True)
        out = engine.empty(plan.shape, self.output)
        first, second = plan.first, plan.second
        if first is None:
            return out
        if second is None:
            first.launch(first.items, out.buffer, x.buffer, x.offset, *first.numbers)
        else:
            between = engine.allocate(plan.partial)
            first.launch(first.items, between, x.buffer, x.offset, *first.numbers)
            second.launch(second.items, out.buffer, between, 0, *second.numbers)
        return out

    def _planned(
        self, engine: Engine, shape: Shape, strides: Shape, dims: Shape | None, keepdim: bool, wide: bool
    ) -> Plan:
        result = reduced_shape(shape, dims, keepdim)
        if self.of_some:
            need_elements(self.name, shape, dims)
        way = walk(shape, strides, dims)
        outputs, last = prod(result), reach(shape, strides)
        if not outputs:
            return Plan(result, last, None, None, 0)
        fold = self.fold(engine.traits.float64)
        first = _step(engine, self.name, fold, self.element, self.output, way, way.count, wide, split=True)
        if first.parts == 1:
            return Plan(result, last, first, None, 0)
        total = CType(fold.total, fold.total)
        rest = walk((first.parts, outputs), (outputs, 1), (0,))
        second = _step(
            engine, self.name + "_rest", fold.again(), total, self.output, rest, way.count, wide, split=False
        )
        return Plan(result, last, first, second, first.parts * outputs * _bytes(fold.total))


def _bytes(value: str) -> int:
    return int(value[1:]) // 8


def _step(
    engine: Engine, name: str, fold: Fold, element: CType, output: dtype, way: Walk, count: int, wide: bool, split: bool
) -> Step:
    """The launch of a walk; the totals of its parts are its output if there are several."""
    work = cut(engine.traits, way, split)
    kind = SerialText if engine.traits.serial else GroupText
    text = kind(name, fold, element, CTYPES[output] if work.parts == 1 else None)
    places = (*way.kept, *way.kept_steps, *way.reduced, *way.reduced_steps)
    launch = engine.compile(work.text(text, wide))
    return Step(launch, work.items, (way.outputs, count, *work.numbers, *places), work.parts)
