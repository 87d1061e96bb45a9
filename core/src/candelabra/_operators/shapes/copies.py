"""Copies of views: ``view_copy``, ``split_copy`` and others named ``…_copy``.

A copy never shares memory with its source. Its derivative is that of the view and of the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Ints
from candelabra._operators.conversion.copies import clone
from candelabra._operators.indexing.basic import basic_index
from candelabra._operators.shapes import diagonals, expanding, permuting, splitting, squeezing, strided, views, windows
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, to_complex, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import (
        Dim,
        DType,
        ExpandedShape,
        InferredShape,
        InsertedDim,
        Integer,
        Origin,
        Permutation,
        Shape,
        StorageOffset,
        Tensor,
        UnitDims,
    )  # fmt: skip


def shape_of_view(view: Operator[..., Any]) -> Callable[..., Any]:
    """Return the rule of a view's copy, which passes the view's arguments to the rule of the view."""
    count = len(view.schema.parameters)

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
        return view.rule(view, args[:count])

    return rule


# -- one tensor -------------------------------------------------------------------------------------------------------
@operator(like_input, method=False, out="disjoint")
def alias_copy(input: Tensor) -> Tensor:
    """Return a copy of ``input`` in new memory."""
    return clone.canonical(input)


@operator(like_input, method=False, out="disjoint")
def detach_copy(input: Tensor) -> Tensor:
    """Return a copy of the view that ``detach`` returns."""
    return clone.canonical(views.detach(input))


@operator(shape_of_view(views.view_shape), name="view_copy", method=False, public=False, out="disjoint")
def view_shape_copy(input: Tensor, size: InferredShape) -> Tensor:
    """Return a copy of the view that ``view`` returns."""
    return clone.canonical(views.view_shape(input, size))


@operator(shape_of_view(views.view_dtype), promote=unpromoted, method=False, public=False, out="disjoint")
def view_dtype_copy(input: Tensor, dtype: DType) -> Tensor:
    """Return a copy of the bytes of ``input``, as another dtype."""
    return clone.canonical(views.view_as_dtype(input, dtype))


view_copy = overloads("view_copy", view_shape_copy, view_dtype_copy, method=False)


@operator(shape_of_view(views.view_as_real), result=real_part, accepts="complex", method=False, out="disjoint")
def view_as_real_copy(input: Tensor) -> Tensor:
    """Return a copy of the view that ``view_as_real`` returns."""
    return clone.canonical(views.view_as_real(input))


@operator(
    shape_of_view(views.view_as_complex), result=to_complex, accepts="real floating", method=False, out="disjoint"
)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """Return a copy of the view that ``view_as_complex`` returns."""
    return clone.canonical(views.view_as_complex(input))


@operator(shape_of_view(permuting.permute), method=False, out="disjoint")
def permute_copy(input: Tensor, dims: Permutation) -> Tensor:
    """Return a copy of the view that ``permute`` returns."""
    return clone.canonical(permuting.permute(input, dims))


@operator(shape_of_view(permuting.transpose), method=False, out="disjoint")
def transpose_copy(input: Tensor, dim0: Dim, dim1: Dim) -> Tensor:
    """Return a copy of the view that ``transpose`` returns."""
    return clone.canonical(permuting.transpose(input, dim0, dim1))


@operator(shape_of_view(permuting.t), method=False, out="disjoint")
def t_copy(input: Tensor) -> Tensor:
    """Return a copy of the view that ``t`` returns."""
    return clone.canonical(permuting.t(input))


@operator(shape_of_view(expanding.expand), method=False, out="disjoint")
def expand_copy(input: Tensor, size: ExpandedShape, *, implicit: bool = False) -> Tensor:
    """Return a copy of the view that ``expand`` returns. ``implicit`` has no effect."""
    return clone.canonical(expanding.expand(input, size))


@operator(shape_of_view(squeezing.squeeze), method=False, out="disjoint")
def squeeze_copy(input: Tensor, dim: UnitDims = None) -> Tensor:
    """Return a copy of the view that ``squeeze`` returns."""
    return clone.canonical(squeezing.squeeze(input, dim))


@operator(shape_of_view(squeezing.unsqueeze), method=False, out="disjoint")
def unsqueeze_copy(input: Tensor, dim: InsertedDim) -> Tensor:
    """Return a copy of the view that ``unsqueeze`` returns."""
    return clone.canonical(squeezing.unsqueeze(input, dim))


@operator(shape_of_view(diagonals.diagonal), method=False, out="disjoint")
def diagonal_copy(input: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return a copy of the view that ``diagonal`` returns."""
    return clone.canonical(diagonals.diagonal(input, offset, dim1, dim2))


@operator(shape_of_view(windows.unfold), method=False, out="disjoint")
def unfold_copy(input: Tensor, dimension: Dim, size: int, step: int) -> Tensor:
    """Return a copy of the view that ``unfold`` returns."""
    return clone.canonical(windows.unfold(input, dimension, size, step))


@operator(shape_of_view(strided.as_strided), method=False, out="disjoint", uses="memory")
def as_strided_copy(
    input: Tensor, size: Shape, stride: Shape, storage_offset: StorageOffset = None, origin: Origin = None
) -> Tensor:
    """Return a copy of the view that ``as_strided`` returns."""
    return clone.canonical(strided.as_strided(input, size, stride, storage_offset))


# -- some slices ------------------------------------------------------------------------------------------------------
@operator(shape_of_view(splitting.select), method=False, out="disjoint")
def select_copy(input: Tensor, dim: Dim, index: Integer) -> Tensor:
    """Return a copy of the view that ``select`` returns."""
    return clone.canonical(splitting.select(input, dim, index))


@by
def _sliced(input: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Ints:
    shape = shape_of(input)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if not shape:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    return (*shape[:dim], len(range(*slice(start, end, step).indices(shape[dim]))), *shape[dim + 1 :])


@operator(_sliced, method=False, out="disjoint")
def slice_copy(input: Tensor, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Return a copy of ``input[start:end:step]`` along ``dim``."""
    _sliced(slice_copy, (input, dim, start, end, step))
    first, last, _ = slice(start, end, step).indices(input.shape[dim])
    return clone.canonical(basic_index(input, geometry.one_slice(input._payload.shape, dim, first, last, step)))


@operator(shape_of_view(splitting.narrow), out="disjoint")
def narrow_copy(input: Tensor, dim: Dim, start: Integer, length: Integer) -> Tensor:
    """Return a copy of the view that ``narrow`` returns."""
    return clone.canonical(splitting.narrow(input, dim, start, length))


# -- several tensors --------------------------------------------------------------------------------------------------
@public(method=False, out=True)
def split_copy(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return copies of the views that ``split`` returns; ``out=`` takes as many tensors."""
    return tuple([clone(part) for part in splitting.split(input, split_size, dim)])


@public(method=False, out=True)
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return copies of the views that ``split_with_sizes`` returns; ``out=`` takes as many tensors."""
    return tuple([clone(part) for part in splitting.split_with_sizes(input, split_sizes, dim)])


@public(method=False, out=True)
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return copies of the views that ``unbind`` returns; ``out=`` takes as many tensors."""
    return tuple([clone(part) for part in splitting.unbind(input, dim)])
