"""Scans along one dim of arrays of any layout: which form serves, and how the work is cut.

Where there are fewer rows than a device has room for, each is cut into parts: a first launch finds their totals, a
second one begins each part with those of the parts before it. Parts depend on shapes and on the device alone, so a
result is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, check_dims, collapsed_dims
from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import max_offset
from candelabra_clike.templates.reductions.scan_source import BLOCK, EACH, GROUP, ScanOp, ScanSourceBuilder
from candelabra_clike.types import CTYPES, CType

GRAIN = 1 << 13
"""Elements that justify another work-item on serial devices."""
LONG = 1 << 15
"""Rows of more elements are divided into parts if there are few rows."""
FEW = 64
"""The maximum row size for which one lane processes a row."""
NARROW = 8
"""Fewer columns than this are scanned one after another."""


class ScanPlan(NamedTuple):
    """The launches for one layout: one, or a second one after ``before``, with totals of ``between`` bytes per
    state.
    """

    launch: Launch | None
    before: Launch | None
    items: int
    numbers: tuple[int, ...]
    between: tuple[int, ...]
    max_offset: int


class ScanKernel:
    """A scan over inputs with these types of elements. ``scan`` returns its operation for devices with or without
    float64, and an index type. Raises ``ExpressionError`` if one of them is wrong.
    """

    def __init__(
        self, name: str, scan: Callable[[bool, str], ScanOp], elements: Sequence[CType], outputs: Sequence[dtype]
    ) -> None:
        self.name = name
        self._operations = {key: scan(*key) for key in product((True, False), ("u32", "u64"))}
        self.elements = tuple(elements)
        self.outputs = tuple(outputs)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, inputs: Sequence[StridedArray], dim: int) -> list[StridedArray]:
        """Return new arrays of the shape of all inputs, scanned along ``dim``."""
        x = inputs[0]
        engine = x.engine
        shape, strides = (x.shape, tuple([i.strides for i in inputs])) if x.shape else ((1,), ((1,),) * len(inputs))
        plan = self._plan(engine, shape, strides, dim, False)
        if max([i.offset for i in inputs]) + plan.max_offset >= WIDE:
            plan = self._plan(engine, shape, strides, dim, True)
        outs = [engine.empty(x.shape, d) for d in self.outputs]
        if plan.launch is None:
            return outs
        buffers = [out.buffer for out in outs]
        sources = (*[i.buffer for i in inputs], *[i.offset for i in inputs])
        if plan.before is not None:
            totals = [engine.allocate(size) for size in plan.between]
            plan.before(plan.items, *totals, *sources, *plan.numbers)
            buffers += totals
        plan.launch(plan.items, *buffers, *sources, *plan.numbers)
        return outs

    def _planned(self, engine: Engine, shape: Shape, strides: tuple[Shape, ...], dim: int, wide: bool) -> ScanPlan:
        check_dims(shape, (dim,))
        last = max([max_offset(shape, each) for each in strides])
        wide = wide or prod(shape) >= WIDE
        if not prod(shape):
            return ScanPlan(None, None, 0, (), (), last)
        out = contiguous_strides(shape)
        stay = [d for d in range(len(shape)) if d != dim]
        kept, (out_steps, *steps) = collapsed_dims(shape, (out, *strides), stay)
        rows, n = prod(kept), shape[dim]
        scan = self._operations[engine.traits.float64, "u64" if wide else "u32"]
        text = ScanSourceBuilder(self.name, scan, self.elements, tuple([CTYPES[d] for d in self.outputs]), len(kept))
        columns = kept[-1] if out_steps[-1] == 1 and n > 1 else 1
        choose_launch = _serial_launch if engine.traits.serial else _grouped_launch
        adjacent = all(each[-1] == 1 for each in steps)
        form, count, own = choose_launch(engine, text, rows, n, columns, adjacent, wide)
        along = (out[dim], *[each[dim] for each in strides])
        numbers = (rows, n, *along, *own, *kept, *[step for each in (*steps, out_steps) for step in each])
        launches = [engine.compile(source) for source in form]
        between: tuple[int, ...] = ()
        if len(form) == 2:
            between = tuple([rows * own[0] * int(type[1:]) // 8 for type, _ in scan.states])
        return ScanPlan(launches[-1], launches[0] if between else None, count, numbers, between, last)


ScanLaunch = tuple[list[Source], int, tuple[int, ...]]
"""The sources of one launch or two, their count, and the arguments that only this form has."""


def _serial_launch(
    engine: Engine, text: ScanSourceBuilder, rows: int, n: int, columns: int, adjacent: bool, wide: bool
) -> ScanLaunch:
    units = engine.traits.compute_units
    target_items = max(1, min(rows * n // GRAIN, 16 * units))
    if columns >= NARROW:
        size = min(BLOCK, max(32, -(-rows // target_items // 8) * 8))
        blocks = -(-columns // size)
        return [text.columns(wide, adjacent)], rows // columns * blocks, (blocks, size)
    if rows < units and n >= LONG:
        size = -(-n // (2 * units))
        parts = -(-n // size)
        return [text.pieces(wide, "totals"), text.pieces(wide, "rest")], rows * parts, (parts, size)
    per_item = -(-rows // target_items)
    return [text.rows(wide, 1)], -(-rows // per_item), (per_item,)


def _grouped_launch(
    engine: Engine, text: ScanSourceBuilder, rows: int, n: int, columns: int, adjacent: bool, wide: bool
) -> ScanLaunch:
    traits = engine.traits
    group = min(GROUP, 1 << (traits.group.bit_length() - 1))
    target_groups = 8 * traits.compute_units
    if n <= FEW or (columns >= 32 and rows >= target_groups * 32):
        return [text.rows(wide, None)], rows, (1,)
    warp = engine.dialect.warp
    if warp > 1 and rows * warp >= target_groups * group:
        return [text.groups(wide, group, warp, warp, "")], -(-rows // (group // warp)), (1, n)
    tiles = -(-n // (group * EACH))
    per_part = -(-tiles // min(tiles, group, max(1, target_groups // rows)))
    size = per_part * group * EACH
    parts = -(-n // size)
    if parts == 1:
        return [text.groups(wide, group, group, warp, "")], rows, (1, size)
    return (
        [text.groups(wide, group, group, warp, "totals"), text.groups(wide, group, group, warp, "rest")],
        rows * parts,
        (parts, size),
    )
