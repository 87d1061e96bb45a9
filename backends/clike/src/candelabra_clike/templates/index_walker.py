"""The index walker of kernels: statements that compute coordinates, and the offsets of several arrays, from a flat
index. No other module divides an index by sizes of dims in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from candelabra_clike.source import KernelParameter, number


def row_offsets(
    names: Sequence[str], rank: int, flat: str = "row", dims: str = "n", steps: str = "_s", suffix: str = "_row"
) -> str:
    """Return statements that compute the offset ``{name}_row`` of each array from ``{name}_at`` and the row's flat
    index.

    Rows are counted in C order along the first ``rank`` dims, of sizes ``n0`` … and strides ``{name}_s0`` …
    """
    lines = [f"INDEX {name}{suffix} = {name}_at;" for name in names]
    lines += offset_lines(names, rank, flat, dims, steps, suffix)
    return "\n".join(lines) + "\n"


def offset_lines(names: Sequence[str], rank: int, flat: str, dims: str, steps: str, suffix: str) -> list[str]:
    """Return lines that add the offset of flat index ``flat`` along ``rank`` dims to ``{name}{suffix}``."""
    if not rank:
        return []
    if rank == 1:
        return [f"{name}{suffix} += ({flat}) * {name}{steps}0;" for name in names]
    moved = coordinates("left", rank, dims, lambda d, p: moves(p, {f"{n}{suffix}": f"{n}{steps}{d}" for n in names}))
    return [f"{{ INDEX left = {flat};", *moved, "}"]


def coordinates(
    left: str, rank: int, sizes: str, use: Callable[[int, str], str], *, outermost: bool = True
) -> list[str]:
    """Return lines that divide the variable ``left`` by ``rank`` sizes, from the last one on. ``use`` returns the
    statement with the coordinate of a dim, from its number and an expression.

    With ``outermost``, dim 0 has no size to divide by. Without, the quotient remains in the variable.
    """
    lines = []
    for d in range(rank - 1, -1, -1):
        if outermost and d == 0:
            lines.append(use(d, left))
        else:
            lines += [use(d, f"{left} % {sizes}{d}"), f"{left} /= {sizes}{d};"]
    return lines


def moves(coordinate: str, steps: Mapping[str, str]) -> str:
    """Return a statement that adds a coordinate times a stride to each offset: ``steps`` has the strides by offset."""
    return f"{{ const INDEX p = {coordinate}; {' '.join(f'{offset} += p * {s};' for offset, s in steps.items())} }}"


def declare_coordinates(names: str, left: str, rank: int, sizes: str, *, outermost: bool = False) -> str:
    """Return statements that declare the coordinates ``{names}0`` … of the flat index in the variable ``left``."""
    lines = coordinates(left, rank, sizes, lambda d, p: f"INDEX {names}{d} = {p};", outermost=outermost)
    return "".join(f"{line}\n" for line in lines)


def advance(names: str, rank: int, sizes: str, beyond: str = "") -> str:
    """Return a statement that moves coordinates to the next element, with carry; ``beyond`` is the statement after the
    last one.
    """
    carries = [f"if (++{names}{d} == {sizes}{d}) {{ {names}{d} = 0; " for d in range(rank - 1, -1, -1)]
    return "".join(carries) + beyond + " }" * rank


def offset_parameters(names: Sequence[str]) -> list[KernelParameter]:
    """Return the parameters with the offset of each array in its buffer."""
    return [number(f"{name}_at") for name in names]


def stride_parameters(names: Sequence[str], rank: int, steps: str = "_s") -> list[KernelParameter]:
    """Return the parameters with the strides of each array along ``rank`` dims."""
    return [number(f"{name}{steps}{d}") for name in names for d in range(rank)]


def size_parameters(rank: int, dims: str = "n") -> list[KernelParameter]:
    """Return the parameters with the sizes of ``rank`` dims."""
    return [number(f"{dims}{d}") for d in range(rank)]
