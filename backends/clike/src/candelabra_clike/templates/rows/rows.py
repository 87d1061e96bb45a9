"""Programs over the rows of arrays that broadcast together: softmax and normalisation in one kernel.

The rows of a program are what its reduced dims span, whatever they are and however the operands lie in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, aligned, collapsed
from candelabra_clike.templates.rows import groups, serial
from candelabra_clike.templates.rows.text import Layout, Program
from candelabra_clike.templates.walks import reach
from candelabra_clike.types import CTYPES

GRAIN = 1 << 13
"""Elements that are worth a work-item that is a loop."""
FEW = 64
"""Up to so many elements are a row for one lane."""


class Written(NamedTuple):
    """A contiguous result."""

    shape: Shape
    strides: Shape
    size: int


class Planned(NamedTuple):
    """A launch, its count and numbers, what is written, and how far operands reach."""

    launch: Launch | None
    items: int
    numbers: tuple[int, ...]
    outs: tuple[Written, ...]
    reach: tuple[int, ...]


class Rows:
    """One program over one dtype. Calls give the output, then what passes write (as with ``keepdim``)."""

    def __init__(self, program: Program, d: dtype) -> None:
        self.program = program
        self.dtype = d
        self.writes = sum(p.written for p in program.passes)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(
        self, operands: Sequence[StridedArray], shape: Shape, dims: Shape, numbers: Sequence[Any] = ()
    ) -> list[StridedArray]:
        """All operands broadcast to ``shape``."""
        engine = operands[0].engine
        steps = tuple([x.strides if x.shape == shape else aligned(x, shape) for x in operands])
        plan = self._plan(engine, shape, steps, dims, False)
        for x, last in zip(operands, plan.reach):
            if x.offset + last >= WIDE:
                plan = self._plan(engine, shape, steps, dims, True)
                break
        outs = []
        for like in plan.outs:
            buffer = engine.allocate(like.size * self.dtype.itemsize or 1)
            outs.append(StridedArray(engine, buffer, like.shape, like.strides, 0, self.dtype, like.size, True))
        if plan.launch is not None:
            plan.launch(
                plan.items, *[x.buffer for x in outs], *[x.buffer for x in operands], *[x.offset for x in operands],
                *plan.numbers, *numbers,
            )  # fmt: skip
        return outs

    def _planned(self, engine: Engine, shape: Shape, steps: tuple[Shape, ...], dims: Shape, wide: bool) -> Planned:
        kept_shape = tuple([1 if d in dims else s for d, s in enumerate(shape)])
        shapes = [shape] * bool(self.program.last) + [kept_shape] * self.writes
        outs = tuple([Written(each, contiguous_strides(each), prod(each)) for each in shapes])
        last = tuple([reach(shape, row) for row in steps])
        wide = wide or prod(shape) >= WIDE or max(last) >= WIDE
        all_steps = (contiguous_strides(shape), *steps)
        stay = [d for d in range(len(shape)) if d not in dims]
        kept, kept_steps = collapsed(tuple([shape[d] for d in stay]), tuple([_of(row, stay) for row in all_steps]))
        gone = sorted(dims)
        reduced, steps_in = collapsed(tuple([shape[d] for d in gone]), tuple([_of(row, gone) for row in all_steps]))
        outputs, count = prod(kept), prod(reduced)
        if not outputs or (not count and not self.writes):
            return Planned(None, 0, (), outs, last)
        columns = kept[-1] > 1 and kept_steps[0][-1] == 1 != steps_in[0][-1]
        innermost = kept_steps if columns else steps_in
        layout = Layout(len(kept), len(reduced), tuple([min(row[-1], 2) for row in innermost]), columns)
        elements = (CTYPES[self.dtype],) * (self.program.operands + 1)
        traits = engine.traits
        wide_total = traits.float64
        own: tuple[int, ...]
        if traits.serial:
            text = serial.SerialRows(self.program, elements, layout, wide_total)
            wanted = max(1, min(outputs * count // GRAIN, 16 * traits.compute_units))
            if columns:
                size = min(serial.BLOCK, max(32, -(-outputs // wanted // 8) * 8))
                blocks = -(-kept[-1] // size)
                source, own, items = text.in_columns(wide), (blocks, size), outputs // kept[-1] * blocks
            else:
                per_item = -(-outputs // wanted)
                source, own, items = text.in_rows(wide), (per_item,), -(-outputs // per_item)
        else:
            lanes = groups.GroupRows(self.program, elements, layout, wide_total)
            group = min(groups.GROUP, 1 << (traits.group.bit_length() - 1))
            own, items = (), outputs
            source = lanes.by_lanes(wide) if count <= FEW or columns else lanes.by_groups(wide, group)
        places = (*kept, *reduced, *[s for row in kept_steps for s in row], *[s for row in steps_in for s in row])
        return Planned(engine.compile(source), items, (outputs, count, *own, *places), outs, last)


def _of(row: Shape, dims: Sequence[int]) -> Shape:
    return tuple([row[d] for d in dims])
