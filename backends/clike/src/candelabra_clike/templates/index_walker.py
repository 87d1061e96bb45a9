"""The index walker of kernels: statements that compute coordinates, and the offsets of several arrays, from a flat
index. No other module divides an index by sizes of dims in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from candelabra_clike.language import INDEX, Value, Variable, text
from candelabra_clike.language.kernels import KernelBuilder
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
    lines, all_sizes = [], [Variable(INDEX, f"{sizes}{d}") for d in range(rank)]
    for d, coordinate, divisor in _divided(Variable(INDEX, left), all_sizes, outermost):
        lines += [use(d, text(coordinate)), *([] if divisor is None else [f"{left} /= {text(divisor)};"])]
    return lines


def _divided(left: Value, sizes: Sequence[Value], outermost: bool) -> Iterator[tuple[int, Value, Value | None]]:
    """Yield each dim, from the last one on, its coordinate, and what the flat index is divided by after it."""
    for d in range(len(sizes) - 1, -1, -1):
        if outermost and d == 0:
            yield d, left, None
        else:
            yield d, left % sizes[d], sizes[d]


def each_coordinate(
    k: KernelBuilder, left: Variable, sizes: Sequence[Value], *, outermost: bool = True
) -> Iterator[tuple[int, Value]]:
    """Yield each dim and its coordinate, as :func:`coordinates` does, and divide the variable in between."""
    for d, coordinate, divisor in _divided(left, sizes, outermost):
        yield d, coordinate
        if divisor is not None:
            k.assign(left, left // divisor)


def declare_offsets(
    k: KernelBuilder, starts: Mapping[str, Value], strides: Mapping[str, Sequence[Value]], flat: Value,
    sizes: Sequence[Value], suffix: str = "_row",
) -> dict[str, Variable]:  # fmt: skip
    """Declare the offset of each array, from its start, at a flat index along dims of these sizes."""
    offsets = {name: k.variable(name + suffix, start) for name, start in starts.items()}
    if len(sizes) == 1:
        for name, offset in offsets.items():
            k.assign(offset, offset + flat * strides[name][0])
    elif sizes:
        with k.block():
            for d, coordinate in each_coordinate(k, k.variable("left", flat), sizes):
                with k.block():
                    p = k.let("p", coordinate)
                    for name, offset in offsets.items():
                        k.assign(offset, offset + p * strides[name][d])
    return offsets


def outer_coordinates(
    k: KernelBuilder, name: str, row: Value, sizes: Sequence[Value]
) -> tuple[Variable, list[Variable]]:
    """Declare the coordinates ``o0`` … of a row along these dims, and the number of its plane as ``name``."""
    plane = k.variable(name, row)
    return plane, [k.let(f"o{d}", p) for d, p in each_coordinate(k, plane, sizes, outermost=False)][::-1]


def flat_index(coordinates: Sequence[Value], sizes: Sequence[Value]) -> Value:
    """Return the number of an element of an array of these sizes."""
    flat = coordinates[0]
    for coordinate, size in zip(coordinates[1:], sizes[1:], strict=True):
        flat = flat * size + coordinate
    return flat


def coordinate_variables(k: KernelBuilder, flat: Value, sizes: Sequence[Value]) -> list[Variable]:
    """Declare the coordinates ``i0`` … of a flat index."""
    if not sizes:
        return []
    left = k.variable("left", flat)
    return [k.variable(f"i{d}", coordinate) for d, coordinate in each_coordinate(k, left, sizes)][::-1]


def advance_variables(k: KernelBuilder, at: Sequence[Variable], sizes: Sequence[Value]) -> None:
    """Move coordinates to the next element, with carry."""
    if at:
        k.assign(at[-1], at[-1] + 1)
        with k.when(at[-1] == sizes[-1]):
            k.assign(at[-1], 0)
            advance_variables(k, at[:-1], sizes[:-1])


def moves(coordinate: str, steps: Mapping[str, str]) -> str:
    """Return a statement that adds a coordinate times a stride to each offset: ``steps`` has the strides by offset."""
    return f"{{ const INDEX p = {coordinate}; {' '.join(f'{offset} += p * {s};' for offset, s in steps.items())} }}"


def declare_coordinates(names: str, left: str, rank: int, sizes: str, *, outermost: bool = False) -> str:
    """Return statements that declare the coordinates ``{names}0`` … of the flat index in the variable ``left``."""
    lines = coordinates(left, rank, sizes, lambda d, p: f"INDEX {names}{d} = {p};", outermost=outermost)
    return "".join(f"{line}\n" for line in lines)


def advance(names: str, rank: int, sizes: str, beyond: str = "", first: int = 0) -> str:
    """Return a statement that moves coordinates to the next element, with carry; ``beyond`` is the statement after the
    last one. Dims before ``first`` have no coordinates.
    """
    carries = [f"if (++{names}{d} == {sizes}{d}) {{ {names}{d} = 0; " for d in range(rank - 1, first - 1, -1)]
    return "".join(carries) + beyond + " }" * (rank - first)


def stride_parameters(names: Sequence[str], rank: int, steps: str = "_s") -> list[KernelParameter]:
    """Return the parameters with the strides of each array along ``rank`` dims."""
    return [number(f"{name}{steps}{d}") for name in names for d in range(rank)]


def size_parameters(rank: int, dims: str = "n") -> list[KernelParameter]:
    """Return the parameters with the sizes of ``rank`` dims."""
    return [number(f"{dims}{d}") for d in range(rank)]
