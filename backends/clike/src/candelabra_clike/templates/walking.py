"""Pieces of kernels that walk several arrays together, dim by dim."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.source import Parameter, number


def starts(
    names: Sequence[str], rank: int, row: str = "row", dims: str = "n", steps: str = "_s", end: str = "_row"
) -> str:
    """Where a row of each array begins: ``{name}_row`` from ``{name}_at`` and the row's number, in C order.

    The rows are counted along the first ``rank`` dims, of sizes ``n0`` … and steps ``{name}_s0`` …
    """
    lines = [f"INDEX {name}{end} = {name}_at;" for name in names]
    lines += moves(names, rank, row, dims, steps, end)
    return "\n".join(lines) + "\n"


def moves(names: Sequence[str], rank: int, row: str, dims: str, steps: str, end: str) -> list[str]:
    """Lines that add to ``{name}{end}`` how far the row with the number ``row`` is, along ``rank`` dims."""
    if not rank:
        return []
    if rank == 1:
        return [f"{name}{end} += ({row}) * {name}{steps}0;" for name in names]
    lines = [f"{{ INDEX left = {row};"]
    for d in range(rank - 1, -1, -1):
        place = "left" if d == 0 else f"left % {dims}{d}"
        lines += [f"{{ const INDEX p = {place};", *[f"{n}{end} += p * {n}{steps}{d};" for n in names], "}"]
        if d:
            lines.append(f"left /= {dims}{d};")
    lines.append("}")
    return lines


def offsets(names: Sequence[str]) -> list[Parameter]:
    """The parameters that say where in its buffer each array begins."""
    return [number(f"{name}_at") for name in names]


def strides(names: Sequence[str], rank: int, steps: str = "_s") -> list[Parameter]:
    """The parameters for the strides of each array along ``rank`` dims."""
    return [number(f"{name}{steps}{d}") for name in names for d in range(rank)]


def sizes(rank: int, dims: str = "n") -> list[Parameter]:
    """The parameters for the sizes of ``rank`` dims."""
    return [number(f"{dims}{d}") for d in range(rank)]
