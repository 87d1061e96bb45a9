"""The division of a reduction's work: the form of the kernel, the number of work-items, and the parts of each output.

It depends on the dims and on the compute units of the device, not on time or on other work.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm, prod
from typing import Any, NamedTuple

from candelabra_clike.engine import Traits
from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import ReductionDims
from candelabra_clike.templates.reductions import groups, serial

GRAIN = 1 << 14
"""Elements that justify another work-item on serial devices."""
FEW = 64
"""The maximum number of elements that one lane reduces."""
LEAST_PARTS = 4
"""The parts of a column that justify another launch, which combines them. With fewer, a work-item per block of columns
is better.
"""


class Partition(NamedTuple):
    """``items`` work-items (or groups) reduce ``units`` of work per output in ``parts`` of ``per_part`` units.

    ``pieces`` is the number of units per row, ``own`` are the arguments that only this form has, and ``source`` returns
    the kernel.
    """

    items: int
    units: int
    parts: int
    per_part: int
    pieces: int
    own: tuple[int, ...]
    source: Callable[[Any, bool], Source]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments in the order of the parameters."""
        return (self.units, self.parts, self.per_part, self.pieces, *self.own)


def partition(traits: Traits, dims: ReductionDims, split: bool) -> Partition:
    """Return the division of a reduction. Without ``split`` every output is one part."""
    if traits.serial:
        return _serial(traits.compute_units, dims, split)
    return _grouped(traits, dims, split)


def uses_columns(dims: ReductionDims) -> bool:
    """Return whether adjacent elements in memory belong to different outputs."""
    kept_stride, reduced_stride = dims.kept_strides[-1], dims.reduced_strides[-1]
    if dims.kept[-1] < 2 or dims.count < 2 or not kept_stride or reduced_stride == 1:
        return False
    return kept_stride == 1 or kept_stride < reduced_stride or not reduced_stride


def split_units(units: int, max_parts: int) -> tuple[int, int]:
    """Return (parts, units per part) for at most ``max_parts`` parts, none of them empty."""
    per_part = max(1, -(-units // max(1, max_parts)))
    return max(1, -(-units // per_part)), per_part


def _serial(units: int, dims: ReductionDims, split: bool) -> Partition:
    target_parts = max(1, min(dims.outputs * dims.count // GRAIN, 8 * units))
    if not uses_columns(dims):
        return _rows(dims, target_parts, split)
    columns = dims.kept[-1]
    if columns < serial.NARROW and dims.kept_strides[-1] == 1 and dims.reduced_strides[-1] == columns:
        return _narrow(dims, target_parts, split)
    outer = dims.outputs // columns
    size = min(serial.BLOCK, max(serial.NARROW, -(-columns * outer // target_parts // 8) * 8))
    blocks = -(-columns // size)
    most = -(-target_parts // (blocks * outer))
    parts, per_part = split_units(dims.count, most if split and most >= LEAST_PARTS else 1)
    nest = dims.form(True, dims.kept_strides[-1] == 1, False)
    return Partition(
        outer * blocks * parts, dims.count, parts, per_part, 1, (blocks, size),
        lambda source, wide: source.columns(nest, wide),
    )  # fmt: skip


def _rows(dims: ReductionDims, target_parts: int, split: bool) -> Partition:
    size, outputs = dims.reduced[-1], dims.outputs
    pieces = -(-size // serial.CHUNK)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // outputs) if split else 1)
    per_item = -(-outputs // target_parts) if parts == 1 else 1
    adjacent = dims.reduced_strides[-1] == 1
    nest = dims.form(False, adjacent, adjacent)
    return Partition(
        -(-outputs // per_item) * parts, units, parts, per_part, pieces, (per_item,),
        lambda source, wide: source.rows(nest, size >= 32, wide),
    )  # fmt: skip


def _narrow(dims: ReductionDims, target_parts: int, split: bool) -> Partition:
    columns, size = dims.kept[-1], dims.reduced[-1]
    outer = dims.outputs // columns
    width = lcm(8, columns)
    width *= max(1, serial.BLOCK // width)
    piece = max(1, GRAIN // columns)
    pieces = -(-size // piece)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // outer) if split else 1)
    nest = dims.form(False, True, False)
    return Partition(
        outer * parts, units, parts, per_part, pieces, (piece, width), lambda source, wide: source.narrow(nest, wide)
    )


def _grouped(traits: Traits, dims: ReductionDims, split: bool) -> Partition:
    group = min(groups.GROUP, 1 << (traits.group.bit_length() - 1))
    target_parts = 8 * traits.compute_units
    if dims.count <= FEW:
        return _lanes(dims)
    if uses_columns(dims):
        columns = dims.kept[-1]
        blocks, outer = -(-columns // groups.ACROSS), dims.outputs // columns
        most = min(-(-target_parts // (blocks * outer)), dims.count // groups.DEEP) if split else 1
        parts, per_part = split_units(dims.count, most)
        nest = dims.form(True, dims.kept_strides[-1] == 1, False)
        return Partition(
            outer * blocks * parts, dims.count, parts, per_part, 1, (blocks,),
            lambda source, wide: source.columns(nest, wide, group),
        )  # fmt: skip
    pieces = -(-dims.reduced[-1] // groups.PIECE)
    units = prod(dims.reduced[:-1]) * pieces
    parts, per_part = split_units(units, -(-target_parts // dims.outputs) if split else 1)
    adjacent = dims.reduced_strides[-1] == 1
    nest = dims.form(False, adjacent, adjacent)
    return Partition(
        dims.outputs * parts, units, parts, per_part, pieces, (), lambda source, wide: source.rows(nest, wide, group)
    )


def _lanes(dims: ReductionDims) -> Partition:
    """One lane per output."""
    nest = dims.form(False, False, False)
    return Partition(dims.outputs, dims.count, 1, dims.count, 1, (), lambda source, wide: source.lanes(nest, wide))
