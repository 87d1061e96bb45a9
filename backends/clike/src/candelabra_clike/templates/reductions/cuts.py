"""How the work of a reduction is cut: which form of kernel, how many work-items or groups, how many parts an output.

A cut depends on the walk and on the device's compute units, never on a clock or on other work.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm, prod
from typing import Any, NamedTuple

from candelabra_clike.engine import Traits
from candelabra_clike.source import Source
from candelabra_clike.templates.reductions import groups, serial
from candelabra_clike.templates.walks import Nest, Walk

GRAIN = 1 << 14
"""Elements that are worth a work-item that is a loop."""
FEW = 64
"""Up to so many elements are reduced by one lane."""


class Cut(NamedTuple):
    """``items`` work-items (or groups) reduce ``units`` of work an output in ``parts`` of ``per_part``.

    ``pieces`` are the units of a row, ``own`` the numbers that only this form has, ``text`` makes its source.
    """

    items: int
    units: int
    parts: int
    per_part: int
    pieces: int
    own: tuple[int, ...]
    text: Callable[[Any, bool], Source]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers in the order of the parameters."""
        return (self.units, self.parts, self.per_part, self.pieces, *self.own)


def cut(traits: Traits, way: Walk, split: bool) -> Cut:
    """The cut of a walk. Without ``split`` every output is one part."""
    if traits.serial:
        return _serial(traits.compute_units, way, split)
    return _grouped(traits, way, split)


def in_columns(way: Walk) -> bool:
    """Whether neighbours in memory belong to different outputs."""
    kept, step = way.kept_steps[-1], way.reduced_steps[-1]
    if way.kept[-1] < 2 or way.count < 2 or not kept or step == 1:
        return False
    return kept == 1 or kept < step or not step


def parts_of(units: int, wanted: int) -> tuple[int, int]:
    """(parts, units of each) for at most ``wanted`` parts, none of them empty."""
    per_part = max(1, -(-units // max(1, wanted)))
    return max(1, -(-units // per_part)), per_part


def _serial(units: int, way: Walk, split: bool) -> Cut:
    wanted = max(1, min(way.outputs * way.count // GRAIN, 8 * units))
    if not in_columns(way):
        return _rows(way, wanted, split)
    columns = way.kept[-1]
    if columns < serial.NARROW and way.kept_steps[-1] == 1 and way.reduced_steps[-1] == columns:
        return _narrow(way, wanted, split)
    outer = way.outputs // columns
    size = min(serial.BLOCK, max(serial.NARROW, -(-columns * outer // wanted // 8) * 8))
    blocks = -(-columns // size)
    parts, per_part = parts_of(way.count, -(-wanted // (blocks * outer)) if split else 1)
    nest = Nest(len(way.kept), len(way.reduced), way.kept_steps[-1] == 1, False)
    return Cut(
        outer * blocks * parts, way.count, parts, per_part, 1, (blocks, size),
        lambda text, wide: text.columns(nest, wide),
    )  # fmt: skip


def _rows(way: Walk, wanted: int, split: bool) -> Cut:
    size, outputs = way.reduced[-1], way.outputs
    pieces = -(-size // serial.CHUNK)
    units = prod(way.reduced[:-1]) * pieces
    parts, per_part = parts_of(units, -(-wanted // outputs) if split else 1)
    per_item = -(-outputs // wanted) if parts == 1 else 1
    adjacent = way.reduced_steps[-1] == 1
    nest = Nest(len(way.kept), len(way.reduced), adjacent, adjacent)
    return Cut(
        -(-outputs // per_item) * parts, units, parts, per_part, pieces, (per_item,),
        lambda text, wide: text.rows(nest, size >= 32, wide),
    )  # fmt: skip


def _narrow(way: Walk, wanted: int, split: bool) -> Cut:
    columns, size = way.kept[-1], way.reduced[-1]
    outer = way.outputs // columns
    width = lcm(8, columns)
    width *= max(1, serial.BLOCK // width)
    piece = max(1, GRAIN // columns)
    pieces = -(-size // piece)
    units = prod(way.reduced[:-1]) * pieces
    parts, per_part = parts_of(units, -(-wanted // outer) if split else 1)
    nest = Nest(len(way.kept), len(way.reduced), True, False)
    return Cut(
        outer * parts, units, parts, per_part, pieces, (piece, width), lambda text, wide: text.narrow(nest, wide)
    )


def _grouped(traits: Traits, way: Walk, split: bool) -> Cut:
    group = min(groups.GROUP, 1 << (traits.group.bit_length() - 1))
    wanted = 8 * traits.compute_units
    if way.count <= FEW:
        return _lanes(way)
    if in_columns(way):
        columns = way.kept[-1]
        blocks, outer = -(-columns // groups.ACROSS), way.outputs // columns
        most = min(-(-wanted // (blocks * outer)), way.count // groups.DEEP) if split else 1
        parts, per_part = parts_of(way.count, most)
        nest = Nest(len(way.kept), len(way.reduced), way.kept_steps[-1] == 1, False)
        return Cut(
            outer * blocks * parts, way.count, parts, per_part, 1, (blocks,),
            lambda text, wide: text.columns(nest, wide, group),
        )  # fmt: skip
    pieces = -(-way.reduced[-1] // groups.PIECE)
    units = prod(way.reduced[:-1]) * pieces
    parts, per_part = parts_of(units, -(-wanted // way.outputs) if split else 1)
    adjacent = way.reduced_steps[-1] == 1
    nest = Nest(len(way.kept), len(way.reduced), adjacent, adjacent)
    return Cut(way.outputs * parts, units, parts, per_part, pieces, (), lambda text, wide: text.rows(nest, wide, group))


def _lanes(way: Walk) -> Cut:
    """A lane for every output."""
    nest = Nest(len(way.kept), len(way.reduced), False, False)
    return Cut(way.outputs, way.count, 1, way.count, 1, (), lambda text, wide: text.lanes(nest, wide))
