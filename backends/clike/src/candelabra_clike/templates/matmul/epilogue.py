"""Epilogues of products: pointwise operators on the elements of a product, in the kernel that computes it.

On serial devices the operators run over a block of the product when its sums are complete, while the block is in the
cache. On other devices each lane applies them to the sums in its registers. The sums are those of the product alone, so
that a result has the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from candelabra_clike.source import KernelParameter, number, reads, writes
from candelabra_clike.templates.elementwise.loops import STEP, UNIT, LoopNest
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
        nest, lines = self.nest, []
        inner = [kinds.get(place, UNIT) for place in self.places]
        for n, place, kind in zip(nest.names, self.places, inner, strict=True):
            qualifier = "" if n in nest.written else "const "
            lines.append(f"GLOBAL {qualifier}{nest.memory[n]}* p{n} = {place} + ({starts[place]});\n")
            lines += [f"const INDEX {n}_s0 = {steps[place]};\n"] if kind == STEP else []
        whole, part = nest.loop(f"{count}u", inner), nest.loop("(u32)width", inner)
        return f"{{\n{''.join(lines)}if (width == {count}u) {{\n{whole}}} else {{\n{part}}}\n}}\n"

    def on_element(self, offsets: Mapping[str, str], result: str) -> str:
        """Return statements that compute and store one element, whose product is ``result``. ``offsets`` are those of
        the element by place.
        """
        nest = self.nest
        elements = {n: f"{p}[{offsets[p]}]" for n, p in zip(nest.names, self.places, strict=True) if p in offsets}
        product = f"const {CTYPES[nest.inputs[0]].value} product = {result};\n"
        stored = "" if OUT in self.places[: len(nest.outputs)] else f"{OUT}[{offsets[OUT]}] = product;\n"
        return f"{product}{stored}{nest.element_step({**elements, nest.read[0]: 'product'})}"
