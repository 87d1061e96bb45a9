"""The form of a row kernel for devices whose work-items are lanes, and the division of its work.

Both depend on the layout and on the device only, so results are reproducible.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.engine import Engine
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.columns import ACROSS, ColumnTileSourceBuilder
from candelabra_clike.templates.rows.lanes import LaneRowSourceBuilder
from candelabra_clike.templates.rows.program import RowProgram
from candelabra_clike.templates.rows.source import RowLayout
from candelabra_clike.templates.rows.tiles import VECTOR, Tile, TiledRowSourceBuilder
from candelabra_clike.types import CType

GROUP = 256
"""The usual work-group size."""
FEW = 16
"""The maximum row size for which one lane processes a row."""
FEW_OF_COLUMN = 64
"""The same for columns, which adjacent lanes read together."""
SHORT = 8
"""Elements of a lane in rows that a warp processes with as few."""
MOST_LANES = 512
"""The maximum number of lanes of a row that is in registers."""
EACH: Final = (4, 8, 12, 16, 24, 32)
"""The numbers of 32-bit registers of a lane with elements of an operand: few, because each is another kernel."""
LOOP_EACH = 16
"""The same in a loop over tiles."""
PART, LEAST_OF_COLUMN = 1 << 13, 1 << 7
"""The minimum number of elements of a part of a row, and of a column."""


class RowNest(NamedTuple):
    """The kept and the reduced dims of a row kernel: sizes, and the strides of the output and of each operand."""

    kept: Shape
    kept_strides: tuple[Shape, ...]
    reduced: Shape
    reduced_strides: tuple[Shape, ...]

    @property
    def outputs(self) -> int:
        """The number of rows."""
        return prod(self.kept)

    @property
    def count(self) -> int:  # type: ignore[override] # hides the method of tuples
        """The number of elements of a row."""
        return prod(self.reduced)


class RowSchedule(NamedTuple):
    """The sources of the launches, each with its number of work-items or groups, the arguments that only this form has,
    and the number of totals that the launches of a divided row exchange for each reduction.
    """

    sources: tuple[tuple[Source, int], ...]
    own: tuple[int, ...]
    totals: int


def row_schedule(
    engine: Engine, program: RowProgram, elements: tuple[CType, ...], layout: RowLayout, nest: RowNest, wide: bool
) -> RowSchedule:
    """Return the schedule of a row program for one layout."""
    traits, outputs, count = engine.traits, nest.outputs, nest.count
    group = min(GROUP, 1 << (traits.group.bit_length() - 1))
    if count <= (FEW_OF_COLUMN if layout.columns else FEW) or (layout.columns and group < ACROSS):
        source = LaneRowSourceBuilder(program, elements, layout, traits.float64).by_lanes(wide)
        return RowSchedule(((source, outputs),), (), 0)
    operands = range(1, len(elements))
    constant = frozenset([k for k in operands if not any(nest.reduced_strides[k])])
    shared = frozenset([k for k in operands if k not in constant and not any(nest.kept_strides[k])])
    words = int(elements[0].value[1:]) // 32
    if layout.columns:
        held = max(1, len(elements) - 1 - len(constant)) * words
        tile = Tile(group // ACROSS, max(VECTOR, LOOP_EACH // held), 1, group)
        blocks = -(-nest.kept[-1] // ACROSS)
        columns = ColumnTileSourceBuilder(
            program, elements, layout, traits.float64, tile, constant, frozenset(), engine.dialect.warp
        )
        division = _division(
            traits.compute_units, outputs // nest.kept[-1] * blocks, count, tile, LEAST_OF_COLUMN, group
        )
        return _in_groups(columns, nest, outputs // nest.kept[-1] * blocks, division, (blocks,), wide)
    vector = _vector(program, layout, nest, constant)
    held = max(1, len(elements) - 1 - len(constant | shared)) * words

    def builder(tile: Tile) -> TiledRowSourceBuilder:
        return TiledRowSourceBuilder(
            program, elements, layout, traits.float64, tile, constant, shared, engine.dialect.warp
        )

    in_registers = _register_tile(outputs, count, held, vector, group, traits.group, traits.compute_units)
    if in_registers is not None:
        groups = -(-outputs // (in_registers.group // in_registers.lanes))
        return RowSchedule(((builder(in_registers).registers(wide), groups),), (), 0)
    tile = Tile(group, max(VECTOR, LOOP_EACH // held // VECTOR * VECTOR), vector, group)
    division = _division(traits.compute_units, outputs, count, tile, PART, group)
    return _in_groups(builder(tile), nest, outputs, division, (), wide)


def _division(units: int, groups: int, count: int, tile: Tile, least: int, most: int) -> tuple[int, int]:
    """Return (parts, elements per part) of a row, in whole tiles. Without division there would be ``groups`` groups."""
    if groups >= 8 * units:
        return 1, count
    whole = tile.lanes * tile.each
    wanted = min(most, -(-32 * units // groups))
    size = -(-max(least, -(-count // wanted)) // whole) * whole
    return -(-count // size), size


def _in_groups(
    builder: TiledRowSourceBuilder,
    nest: RowNest,
    groups: int,
    division: tuple[int, int],
    own: tuple[int, ...],
    wide: bool,
) -> RowSchedule:
    """Return the schedule in groups, each of which processes a row or a part of it, or several columns."""
    parts, size = division
    if parts == 1:
        return RowSchedule(((builder.groups(wide), groups),), own, 0)
    *stages, last = builder.split(wide)
    finish = groups if builder.program.last is None else groups * parts
    launches = (*[(source, groups * parts) for source in stages], (last, finish))
    return RowSchedule(launches, (parts, size, *own), nest.outputs * parts)


def _vector(program: RowProgram, layout: RowLayout, nest: RowNest, constant: frozenset[int]) -> int:
    """Return the number of adjacent elements of a lane."""
    moving = [k for k in range(program.last is None, len(layout.inner)) if k not in constant]
    if nest.reduced[-1] % VECTOR or any(layout.inner[k] == 2 for k in moving):
        return 1
    vectors = [k for k in moving if layout.inner[k] == 1]
    strides = [step for k in vectors for step in (*nest.kept_strides[k], *nest.reduced_strides[k][:-1])]
    return VECTOR if vectors and not any(step % VECTOR for step in strides) else 1


def _register_tile(
    outputs: int, count: int, held: int, vector: int, group: int, largest: int, units: int
) -> Tile | None:
    """Return the tile for rows that fit into registers, or None if they do not."""
    most = max([each for each in EACH if each * held <= EACH[-1]], default=0)
    lanes = 1 << (-(-count // SHORT) - 1).bit_length()
    while lanes > 32 and lanes // 2 * most >= count:
        lanes //= 2
    if not most or lanes * most < count or lanes > min(MOST_LANES, largest):
        return None
    while lanes < group and outputs * lanes < 2 * units * group and count > lanes * EACH[0]:
        lanes *= 2
    each = min([each for each in EACH if each * lanes >= count])
    return Tile(lanes, each, vector, max(group, lanes))
