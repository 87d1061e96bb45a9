"""Permutations of dims: ``permute``, ``transpose``, ``movedim``, and the transposes that are properties."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Geometry, Ints
from candelabra._keys import active, state
from candelabra._operators.elementwise.complex import conj
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, from_geometry, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, DistinctDims, Permutation, Tensor


def inverse_permutation(dims: Sequence[int]) -> Ints:
    """Return the inverse of a permutation."""
    back = [0] * len(dims)
    for position, d in enumerate(dims):
        back[d] = position
    return tuple(back)


def _permuted_geometry(shape: Ints, strides: Ints, offset: int, dims: Ints) -> Geometry:
    return tuple([shape[d] for d in dims]), tuple([strides[d] for d in dims]), offset


@operator(from_geometry, view=_permuted_geometry)
def permute(input: Tensor, *dims: Permutation) -> Tensor:
    """Return a view with the dims permuted.

    Raises ``RuntimeError`` unless each dim occurs exactly once.
    """
    ...


permute.vjp(input=lambda g, dims: permute.canonical(g, inverse_permutation(dims)))
permute.scattered(lambda base, source, dims: permute(source, inverse_permutation(dims)))


# -- two dims ---------------------------------------------------------------------------------------------------------
def _transposed_geometry(shape: Ints, strides: Ints, offset: int, dim0: int, dim1: int) -> Geometry:
    order = list(range(len(shape)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permuted_geometry(shape, strides, offset, tuple(order))


@operator(from_geometry, view=_transposed_geometry, inplace=True, aliases=("swapdims",))
def transpose(input: Tensor, dim0: Dim, dim1: Dim) -> Tensor:
    """Return a view with two dims swapped."""
    ...


transpose.vjp(input=lambda g, dim0, dim1: transpose.canonical(g, dim0, dim1))
transpose.scattered(lambda base, source, dim0, dim1: transpose(source, dim0, dim1))


@by
def _swapped(input: Tensor, axis0: int, axis1: int) -> Ints:
    shape = shape_of(input)
    return _transposed_geometry(shape, shape, 0, axis0, axis1)[0]


@operator(_swapped, view=True, inplace=True)
def swapaxes(input: Tensor, axis0: Dim, axis1: Dim) -> Tensor:
    """Return :func:`transpose`; the name and the parameters are NumPy's."""
    return transpose.canonical(input, axis0, axis1)


# -- matrices ---------------------------------------------------------------------------------------------------------
def _t_geometry(shape: Ints, strides: Ints, offset: int) -> Geometry:
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return shape[::-1], strides[::-1], offset


@operator(from_geometry, view=_t_geometry, inplace=True)
def t(input: Tensor) -> Tensor:
    """Return a view of the transposed matrix; tensors of fewer dims are returned unchanged."""
    ...


t.vjp(input=lambda g: t.canonical(g)).scattered(lambda base, source: t(source))


@operator(by(lambda input: shape_of(input)[::-1]), view=True, is_function=False, is_property=True)
def T(input: Tensor) -> Tensor:
    """A view with all dims in reverse order."""
    rank = len(input._payload.shape)
    if rank > 2:
        return permute.canonical(input, tuple(range(rank))[::-1])
    out: Tensor = t.table[input._keys | state.bits if active else input._keys](input)
    return out


@by
def _matrices(input: Tensor) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices.")
    return (*shape[:-2], shape[-1], shape[-2])


@operator(_matrices, view=True, is_function=False, is_property=True)
def mT(input: Tensor) -> Tensor:
    """A view with the last two dims swapped."""
    rank = len(input._payload.shape)
    if rank < 2:
        _matrices(mT, (input,))  # raises the error
    return transpose.canonical(input, rank - 2, rank - 1)


@public(is_function=False, is_property=True)
def mH(input: Tensor) -> Tensor:
    """The conjugate transpose over the last two dims."""
    return conj(mT(input))


@public
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose over the last two dims."""
    return conj(mT(input))


@public(is_function=False, is_property=True)
def H(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix; a 0-d tensor is conjugated."""
    if input.ndim not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if input.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.{hint}")
    return conj(t(input))


# -- moved dims -------------------------------------------------------------------------------------------------------
def _moved(rank: int, source: Ints, destination: Ints) -> Ints:
    """Return the permutation that moves the dims ``source`` to the positions ``destination`` and keeps the order of the
    others.
    """
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    order = [d for d in range(rank) if d not in source]
    for target, origin in sorted(zip(destination, source, strict=True)):
        order.insert(target, origin)
    return tuple(order)


@by
def _moved_shape(input: Tensor, source: Ints, destination: Ints) -> Ints:
    shape = shape_of(input)
    return tuple([shape[d] for d in _moved(len(shape), source, destination)])


@operator(_moved_shape, view=True, aliases=("moveaxis",))
def movedim(input: Tensor, source: DistinctDims, destination: DistinctDims) -> Tensor:
    """Return a view with the dims ``source`` moved to the positions ``destination``; the other dims keep their order.

    Raises ``RuntimeError`` if a dim occurs twice and if the numbers of dims differ.
    """
    return permute.canonical(input, _moved(len(input._payload.shape), source, destination))  # type: ignore[arg-type]
