"""Operators that insert and remove dims of size 1: ``unsqueeze``, ``squeeze``, ``atleast_2d``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Geometry, Ints
from candelabra._operators.shapes.expanding import listed
from candelabra._operators.shapes.reshaping import reshape
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import from_geometry
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra.typing import InsertedDim, UnitDims


def _unsqueezed_geometry(shape: Ints, strides: Ints, offset: int, dim: int) -> Geometry:
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


@operator(from_geometry, view=_unsqueezed_geometry, inplace=True)
def unsqueeze(input: Tensor, dim: InsertedDim) -> Tensor:
    """Return a view with a dim of size 1 inserted before ``dim``."""
    ...


unsqueeze.vjp(input=lambda g, dim: squeeze.canonical(g, (dim,)))
unsqueeze.scattered(lambda base, source, dim: squeeze(source, (dim,)))


def _squeezed_geometry(shape: Ints, strides: Ints, offset: int, dim: Ints) -> Geometry:
    remaining = [i for i in range(len(shape)) if i not in dim]
    return tuple([shape[i] for i in remaining]), tuple([strides[i] for i in remaining]), offset


@operator(from_geometry, view=_squeezed_geometry, inplace=True)
def squeeze(input: Tensor, dim: UnitDims = None) -> Tensor:
    """Return a view without dims of size 1: all of them, or those in ``dim``."""
    ...


squeeze.vjp(input=lambda g, input_spec: reshape(g, tuple(input_spec.shape)))
squeeze.scattered(lambda base, source, dim: reshape(source, tuple(base.shape)))


# -- a minimum number of dims -----------------------------------------------------------------------------------------
def shape_1d(shape: Ints) -> Ints:
    """Return a shape with at least one dim."""
    return shape or (1,)


def shape_2d(shape: Ints) -> Ints:
    """Return a shape with at least two dims, the new ones leading."""
    return (*(1,) * (2 - len(shape)), *shape)


def shape_3d(shape: Ints) -> Ints:
    """Return a shape with at least three dims: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1)."""
    return shape if len(shape) > 2 else (*shape_2d(shape), 1)


def in_shape(t: Tensor, shape: Callable[[Ints], Ints]) -> Tensor:
    """Return the tensor in the shape that a function computes from its shape, or the tensor itself if that is equal."""
    current = tuple(t._payload.shape)
    target = shape(current)
    return t if target == current else reshape(t, target)


def _each_in_shape(
    tensors: tuple[Tensor | Sequence[Tensor], ...], shape: Callable[[Ints], Ints]
) -> Tensor | tuple[Tensor, ...]:
    results = tuple([in_shape(t, shape) for t in listed(tensors)])
    return results[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else results


@public(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least one dim; a tuple of them for several tensors."""
    return _each_in_shape(tensors, shape_1d)


@public(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least two dims, the new ones leading; a tuple of them for several tensors."""
    return _each_in_shape(tensors, shape_2d)


@public(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return views with at least three dims: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1)."""
    return _each_in_shape(tensors, shape_3d)
