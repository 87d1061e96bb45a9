"""Matrix products with an epilogue: the parameters of their kernel, and its launch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.source import Source, reads
from candelabra_clike.templates.elementwise.loops import STEP, UNIT
from candelabra_clike.templates.matmul import micro_kernel, tiled
from candelabra_clike.templates.matmul.epilogue import OUT, Epilogue
from candelabra_clike.templates.matmul.matmul import (
    MatmulKernel,
    MatmulLayout,
    MatmulPlan,
    batch_offsets,
    plan_parameters,
)
from candelabra_clike.templates.matmul.micro_kernel import MicroTile
from candelabra_clike.templates.matmul.packing import StridedRows, pack_panels
from candelabra_clike.types import CTYPES

LETTERS = {OUT: "o", "a": "a", "b": "b", "start": "start"}
"""What the parameters of each operand's strides begin with."""


class MatmulWithEpilogue(MatmulKernel):
    """``epilogue(a @ b)`` or ``epilogue(start + a @ b)``.

    ``kinds`` has the kind of stride of each addressed array along the columns.
    """

    def __init__(self, d: dtype, epilogue: Epilogue, kinds: dict[str, int]) -> None:
        super().__init__(d, "start" in epilogue.roles)
        self.epilogue = epilogue
        self.kinds = kinds

    def launch(self, engine: Engine, shape: Shape, depth: int, strides: Sequence[Shape], wide: bool) -> MatmulPlan:
        """Return the plan for a product of a shape. ``strides`` are those of the operands, without the product, and of
        the addressed arrays, broadcast to the batch.
        """
        *batch, m, n = shape
        shapes = [shape, (*batch, m, depth), (*batch, depth, n)]
        rows = [contiguous_strides(shape), *strides]
        shapes += [shape] * (len(rows) - len(shapes))
        arrays = [
            StridedArray(engine, None, each, row, 0, self.dtype, prod(each), False)
            for each, row in zip(shapes, rows, strict=True)
        ]
        plan = self.planned(tuple(arrays), wide)
        if plan.packed_tile is None:
            return plan
        position = list(self.epilogue.arrays).index(self.epilogue.roles["a"])
        launch = PackedLaunch(plan.launch, engine, self.dtype, plan.layout, plan.packed_tile.rows, position,
                              len(self.epilogue.arrays))  # fmt: skip
        return plan._replace(launch=launch)

    def is_dot(self, layout_: MatmulLayout) -> bool:
        """The kernel of a row times a matrix has no epilogue."""
        return False

    def source(self, traits: Traits, tile: MicroTile, rank: int, packing: bool, wide: bool) -> Source:
        """Return the kernel for a batch of ``rank`` dims."""
        epilogue, memory = self.epilogue, CTYPES[self.dtype]
        names = (*[LETTERS[role] for role in epilogue.roles], *epilogue.addressed)
        head = (
            *([reads("packed", memory.memory)] if packing else []),
            *epilogue.buffers(),
            *epilogue.offsets(),
            *plan_parameters(names, rank, traits.serial),
            *epilogue.scalars(),
        )
        renamed = epilogue.renamed({role: f"{LETTERS[role]}_from" for role in epilogue.roles}, ("a",) * packing)
        if packing:
            renamed += f"GLOBAL const {memory.memory}* const a = packed;\nconst INDEX a_from = 0;\n"
        if self.added:
            renamed += f"const {self.value} alpha = 1, beta = 1;\n"
        moves = batch_offsets(names, rank)
        if traits.serial:
            over_panel, fetch = self._over_panel(tile), self._fetch(tile)
            body = micro_kernel.body(tile, memory, moves, self.added, packing, over_panel, fetch)
            return Source(epilogue.nest.name, head, renamed + body, wide=wide, contract=True)
        body = tiled.body(memory, self.value, moves, self.added, self._on_element)
        return Source(epilogue.nest.name, head, renamed + body, group=tiled.GROUP, wide=wide, contract=True)

    def _over_panel(self, tile: MicroTile) -> str:
        """Return statements that run the epilogue over the rows of a panel of columns."""
        places = {OUT: "o", **{name: name for name in self.epilogue.addressed}}
        starts = {p: f"{n}_at + row * {n}_row + n0 * {n}_column" for p, n in places.items()}
        steps = {p: f"{n}_column" for p, n in places.items()}
        row = self.epilogue.over_row(starts, steps, self.kinds, tile.columns)
        return f"for (INDEX row = row_first; row < row_end; ++row) {row}"

    def _fetch(self, tile: MicroTile) -> str:
        """Return statements that prefetch the parts of row ``m_here + i`` that the epilogue reads.

        They come from memory or from an outer cache, a few lines from each row, which the processor does not foresee.
        Arrays that are only written are left to its store buffers.
        """
        read = [n for n in self.epilogue.read_only if self.kinds[n] == UNIT]
        return "".join(
            f" PREFETCH({n} + ({n}_at + (m_here + i) * {n}_row + n0 + {column}u));"
            for n in read
            for column in range(0, tile.columns, micro_kernel.per_line(self.epilogue.arrays[n]))
        )

    def _on_element(self, result: str) -> str:
        """Return statements that run the epilogue on one element."""
        places = {OUT: "o", **{name: name for name in self.epilogue.addressed}}
        offsets = {p: f"{n}_at + row * {n}_row + column * {n}_column" for p, n in places.items()}
        return self.epilogue.on_element(offsets, result)


class PackedLaunch(NamedTuple):
    """The launch of a product whose left operand, the array at ``position`` among the ``arrays``, is packed
    first.
    """

    kernel: Launch
    engine: Engine
    dtype: dtype
    layout: MatmulLayout
    rows: int
    position: int
    arrays: int

    def __call__(self, items: Any, /, *arguments: Any) -> None:
        buffer, offset = arguments[self.position], arguments[self.arrays + self.position]
        row_step, column_step = self.layout.strides[1]
        rows = StridedRows(offset, 1, 0, self.layout.m, row_step, (self.layout.depth,), (column_step,))
        memory, itemsize = CTYPES[self.dtype].memory, self.dtype.itemsize
        packed = pack_panels(self.engine, buffer, rows, memory, itemsize, self.rows)
        self.kernel(items, packed, *arguments)


def kinds_along_columns(names: Sequence[str], strides: Sequence[Shape]) -> dict[str, int]:
    """Return the kind of stride of each array along the last dim."""
    return {name: min(row[-1], STEP) for name, row in zip(names, strides, strict=True)}
