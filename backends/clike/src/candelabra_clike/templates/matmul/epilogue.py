"""Epilogues of products: pointwise operators on the elements of a product, in the kernel that computes it.

On serial devices the operators run over a block of the product when its sums are complete, while the block is in the
cache. On other devices each lane applies them to the sums in its registers. The sums are those of the product alone, so
that a result has the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.elementwise.loops import UNIT, LoopNest
from candelabra_clike.templates.matmul import micro_kernel, tiled
from candelabra_clike.templates.matmul.matmul import (
    MatmulKernel,
    MatmulLayout,
    MatmulPlan,
    batch_offsets,
    packed_left,
    plan_parameters,
)
from candelabra_clike.templates.matmul.micro_kernel import MicroTile
from candelabra_clike.types import CTYPES, CType

OUT = "out"
"""The array into which a product is summed: one of the written arrays, under this name."""


@dataclass(frozen=True)
class Epilogue:
    """A loop nest over the elements of a product, whose first input is the product.

    ``arrays`` are the kernel's arrays in order, with the type of their elements; the first ``written`` of them are
    written. ``roles`` has the array of each operand of the product by the name that the product's template gives it,
    and of :data:`OUT`. ``places`` has the array of each of ``nest.names``. ``numbers`` are the types of all numbers.
    """

    nest: LoopNest
    arrays: Mapping[str, CType]
    written: int
    roles: Mapping[str, str]
    places: tuple[str, ...]

    @property
    def addressed(self) -> tuple[str, ...]:
        """The arrays that have elements for those of the product, except for the one into which it is summed."""
        return tuple(name for name in dict.fromkeys(self.places) if name != OUT)

    @property
    def read_only(self) -> tuple[str, ...]:
        """The addressed arrays that are only read."""
        return tuple(name for name in self.addressed if name not in list(self.arrays)[: self.written])

    @property
    def named(self) -> dict[str, str]:
        """The array of each place."""
        return {**self.roles, **{name: name for name in self.arrays}}

    def buffers(self) -> tuple[KernelParameter, ...]:
        """Return the parameters of the arrays."""
        return tuple(
            (writes if i < self.written else reads)(name, c.memory) for i, (name, c) in enumerate(self.arrays.items())
        )

    def offsets(self) -> tuple[KernelParameter, ...]:
        """Return the parameters with the offset of each array."""
        return tuple(number(f"{name}_from") for name in self.arrays)

    def scalars(self) -> tuple[KernelParameter, ...]:
        """Return the parameters of the numbers."""
        return tuple(number(f"s{i}", type) for i, type in enumerate(self.nest.numbers))

    def renamed(self, offsets: Mapping[str, str], without: Sequence[str] = ()) -> str:
        """Return declarations of the operands under the names that the product's template gives them, and of their
        offsets, whose names ``offsets`` has.
        """
        lines = []
        for role, name in self.roles.items():
            if role not in without:
                qualifier = "" if role == OUT else "const "
                lines.append(f"GLOBAL {qualifier}{self.arrays[name].memory}* const {role} = {name};")
                lines.append(f"const INDEX {offsets[role]} = {name}_from;")
        return "".join(f"{line}\n" for line in lines)

    def over_row(
        self, starts: Mapping[str, str], steps: Mapping[str, str], kinds: Mapping[str, int], count: int
    ) -> str:
        """Return statements that run the loop nest over ``width`` elements of a row, mostly ``count``.

        By place: ``starts`` are the offsets of the first element, ``steps`` the strides, ``kinds`` the kinds of stride.
        """
        nest, inner = self.nest, [kinds.get(place, UNIT) for place in self.places]
        pointers = "".join(
            nest.pointer(n, f"{place} + ({starts[place]})", kind, steps[place])
            for n, place, kind in zip(nest.names, self.places, inner, strict=True)
        )
        if nest.rare:  # one loop serves rare values: a long function with two calls is not inlined, nor vectorised
            return f"{{\n{pointers}{nest.loop('(u32)width', inner, whole=count)}}}\n"
        whole, part = nest.loop(f"{count}u", inner), nest.loop("(u32)width", inner)
        return f"{{\n{pointers}if (width == {count}u) {{\n{whole}}} else {{\n{part}}}\n}}\n"

    def on_element(self, offsets: Mapping[str, str], result: str) -> str:
        """Return statements that compute and store one element, whose product is ``result``. ``offsets`` are those of
        the element by place.
        """
        nest = self.nest
        elements = {n: f"{p}[{offsets[p]}]" for n, p in zip(nest.names, self.places, strict=True) if p in offsets}
        product = f"const {CTYPES[nest.inputs[0]].value} product = {result};\n"
        stored = "" if OUT in self.places[: len(nest.outputs)] else f"{OUT}[{offsets[OUT]}] = product;\n"
        return f"{product}{stored}{nest.element_step({**elements, nest.read[0]: 'product'})}"


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

    def _over_panel(self, tile: MicroTile) -> str:
        """Return statements that run the epilogue over the rows of a panel of columns."""
        places = {OUT: "o", **{name: name for name in self.epilogue.addressed}}
        starts = {p: f"{n}_at + row * {n}_row + n0 * {n}_column" for p, n in places.items()}
        steps = {p: f"{n}_column" for p, n in places.items()}
        row = self.epilogue.over_row(starts, steps, self.kinds, tile.columns)
        return f"for (INDEX row = row_first; row < row_end; ++row) {row}"

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
        packed = packed_left(self.engine, buffer, offset, self.layout, self.dtype, self.rows)
        self.kernel(items, packed, *arguments)
