"""A copy of a tensor in which a view is replaced: ``select_scatter``, ``slice_scatter``, ``as_strided_scatter``."""

from __future__ import annotations

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Ints
from candelabra._operators.indexing.basic import basic_index_scatter
from candelabra._operators.shapes.strided import as_strided, strided_scatter
from candelabra._records.promotion import by_arguments, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Integer, Origin, Shape, StorageOffset, Tensor


def _check_part(src: Tensor, part: Ints) -> None:
    """Raise RuntimeError unless ``src`` has the shape of the part that it replaces."""
    if shape_of(src) != part:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(shape_of(src))}, slice size = {list(part)}"
        )


def _replaced(input: Tensor, src: Tensor, index: tuple[Any, ...]) -> Tensor:
    _check_part(src, geometry.indexed_shape(shape_of(input), index))
    return basic_index_scatter(input, src.to(input.dtype), index)


def _selected(shape: Ints, dim: int, index: int) -> tuple[Any, ...]:
    """Return the basic index of slice number ``index`` along ``dim``."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    size = shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    return (*[slice(0, s, 1) for s in shape[:dim]], index % size)


@by
def _select_replaced(input: Tensor, src: Tensor, dim: int, index: int) -> Ints:
    shape = shape_of(input)
    _check_part(src, geometry.indexed_shape(shape, _selected(shape, dim, index)))
    return shape


@operator(_select_replaced, promote=unpromoted, result=by_arguments, out="exact")
def select_scatter(input: Tensor, src: Tensor, dim: Dim, index: Integer) -> Tensor:
    """Return a copy of ``input`` with ``src``, cast to its dtype, replacing slice number ``index`` along ``dim``."""
    return _replaced(input, src, _selected(tuple(input.shape), dim, index))


def _sliced(shape: Ints, dim: int, start: int | None, end: int | None, step: int) -> tuple[Any, ...]:
    """Return the basic index of ``start:end:step`` along ``dim``."""
    if not shape:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return geometry.one_slice(shape, dim, *slice(start, end, step).indices(shape[dim]))


@by
def _slice_replaced(input: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Ints:
    shape = shape_of(input)
    _check_part(src, geometry.indexed_shape(shape, _sliced(shape, dim, start, end, step)))
    return shape


@operator(_slice_replaced, promote=unpromoted, result=by_arguments, out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy of ``input`` with ``src``, cast to its dtype, replacing ``input[start:end:step]`` along ``dim``."""
    return _replaced(input, src, _sliced(tuple(input.shape), dim, start, end, step))


@by
def _strided_replaced(input: Tensor, src: Tensor, *layout: Any) -> Ints:
    _check_part(src, as_strided.rule(as_strided, (input, *layout)))
    return shape_of(input)


@operator(_strided_replaced, promote=unpromoted, result=by_arguments, out=False, uses="memory")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Shape, stride: Shape, storage_offset: StorageOffset = None, origin: Origin = None
) -> Tensor:
    """Return a copy of ``input`` with ``src``, cast to its dtype, replacing the elements that :func:`as_strided`
    selects.
    """
    layout: Any = (size, stride, storage_offset, origin)
    _strided_replaced(as_strided_scatter, (input, src, *layout))
    return strided_scatter(input, src.to(input.dtype), *layout)
