"""Products of vectors along one dim: cross products and inner products."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import broadcast_shapes, reduced_shape, wrap_dim
from candelabra._operators.shapes.joining import cat
from candelabra._records.autocasting import Autocast
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


# -- the cross product ------------------------------------------------------------------------------------------------
@by
def _cross_shape(input: Tensor, other: Tensor, dim: int) -> Ints:
    a, b = shape_of(input), shape_of(other)
    if len(a) != len(b):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, len(a))
    if not a or a[axis] != 3 or b[axis] != 3:
        sizes = f"{a[axis]} and {b[axis]}" if a else "no dimensions"
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes}")
    return broadcast_shapes(a, b)


@operator(_cross_shape, accepts="numeric", public=False)
def cross_product(input: Tensor, other: Tensor, dim: int) -> Tensor:
    """Return the cross product of vectors of three elements along ``dim``; the other dims broadcast."""
    _cross_shape(cross_product, (input, other, dim))
    a, b = input.unbind(dim), other.unbind(dim)
    pairs = ((1, 2), (2, 0), (0, 1))
    return cat(tuple((a[i] * b[j] - a[j] * b[i]).unsqueeze(dim) for i, j in pairs), dim)


cross_product.vjp(
    input=lambda g, other, dim: cross_product(other.conj().expand(g.shape), g, dim),
    other=lambda g, input, dim: cross_product(g, input.conj().expand(g.shape), dim),
)


@operator(_cross_shape, accepts="numeric", namespace="linalg")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross products of vectors along ``dim``, which has size 3; the other dims broadcast."""
    _cross_shape(linalg_cross, (input, other, dim))
    return cross_product(input, other, wrap_dim(dim, input.ndim))


def _vector_dim(shape: Ints, dim: int | None) -> int:
    """Return ``dim``, or the first dim of size 3 if it is None."""
    if dim is None and 3 not in shape:
        raise RuntimeError("no dimension of size 3 in input")
    return wrap_dim(shape.index(3) if dim is None else dim, len(shape))


@operator(
    by(lambda input, other, dim: _cross_shape(None, (input, other, _vector_dim(shape_of(input), dim)))),
    accepts="numeric",
    autocast=Autocast("widest"),
)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product of vectors of three elements along ``dim``; the other dims broadcast.

    ``dim`` defaults to the first dim of size 3. Raises ``RuntimeError`` if that dim does not have size 3.
    """
    return cross_product(input, other, _vector_dim(shape_of(input), dim))


# -- the inner product ------------------------------------------------------------------------------------------------
@by
def _vecdot_shape(x: Tensor, y: Tensor, dim: int) -> Ints:
    shape = broadcast_shapes(shape_of(x), shape_of(y))
    return reduced_shape(shape, (wrap_dim(dim, len(shape)),), False)


@operator(_vecdot_shape, namespace="linalg", autocast="lower")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """``sum(conj(x) * y)`` along ``dim``; the tensors broadcast."""
    return (x.conj() * y).sum(dim, dtype=x.dtype)
