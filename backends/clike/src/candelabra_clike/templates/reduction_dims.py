"""The loop dims of a reduction: the kept and the reduced dims of its input, collapsed to as few as possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.layouts import collapsed
from candelabra_clike.source import Parameter, number


class ReductionDims(NamedTuple):
    """Sizes and strides of the kept dims, in the order of the output, and of the reduced dims. Neither is empty."""

    kept: Shape
    kept_strides: Shape
    reduced: Shape
    reduced_strides: Shape

    @property
    def outputs(self) -> int:
        """The number of elements of the result."""
        return prod(self.kept)

    @property
    def count(self) -> int:  # type: ignore[override] # hides the method of tuples
        """The number of elements that are reduced to one."""
        return prod(self.reduced)


class ReductionForm(NamedTuple):
    """The properties of the dims that the source of a reduction depends on."""

    kept: int
    reduced: int
    adjacent: bool
    """Whether the elements of the innermost loop are adjacent in memory: those of a row, or the columns."""
    adjacent_rows: bool
    """Whether the elements of a row are adjacent in memory."""

    @property
    def mark(self) -> str:
        """A short description, used in the names of kernels."""
        return f"{self.kept}_{self.reduced}{'_side' if self.adjacent else ''}"


@lru_cache(4096)
def reduction_dims(shape: Shape, strides: Shape, dims: Shape | None, ordered: bool = False) -> ReductionDims:
    """Return the loop dims of a reduction over ``dims`` (None: all).

    The reduced dims are sorted by stride, the smallest one last, unless ``ordered``: then they keep their C order.
    """
    reduced_dims = range(len(shape)) if dims is None else sorted(dims)
    kept_dims = [d for d in range(len(shape)) if d not in reduced_dims]
    # An expanded dim, whose stride is 0, becomes the outermost loop.
    order = reduced_dims if ordered else sorted(reduced_dims, key=lambda d: -strides[d] if strides[d] else -(2**63))
    kept, (kept_strides,) = collapsed(tuple([shape[d] for d in kept_dims]), (tuple([strides[d] for d in kept_dims]),))
    reduced, (reduced_strides,) = collapsed(tuple([shape[d] for d in order]), (tuple([strides[d] for d in order]),))
    return ReductionDims(kept, kept_strides, reduced, reduced_strides)


def check_not_empty(name: str, shape: Shape, dims: Shape | None) -> None:
    """Raise ``IndexError`` if a reduced dim (None: any dim) is empty: the reduction has no identity element."""
    if any(not size for d, size in enumerate(shape) if dims is None or d in dims):
        raise IndexError(f"{name}: expected at least one element along the reduced dims, got shape {shape}")


def max_offset(shape: Shape, strides: Shape) -> int:
    """Return the offset of the last element from the first."""
    return sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if size)


def dim_parameters(prefix: str, rank: int) -> list[Parameter]:
    """Return the parameters ``n0``, ``n1`` … and ``n_s0``, ``n_s1`` … (for the prefix n): sizes and strides of dims."""
    return [number(f"{prefix}{d}") for d in range(rank)] + [number(f"{prefix}_s{d}") for d in range(rank)]


def add_offset(offset: str, flat: str, prefix: str, dims: Sequence[int]) -> str:
    """Return statements that add to ``offset`` that of element ``flat`` of the ``dims``, counted in C order."""
    if not dims:
        return ""
    lines = [f"INDEX {prefix}_left = {flat};"]
    for d in reversed(dims[1:]):
        lines.append(f"{offset} += {prefix}_left % {prefix}{d} * {prefix}_s{d}; {prefix}_left /= {prefix}{d};")
    lines.append(f"{offset} += {prefix}_left * {prefix}_s{dims[0]};")
    return "{ " + "\n".join(lines) + " }\n"
