"""Broadcasting of one tensor or of several tensors: dims of size 1 are repeated without a copy."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._codegen.arguments import as_sizes
from candelabra._geometry import Geometry, Ints
from candelabra._layout import broadcast_shapes as common_shape
from candelabra._layout import expanded_shape
from candelabra._operators.shapes.reshaping import reshape
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, from_geometry, shape_of
from candelabra._size import Size

if TYPE_CHECKING:
    from candelabra.typing import ExpandedShape, Tensor


def _expanded_geometry(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    expanded_shape(shape, size)
    lead = len(size) - len(shape)
    steps = [0 if s == 1 and n != 1 else k for s, n, k in zip(shape, size[lead:], strides, strict=True)]
    return size, (*(0,) * lead, *steps), offset


@operator(from_geometry, view=_expanded_geometry, is_function=False)
def expand(input: Tensor, *size: ExpandedShape) -> Tensor:
    """Return a view with dims of size 1 repeated; -1 keeps a size. Leading dims may be added.

    Raises ``RuntimeError`` for different sizes of other dims.
    """
    ...


expand.vjp(input=lambda g: g)  # the engine sums over the broadcast dims


@operator(by(lambda input, size: expanded_shape(shape_of(input), size)), view=True)
def broadcast_to(input: Tensor, size: ExpandedShape) -> Tensor:
    """Return ``input.expand(size)``."""
    return expand(input, size)


@public(is_function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.expand(other.shape)``."""
    return expand(input, other.shape)


# -- several tensors --------------------------------------------------------------------------------------------------
@public(method=False)
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape to which all the shapes (or ints, shapes of one dim) broadcast.

    Raises ``RuntimeError`` with the first shape that does not broadcast, ``ValueError`` for negative sizes.
    """
    result: tuple[int, ...] = ()
    for position, shape in enumerate(shapes):
        sizes = as_sizes((shape,))
        if any(size < 0 for size in sizes):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        for d in range(1, min(len(sizes), len(result)) + 1):
            if sizes[-d] not in (1, result[-d]) and result[-d] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[-d]} at {-d}! Mismatching argument at "
                    f"index {position} had {sizes}; but expected shape should be broadcastable to {list(result)}"
                )
        result = common_shape(result, sizes)
    return Size(result)


def listed(tensors: tuple[Tensor | Sequence[Tensor], ...]) -> list[Tensor]:
    """Return the tensors of ``f(a, b)`` and of ``f([a, b])`` as a list."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)  # type: ignore[arg-type]


@public(method=False)
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of the tensors, expanded to their common shape."""
    sequence = listed(tensors)
    shape = common_shape(*[tuple(t.shape) for t in sequence])
    return tuple([expand(t, shape) for t in sequence])


@public(method=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return each of the vectors expanded over the grid of all: coordinates of the grid's points.

    ``indexing`` is "ij" (the default), or "xy" with the first two dims swapped.

    Raises ``RuntimeError`` for tensors of different dtypes, of more than one dim, and other values of ``indexing``.
    """
    vectors = listed(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if any(t.dtype is not vectors[0].dtype for t in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for t in vectors:
        if t.ndim > 1:
            raise RuntimeError(f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape {list(t.shape)}")
    swap = indexing == "xy" and len(vectors) > 1
    order = [vectors[1], vectors[0], *vectors[2:]] if swap else vectors
    shape = tuple(t.numel() for t in order)
    grids = []
    for d, t in enumerate(order):
        alone = tuple(t.numel() if i == d else 1 for i in range(len(shape)))
        grids.append(expand(reshape(t, alone), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
