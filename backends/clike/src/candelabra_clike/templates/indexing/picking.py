"""Index arrays in a kernel: an element's place along some dims is read from them, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.faults import Indexed
from candelabra_clike.source import Parameter, number, reads, writes


class Pick(NamedTuple):
    """``array`` (int64) says where along ``dim``, of ``size`` elements ``step`` apart, an element is.

    ``strides`` are those of the index array along the dims of the walk that it is read in.
    """

    array: StridedArray
    strides: Shape
    dim: int
    size: int
    step: int

    @property
    def indexed(self) -> Indexed:
        """What complaints are about."""
        return Indexed(self.array, self.dim, self.size)


def names(count: int) -> tuple[str, ...]:
    """The names of the index arrays in a kernel."""
    return tuple(f"i{j}" for j in range(count))


def buffers(count: int) -> list[Parameter]:
    """The parameters for the index arrays, and for complaints."""
    return [*[reads(name, "i64") for name in names(count)], writes("faults", "i64"), number("ticket", "u32")]


def extents(count: int) -> list[Parameter]:
    """The parameters that say which dim each index array points into: its number, its size and its step."""
    return [number(f"{part}_{name}") for name in names(count) for part in ("dim", "size", "step")]


def extents_of(picks: Sequence[Pick]) -> list[int]:
    """Their arguments."""
    return [n for pick in picks for n in (pick.dim, pick.size, pick.step)]


def noted() -> str:
    """Variables for a wrong index: which array, counted from 1, and its value."""
    return "u32 wrong = 0;\ni64 value = 0;\n"


def looked_up(count: int, places: Sequence[str], wraps: bool) -> str:
    """``good``: whether all indices are within bounds; ``to``: how far they lead, 0 if one is not.

    ``places`` are those of the elements in the index arrays. No branch, so that the loop around it can be vectorised.
    """
    lines = ["INDEX to = 0; u32 good = 1;"]
    for j, (name, place) in enumerate(zip(names(count), places, strict=True), 1):
        wrapped = f"w{j} < 0 ? w{j} + (i64)size_{name} : w{j}" if wraps else f"w{j}"
        lines += [
            f"const i64 w{j} = {name}[{place}], v{j} = {wrapped};",
            f"const u32 ok{j} = (u64)v{j} < (u64)size_{name};",
            f"wrong = ok{j} ? wrong : {j}u; value = ok{j} ? value : w{j}; good &= ok{j};",
            f"to += (INDEX)v{j} * step_{name};",
        ]
    return "\n".join(lines) + "\nto = good ? to : 0;\n"


def complaint(count: int) -> str:
    """Complain, once, after all has been looked at."""
    which = {part: "".join(f"wrong == {j}u ? {part}_i{j - 1} : " for j in range(1, count)) for part in ("dim", "size")}
    dim, size = (f"(i64)({which[part]}{part}_i{count - 1})" for part in ("dim", "size"))
    return f"if (wrong) complain(faults, ticket, value, {dim}, {size});\n"
