"""The loop dims of a reduction: the kept and the reduced dims of its input, collapsed to as few as possible."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.layouts import collapsed_dims
from candelabra_clike.templates.elementwise.loops import stride_kind


class ReductionDims(NamedTuple):
    """Sizes of the kept dims, in the order of the output, and of the reduced dims, and the strides of each array along
    them. Neither is empty. The first array has the elements that are reduced.
    """

    kept: Shape
    kept_rows: tuple[Shape, ...]
    reduced: Shape
    reduced_rows: tuple[Shape, ...]

    @property
    def kept_strides(self) -> Shape:
        """The strides of the elements along the kept dims."""
        return self.kept_rows[0]

    @property
    def reduced_strides(self) -> Shape:
        """The strides of the elements along the reduced dims."""
        return self.reduced_rows[0]

    @property
    def outputs(self) -> int:
        """The number of elements of the result."""
        return prod(self.kept)

    @property
    def count(self) -> int:  # type: ignore[override] # hides the method of tuples
        """The number of elements that are reduced to one."""
        return prod(self.reduced)

    def numbers(self, first: int = 0) -> tuple[int, ...]:
        """The kernel's arguments for the dims of the arrays from ``first`` on."""
        kept = [step for row in self.kept_rows[first:] for step in row]
        reduced = [step for row in self.reduced_rows[first:] for step in row]
        return (*self.kept, *kept, *self.reduced, *reduced)

    def form(self, across: bool, adjacent: bool, adjacent_rows: bool) -> ReductionForm:
        """Return the form whose innermost loop is along the kept dims (``across``) or along the reduced dims."""
        inner = (self.kept_rows if across else self.reduced_rows)[1:]
        kinds = tuple([stride_kind(row[-1]) for row in inner])
        return ReductionForm(len(self.kept), len(self.reduced), adjacent, adjacent_rows, kinds)


class ReductionForm(NamedTuple):
    """The properties of the dims that the source of a reduction depends on."""

    kept: int
    reduced: int
    adjacent: bool
    """Whether the elements of the innermost loop are adjacent in memory: those of a row, or the columns."""
    adjacent_rows: bool
    """Whether the elements of a row are adjacent in memory."""
    inner: tuple[int, ...] = ()
    """The kinds of stride along the innermost loop of the arrays from which the elements are computed."""

    @property
    def mark(self) -> str:
        """A short description, used in the names of kernels."""
        return f"{self.kept}_{self.reduced}{'_side' if self.adjacent else ''}"


@lru_cache(4096)
def reduction_dims(
    shape: Shape, strides: Shape, dims: Shape | None, ordered: bool = False, others: tuple[Shape, ...] = ()
) -> ReductionDims:
    """Return the loop dims of a reduction over ``dims`` (None: all) of elements with ``strides``. ``others`` are the
    strides of more arrays in the loop.

    The reduced dims are sorted by stride, the smallest one last, unless ``ordered``: then they keep their C order.
    """
    reduced_dims = range(len(shape)) if dims is None else sorted(dims)
    kept_dims = [d for d in range(len(shape)) if d not in reduced_dims]
    # An expanded dim, whose stride is 0, becomes the outermost loop.
    order = reduced_dims if ordered else sorted(reduced_dims, key=lambda d: -strides[d] if strides[d] else -(2**63))
    rows = (strides, *others)
    return ReductionDims(*collapsed_dims(shape, rows, kept_dims), *collapsed_dims(shape, rows, order))


def check_not_empty(name: str, shape: Shape, dims: Shape | None) -> None:
    """Raise ``IndexError`` if a reduced dim (None: any dim) is empty: the reduction has no identity element."""
    if any(not size for d, size in enumerate(shape) if dims is None or d in dims):
        raise IndexError(f"{name}: expected at least one element along the reduced dims, got shape {shape}")


def max_offset(shape: Shape, strides: Shape) -> int:
    """Return the offset of the last element from the first."""
    return sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if size)
