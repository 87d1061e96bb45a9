"""Tensors raised to a rank, put side by side, and spread over grids: compositions of views and of ``cat``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any
from candelabra._operators.families.arranging import given
from candelabra._operators.fronts.shaping import reshape
from candelabra._operators.primitives.joining import cat
from candelabra._records.callables import public
from candelabra._tensor import Tensor

Tensors = tuple[Tensor, ...]


# -- raising ----------------------------------------------------------------------------------------------------------
def _vector(t: Tensor) -> Tensor:
    return t if t.ndim else reshape(t, 1)


def _matrix(t: Tensor) -> Tensor:
    return t if t.ndim > 1 else reshape(t, (1,) * (2 - t.ndim) + tuple(t.shape))


def _column(t: Tensor) -> Tensor:
    return t if t.ndim > 1 else reshape(t, (t.numel(), 1))


def _solid(t: Tensor) -> Tensor:
    return t if t.ndim > 2 else reshape(t, (*_matrix(t).shape, 1))


def _one_or_each(tensors: tuple[Any, ...], raised: Callable[[Tensor], Tensor]) -> Any:
    found = tuple(raised(t) for t in given(tensors))
    return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else found


@public(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Views with at least one dim; a tuple of them for several tensors."""
    return _one_or_each(tensors, _vector)


@public(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Views with at least two dims, new ones in front; a tuple of them for several tensors."""
    return _one_or_each(tensors, _matrix)


@public(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Views with at least three dims: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1)."""
    return _one_or_each(tensors, _solid)


# -- putting together -------------------------------------------------------------------------------------------------
def _all(tensors: Any, raised: Callable[..., Any], name: str) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return [raised(t) for t in tensors]


@public(method=False, out=True)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side: along the second dim, vectors along their only one."""
    parts = _all(tensors, _vector, "hstack")
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


@public(method=False, out=True)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One above the other: along the first dim, vectors as rows."""
    return cat(_all(tensors, _matrix, "vstack"), 0)


@public(method=False, out=True)
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """:func:`vstack` under another name."""
    return vstack(tensors)


@public(method=False, out=True)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """One behind the other: along the third dim."""
    return cat(_all(tensors, _solid, "dstack"), 2)


@public(method=False, out=True)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side, vectors and numbers as columns."""
    return hstack(_all(tensors, _column, "column_stack"))


@public(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> Tensors:
    """Coordinates: each of the vectors expanded over the grid of all.

    ``indexing`` is "ij" (the default), or "xy" with the first two dims swapped.

    Raises ``RuntimeError`` for tensors of several dtypes, of more than one dim, and other values of ``indexing``.
    """
    vectors = given(tensors)
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
        grids.append(reshape(t, alone).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
