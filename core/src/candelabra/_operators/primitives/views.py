"""Views: other shapes over the same memory.

Each record gives its geometry (for strided memory), its derivative, and its scatter: the base with the part that the
view shows replaced, which is how a write to a view reaches a base that cannot be written in place.
"""

from __future__ import annotations

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import infer_shape, view_strides
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Shape, Tensor

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
Ints = tuple[int, ...]


def _same(shape: Ints, strides: Ints, offset: int) -> Geometry:
    return shape, strides, offset


@operator(like_input, view=_same, method=False)
def detach(input: Tensor) -> Tensor:
    """The same memory and version counter, without a gradient."""
    ...


detach.no_gradient("that is its purpose").scattered(lambda base, source: source)


@operator(like_input, view=_same, method=False, public=False)
def alias(input: Tensor) -> Tensor:
    """The same memory as a new tensor of the graph: what ``x.view_as(x)`` gives."""
    ...


alias.vjp(input=lambda g: g).scattered(lambda base, source: source)


def _permuted(shape: Ints, strides: Ints, offset: int, dims: Ints) -> Geometry:
    return tuple([shape[d] for d in dims]), tuple([strides[d] for d in dims]), offset


def inverse(dims: Ints) -> Ints:
    """The permutation that undoes another."""
    back = [0] * len(dims)
    for position, d in enumerate(dims):
        back[d] = position
    return tuple(back)


@by
def _permutation(input: Tensor, dims: Ints) -> Ints:
    shape = shape_of(input)
    return tuple(shape[d] for d in dims)


@operator(_permutation, view=_permuted, method=False, public=False)
def permute(input: Tensor, dims: Ints) -> Tensor:
    """The dims in another order; ``dims`` is canonical, every dim once."""
    ...


permute.vjp(input=lambda g, dims: permute(g, inverse(dims)))
permute.scattered(lambda base, source, dims: permute(source, inverse(dims)))


def _swapped(shape: Ints, strides: Ints, offset: int, dim0: int, dim1: int) -> Geometry:
    order = list(range(len(shape)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permuted(shape, strides, offset, tuple(order))


@operator(by(lambda x, a, b: _swapped(shape_of(x), shape_of(x), 0, a, b)[0]), view=_swapped)
def transpose(input: Tensor, dim0: Dim, dim1: Dim) -> Tensor:
    """Two dims swapped."""
    ...


transpose.vjp(input=lambda g, dim0, dim1: transpose(g, dim0, dim1))
transpose.scattered(lambda base, source, dim0, dim1: transpose(source, dim0, dim1))


def _turned(shape: Ints, strides: Ints, offset: int) -> Geometry:
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return shape[::-1], strides[::-1], offset


@operator(by(lambda input: _turned(shape_of(input), (), 0)[0]), view=_turned)
def t(input: Tensor) -> Tensor:
    """The transposed matrix; tensors of fewer dims as they are."""
    ...


t.vjp(input=lambda g: t(g)).scattered(lambda base, source: t(source))


def _expanded(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    expanded_shape(shape, size)
    lead = len(size) - len(shape)
    return (
        size,
        (0,) * lead + tuple(0 if s == 1 and n != 1 else k for s, n, k in zip(shape, size[lead:], strides, strict=True)),
        offset,
    )


def expanded_shape(shape: Ints, size: Ints) -> Ints:
    """``size``, if ``shape`` expands to it; RuntimeError otherwise."""
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    for i, (have, want) in enumerate(zip(shape, size[lead:], strict=True)):
        if have not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i + lead}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return size


@by
def _expansion(input: Tensor, size: Ints) -> Ints:
    return expanded_shape(shape_of(input), size)


@operator(_expansion, view=_expanded, method=False, public=False)
def expand(input: Tensor, size: Shape) -> Tensor:
    """Sizes of 1 repeated without a copy; ``size`` is canonical, without -1."""
    ...


expand.vjp(input=lambda g: g)  # the engine sums what was broadcast


def _viewed(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    found = view_strides(shape, strides, size)
    if found is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return size, found, offset


@by
def _view_rule(input: Tensor, size: Ints) -> Ints:
    size = infer_shape(size, input.numel())
    strides, offset = input._layout()
    return _viewed(shape_of(input), strides, offset, size)[0]


@operator(_view_rule, view=_viewed, method=False, public=False)
def view(input: Tensor, size: Shape) -> Tensor:
    """Another shape over the same elements; ``size`` is canonical, without -1."""
    ...


view.vjp(input=lambda g, input_spec: g.reshape(input_spec.shape))
view.scattered(lambda base, source, size: source.reshape(base.shape))


@by
def _unsqueezed(input: Tensor, dim: int) -> Ints:
    shape = shape_of(input)
    return (*shape[:dim], 1, *shape[dim:])


def _with_one(shape: Ints, strides: Ints, offset: int, dim: int) -> Geometry:
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


@operator(_unsqueezed, view=_with_one, method=False, public=False)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A dim of size 1 put in before ``dim``, which is canonical."""
    ...


unsqueeze.vjp(input=lambda g, dim: squeeze(g, (dim,)))
unsqueeze.scattered(lambda base, source, dim: squeeze(source, (dim,)))


def _without(shape: Ints, strides: Ints, offset: int, dims: Ints) -> Geometry:
    kept = [i for i in range(len(shape)) if i not in dims]
    return tuple(shape[i] for i in kept), tuple(strides[i] for i in kept), offset


@by
def _squeezed(input: Tensor, dims: Ints) -> Ints:
    return tuple(s for i, s in enumerate(shape_of(input)) if i not in dims)


@operator(_squeezed, view=_without, method=False, public=False)
def squeeze(input: Tensor, dims: Ints) -> Tensor:
    """The dims ``dims`` dropped, all of size 1."""
    ...


squeeze.vjp(input=lambda g, input_spec: view(g, input_spec.shape) if g.is_contiguous() else g.reshape(input_spec.shape))
squeeze.scattered(lambda base, source, dims: source.reshape(base.shape))


# -- basic indexing ---------------------------------------------------------------------------------------------------
BasicIndex = tuple[Any, ...]
"""Canonical: per dim of the input a non-negative int or a slice with non-negative start, stop and a positive step; dims
that are left out at the end are taken whole. None puts in a dim of size 1."""


@by
def _indexed(input: Tensor, index: BasicIndex) -> Ints:
    return geometry.indexed_shape(shape_of(input), index)


@operator(_indexed, view=geometry.indexed_geometry, method=False, public=False)
def basic_index(input: Tensor, index: BasicIndex) -> Tensor:
    """``input[index]`` for ints, slices and None: one view, one node."""
    ...


def replaced(input: Tensor, src: Tensor, view: Any, *arguments: Any) -> Tensor:
    """``input`` with what ``view(input, *arguments)`` shows replaced by ``src``, where no array can be written to.

    The view of a tensor of positions says which elements those are.
    """
    from candelabra._operators.primitives.creation import arange
    from candelabra._operators.primitives.indexing import index_put
    from candelabra.dtypes import int64

    positions = arange(0, 1, input.numel(), dtype=int64, device=input.device).reshape(input.shape)
    places = view(positions, *arguments)
    flat: Tensor = index_put(input.reshape(-1), (places.reshape(-1),), src.expand(places.shape).reshape(-1))
    return flat.reshape(input.shape)


@by
def _given(input: Tensor, shape: Ints, *_: Any) -> Ints:
    return shape


@operator(_given, method=False, public=False)
def basic_index_adjoint(input: Tensor, shape: Shape, index: BasicIndex) -> Tensor:
    """Zeros of ``shape`` with ``input`` put at ``[index]``."""
    from candelabra._operators.primitives.creation import full

    out = full(shape, 0, dtype=input.dtype, device=input.device)
    if out._instance.immutable:
        return replaced(out, input, basic_index, index)
    basic_index(out, index).copy_(input)
    return out


@operator(like_input, method=False, public=False)
def basic_index_scatter(input: Tensor, src: Tensor, index: BasicIndex) -> Tensor:
    """A copy of ``input`` with ``src`` put at ``[index]``."""
    if input._instance.immutable:
        return replaced(input, src, basic_index, index)
    out = input.clone()
    basic_index(out, index).copy_(src)
    return out


basic_index.vjp(input=lambda g, input_spec, index: basic_index_adjoint(g, input_spec.shape, index))
basic_index.scattered(basic_index_scatter)
basic_index_adjoint.vjp(input=lambda g, index: basic_index(g, index))
basic_index_scatter.vjp(
    input=lambda g, src_spec, index: basic_index_scatter(g, basic_index(g, index) * 0, index),
    src=lambda g, index: basic_index(g, index),
)
