"""Scans along one dim of arrays of any layout: which form serves, and how the work is cut.

Where there are fewer rows than a device has room for, each is cut into parts: a first launch finds their totals, a
second one begins each part with those of the parts before it. Parts depend on shapes and on the device alone, so a
result is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, collapsed
from candelabra_clike.source import Source
from candelabra_clike.templates.reductions.scan_text import BLOCK, EACH, GROUP, Scan, ScanText
from candelabra_clike.templates.walks import reach
from candelabra_clike.types import CTYPES, CType

GRAIN = 1 << 13
"""Elements that are worth a work-item that is a loop."""
LONG = 1 << 15
"""Rows of more elements are cut into parts where there are too few rows."""
FEW = 64
"""Up to so many elements are a row for one lane."""
NARROW = 8
"""Fewer columns than this are scanned one after the other."""


class Plan(NamedTuple):
    """The launches of one layout: one, or the second of two with the bytes of each state's totals between them."""

    launch: Launch | None
    before: Launch | None
    items: int
    numbers: tuple[int, ...]
    between: tuple[int, ...]
    reach: int


class Scanning:
    """One scan of one type of element; ``scan`` gives it for devices with or without float64, and by type of index."""

    def __init__(self, name: str, scan: Callable[[bool, str], Scan], element: CType, outputs: Sequence[dtype]) -> None:
        self.name = name
        self.scan = scan
        self.element = element
        self.outputs = tuple(outputs)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dim: int) -> list[StridedArray]:
        """New arrays of the shape of ``x``, scanned along ``dim``."""
        engine = x.engine
        shape, strides = (x.shape, x.strides) if x.shape else ((1,), (1,))
        plan = self._plan(engine, shape, strides, dim, False)
        if x.offset + plan.reach >= WIDE:
            plan = self._plan(engine, shape, strides, dim, True)
        outs = [engine.empty(x.shape, d) for d in self.outputs]
        if plan.launch is None:
            return outs
        buffers = [out.buffer for out in outs]
        if plan.before is not None:
            totals = [engine.allocate(size) for size in plan.between]
            plan.before(plan.items, *totals, x.buffer, x.offset, *plan.numbers)
            buffers += totals
        plan.launch(plan.items, *buffers, x.buffer, x.offset, *plan.numbers)
        return outs

    def _planned(self, engine: Engine, shape: Shape, strides: Shape, dim: int, wide: bool) -> Plan:
        last = reach(shape, strides)
        wide = wide or prod(shape) >= WIDE
        if not prod(shape):
            return Plan(None, None, 0, (), (), last)
        out = contiguous_strides(shape)
        stay = [d for d in range(len(shape)) if d != dim]
        kept, (out_steps, steps) = collapsed(
            tuple([shape[d] for d in stay]), (tuple([out[d] for d in stay]), tuple([strides[d] for d in stay]))
        )
        rows, n = prod(kept), shape[dim]
        scan = self.scan(engine.traits.float64, "u64" if wide else "u32")
        text = ScanText(self.name, scan, self.element, tuple([CTYPES[d] for d in self.outputs]), len(kept))
        columns = kept[-1] if out_steps[-1] == 1 and n > 1 else 1
        cut = _serial if engine.traits.serial else _grouped
        form, count, own = cut(engine, text, rows, n, columns, steps[-1] == 1, wide)
        numbers = (rows, n, out[dim], strides[dim], *own, *kept, *steps, *out_steps)
        launches = [engine.compile(source) for source in form]
        between: tuple[int, ...] = ()
        if len(form) == 2:
            between = tuple([rows * own[0] * int(type[1:]) // 8 for type, _ in scan.states])
        return Plan(launches[-1], launches[0] if between else None, count, numbers, between, last)


Cut = tuple[list[Source], int, tuple[int, ...]]
"""The sources of one launch or two, their count, and the numbers that only this form has."""


def _serial(engine: Engine, text: ScanText, rows: int, n: int, columns: int, adjacent: bool, wide: bool) -> Cut:
    units = engine.traits.compute_units
    wanted = max(1, min(rows * n // GRAIN, 16 * units))
    if columns >= NARROW:
        size = min(BLOCK, max(32, -(-rows // wanted // 8) * 8))
        blocks = -(-columns // size)
        return [text.columns(wide, adjacent)], rows // columns * blocks, (blocks, size)
    if rows < units and n >= LONG:
        size = -(-n // (2 * units))
        parts = -(-n // size)
        return [text.pieces(wide, "totals"), text.pieces(wide, "rest")], rows * parts, (parts, size)
    per_item = -(-rows // wanted)
    return [text.rows(wide, 1)], -(-rows // per_item), (per_item,)


def _grouped(engine: Engine, text: ScanText, rows: int, n: int, columns: int, adjacent: bool, wide: bool) -> Cut:
    traits = engine.traits
    group = min(GROUP, 1 << (traits.group.bit_length() - 1))
    wanted = 8 * traits.compute_units
    if n <= FEW or (columns >= 32 and rows >= wanted * 32):
        return [text.rows(wide, None)], rows, (1,)
    tiles = -(-n // (group * EACH))
    per_part = -(-tiles // min(tiles, group, max(1, wanted // rows)))
    size = per_part * group * EACH
    parts = -(-n // size)
    if parts == 1:
        return [text.groups(wide, group, "")], rows, (1, size)
    return [text.groups(wide, group, "totals"), text.groups(wide, group, "rest")], rows * parts, (parts, size)
