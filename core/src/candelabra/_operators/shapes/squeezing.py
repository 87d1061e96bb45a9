"""Dims of size 1 inserted and dropped: ``unsqueeze``, ``squeeze``, ``atleast_2d``."""

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
    """A dim of size 1 inserted before ``dim``, over the same memory."""
    ...


unsqueeze.vjp(input=lambda g, dim: squeeze.canonical(g, (dim,)))
unsqueeze.scattered(lambda base, source, dim: squeeze(source, (dim,)))


def _squeezed_geometry(shape: Ints, strides: Ints, offset: int, dim: Ints) -> Geometry:
    kept = [i for i in range(len(shape)) if i not in dim]
    return tuple([shape[i] for i in kept]), tuple([strides[i] for i in kept]), offset


@operator(from_geometry, view=_squeezed_geometry, inplace=True)
def squeeze(input: Tensor, dim: UnitDims = None) -> Tensor:
    """Dims of size 1 dropped, over the same memory: all of them, or those named that have that size."""
    ...


squeeze.vjp(input=lambda g, input_spec: reshape(g, tuple(input_spec.shape)))
squeeze.scattered(lambda base, source, dim: reshape(source, tuple(base.shape)))


# -- at least so many dims --------------------------------------------------------------------------------------------
def shape_1d(shape: Ints) -> Ints:
    """A shape with at least one dim."""
    return shape or (1,)


def shape_2d(shape: Ints) -> Ints:
    """A shape with at least two dims, new ones in front."""
    return (*(1,) * (2 - len(shape)), *shape)


def shape_3d(shape: Ints) -> Ints:
    """A shape with at least three dims: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1)."""
    return shape if len(shape) > 2 else (*shape_2d(shape), 1)


def in_shape(t: Tensor, shape: Callable[[Ints], Ints]) -> Tensor:
    """The tensor in the shape that a function makes of its own; itself where that is the same."""
    have = tuple(t._payload.shape)
    wanted = shape(have)
    return t if wanted == have else reshape(t, wanted)


def _each_in_shape(
    tensors: tuple[Tensor | Sequence[Tensor], ...], shape: Callable[[Ints], Ints]
) -> Tensor | tuple[Tensor, ...]:
    found = tuple([in_shape(t, shape) for t in listed(tensors)])
    return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else found


@public(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least one dim; a tuple of them for several tensors."""
    return _each_in_shape(tensors, shape_1d)


@public(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least two dims, new ones in front; a tuple of them for several tensors."""
    return _each_in_shape(tensors, shape_2d)


@public(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least three dims: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1)."""
    return _each_in_shape(tensors, shape_3d)
