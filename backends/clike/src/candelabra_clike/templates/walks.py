"""How a reduction walks over its input: the dims that are kept and those that are reduced, each as few as will do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.layouts import collapsed
from candelabra_clike.source import Parameter, number


class Walk(NamedTuple):
    """Sizes and steps of the kept dims, in the order of the output, and of the reduced ones. None of them is empty."""

    kept: Shape
    kept_steps: Shape
    reduced: Shape
    reduced_steps: Shape

    @property
    def outputs(self) -> int:
        """How many elements the result has."""
        return prod(self.kept)

    @property
    def count(self) -> int:  # type: ignore[override] # hides the method of tuples
        """How many elements become one."""
        return prod(self.reduced)


class Nest(NamedTuple):
    """What the text of a reduction depends on: how many dims are kept and reduced, and what lies side by side."""

    kept: int
    reduced: int
    adjacent: bool
    """Whether the elements along the innermost loop do: those of a row, or the columns."""
    adjacent_rows: bool
    """Whether the elements of a row do."""

    @property
    def mark(self) -> str:
        """A short form, for the names of kernels."""
        return f"{self.kept}_{self.reduced}{'_side' if self.adjacent else ''}"


@lru_cache(4096)
def walk(shape: Shape, strides: Shape, dims: Shape | None, ordered: bool = False) -> Walk:
    """The walk of a reduction over ``dims`` (None: all).

    The reduced dims are sorted so that the last one has the smallest step, unless ``ordered``: then their order is C's.
    """
    gone = range(len(shape)) if dims is None else sorted(dims)
    stay = [d for d in range(len(shape)) if d not in gone]
    # What has no step (an expanded dim) is walked outermost.
    order = gone if ordered else sorted(gone, key=lambda d: -strides[d] if strides[d] else -(2**63))
    kept, (kept_steps,) = collapsed(tuple([shape[d] for d in stay]), (tuple([strides[d] for d in stay]),))
    reduced, (steps,) = collapsed(tuple([shape[d] for d in order]), (tuple([strides[d] for d in order]),))
    return Walk(kept, kept_steps, reduced, steps)


def need_elements(name: str, shape: Shape, dims: Shape | None) -> None:
    """Raise IndexError where a reduced dim (None: any) has no elements: of none there is no extreme."""
    if any(not size for d, size in enumerate(shape) if dims is None or d in dims):
        raise IndexError(f"{name}: of no elements there is no extreme")


def reach(shape: Shape, strides: Shape) -> int:
    """The place of the last element, counted from the first."""
    return sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if size)


def dims_of(prefix: str, rank: int) -> list[Parameter]:
    """The parameters ``n0``, ``n1`` … and ``n_s0``, ``n_s1`` … (for the prefix n): sizes and steps of dims."""
    return [number(f"{prefix}{d}") for d in range(rank)] + [number(f"{prefix}_s{d}") for d in range(rank)]


def moved(place: str, flat: str, prefix: str, dims: Sequence[int]) -> str:
    """Statements that add to ``place`` how far on the element number ``flat`` of the ``dims`` (in C order) lies."""
    if not dims:
        return ""
    lines = [f"INDEX {prefix}_left = {flat};"]
    for d in reversed(dims[1:]):
        lines.append(f"{place} += {prefix}_left % {prefix}{d} * {prefix}_s{d}; {prefix}_left /= {prefix}{d};")
    lines.append(f"{place} += {prefix}_left * {prefix}_s{dims[0]};")
    return "{ " + "\n".join(lines) + " }\n"
