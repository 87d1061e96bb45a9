"""The index walker of kernels: statements that compute the offsets of several arrays from a flat index."""

from __future__ import annotations

from collections.abc import Sequence

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
    lines = [f"{{ INDEX left = {flat};"]
    for d in range(rank - 1, -1, -1):
        index = "left" if d == 0 else f"left % {dims}{d}"
        lines += [f"{{ const INDEX p = {index};", *[f"{n}{suffix} += p * {n}{steps}{d};" for n in names], "}"]
        if d:
            lines.append(f"left /= {dims}{d};")
    lines.append("}")
    return lines


def offset_parameters(names: Sequence[str]) -> list[KernelParameter]:
    """Return the parameters with the offset of each array in its buffer."""
    return [number(f"{name}_at") for name in names]


def stride_parameters(names: Sequence[str], rank: int, steps: str = "_s") -> list[KernelParameter]:
    """Return the parameters with the strides of each array along ``rank`` dims."""
    return [number(f"{name}{steps}{d}") for name in names for d in range(rank)]


def size_parameters(rank: int, dims: str = "n") -> list[KernelParameter]:
    """Return the parameters with the sizes of ``rank`` dims."""
    return [number(f"{dims}{d}") for d in range(rank)]
