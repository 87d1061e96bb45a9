"""Views: other shapes over the same memory.

Each record gives its geometry (for strided memory), its derivative, and its scatter: the base with the part that the
view shows replaced, which is how a write to a view reaches a base that cannot be written in place.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.dtypes import int64
from candelabra.layout import infer_shape, view_strides
from candelabra.operator.promotion import real_part
from candelabra.operator.record import operator
from candelabra.operator.rules import by, like_input, shape_of
from candelabra.ops import placing

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


@operator(like_input, view=_swapped)
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
    return placing.indexed_shape(shape_of(input), index)


@operator(_indexed, view=placing.indexed_geometry, method=False, public=False)
def basic_index(input: Tensor, index: BasicIndex) -> Tensor:
    """``input[index]`` for ints, slices and None: one view, one node."""
    ...


def replaced(input: Tensor, src: Tensor, view: Any, *arguments: Any) -> Tensor:
    """``input`` with what ``view(input, *arguments)`` shows replaced by ``src``, where no array can be written to.

    The view of a tensor of positions says which elements those are.
    """
    from candelabra.dtypes import int64
    from candelabra.ops.creation import arange
    from candelabra.ops.indexing import index_put

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
    from candelabra.ops.creation import full

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


# -- other strided views ----------------------------------------------------------------------------------------------
@operator(by(placing.diagonal_shape), view=placing.diagonal_geometry, method=False, public=False)
def diagonal(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """The diagonal of dims ``dim1`` and ``dim2`` (canonical), ``offset`` above the main one, as the last dim."""
    ...


@operator(like_input, method=False, public=False)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """A copy of ``input`` with ``src`` on that diagonal."""
    if input._instance.immutable:
        return replaced(input, src, diagonal, offset, dim1, dim2)
    out = input.clone()
    diagonal(out, offset, dim1, dim2).copy_(src)
    return out


def _diagonal_back(g: Tensor, input_spec: Any, offset: int, dim1: int, dim2: int) -> Tensor:
    from candelabra.ops.creation import full

    zeros = full(input_spec.shape, 0, dtype=g.dtype, device=g.device)
    return diagonal_scatter(zeros, g, offset, dim1, dim2)


diagonal.vjp(input=_diagonal_back)
diagonal.scattered(diagonal_scatter)
diagonal_scatter.vjp(
    input=lambda g, src_spec, offset, dim1, dim2: diagonal_scatter(
        g, diagonal(g, offset, dim1, dim2) * 0, offset, dim1, dim2
    ),
    src=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
)


@operator(by(placing.unfold_shape), view=placing.unfold_geometry)
def unfold(input: Tensor, dimension: Dim, size: int, step: int) -> Tensor:
    """Windows of ``size`` along ``dimension``, ``step`` apart, as a new last dim."""
    ...


def overlapped(x: Tensor, shape: Ints, dim: int, step: int) -> Tensor:
    """Windows (the last dim of ``x``) that start ``step`` apart along ``dim``, added up: the adjoint of unfold."""
    # A window of k * step elements is k blocks. Block j of all windows is one row of blocks, moved by j blocks.
    from candelabra.ops.creation import full
    from candelabra.ops.joining import cat

    def zeros(like: Tensor, at: int, n: int) -> Tensor:
        size = tuple(n if d == at else s for d, s in enumerate(like.shape))
        return full(size, 0, dtype=like.dtype, device=like.device)

    x = permute(x, (*(d for d in range(len(x.shape) - 1) if d != dim), dim, len(x.shape) - 1))
    *lead, count, size = x.shape
    k = -(-size // step)
    last = len(x.shape) - 1
    if k * step != size:
        x = cat((x, zeros(x, last, k * step - size)), last)
    blocks = x.reshape((*lead, count, k, step))
    out: Any = None
    for j in range(k):
        part = blocks.select(last, j)
        parts = [zeros(part, last - 1, j), part, zeros(part, last - 1, k - 1 - j)]
        part = cat(tuple(p for p in parts if p.shape[last - 1]), last - 1) if k > 1 else part
        out = part if out is None else out + part
    out = out.reshape((*lead, (count + k - 1) * step))
    missing = shape[dim] - out.shape[-1]
    out = out.narrow(-1, 0, shape[dim]) if missing <= 0 else cat((out, zeros(out, last - 1, missing)), last - 1)
    order = [*range(last - 1)]
    order.insert(dim, last - 1)
    return permute(out, tuple(order))


def _unfold_back(g: Tensor, input_spec: Any, dimension: int, size: int, step: int) -> Tensor:
    if not input_spec.shape or 0 in g.shape:  # a 0-d tensor has one window at most
        return g.sum().expand(input_spec.shape)
    return overlapped(g, input_spec.shape, dimension, step)


unfold.vjp(input=_unfold_back)


def extent(shape: Ints, strides: Ints) -> int:
    """How far a layout reaches, in elements; 0 when it is empty."""
    return 0 if 0 in shape else 1 + sum((n - 1) * k for n, k in zip(shape, strides, strict=True))


def _restrided(shape: Ints, strides: Ints, start: int, size: Ints, stride: Ints, offset: int, origin: Any) -> Geometry:
    return size, stride, offset


Origin = tuple[Ints, int]
"""Strides and offset of the tensor that a view was made of."""


@operator(by(lambda input, size, *_: size), view=_restrided, method=False, public=False)
def as_strided(input: Tensor, size: Shape, stride: Ints, storage_offset: int, origin: Origin) -> Tensor:
    """A view of the storage, absolute; ``origin`` is the layout of ``input``, which its derivative needs."""
    ...


def _positions(shape: Ints, strides: Ints, offset: int, like: Tensor) -> Tensor:
    """Where in the storage the elements lie, as a 1-d int64 tensor in C order."""
    from candelabra.ops.creation import arange, full

    found = full((1,) * len(shape), offset, dtype=int64, device=like.device)
    for d, (n, k) in enumerate(zip(shape, strides, strict=True)):
        steps = arange(0, k, n, dtype=int64, device=like.device)
        found = found + steps.reshape([n if i == d else 1 for i in range(len(shape))])
    return found.reshape((_count(shape),))


def _count(shape: Ints) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _strided_back(g: Tensor, input_spec: Any, size: Ints, stride: Ints, storage_offset: int, origin: Origin) -> Tensor:
    # The storage's gradient, then the input's share of it. Elements that the input shows several times share evenly.
    from candelabra.ops.creation import full
    from candelabra.ops.indexing import index_add, index_select

    strides, offset = origin
    shape = tuple(input_spec.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    storage = full((reach,), 0, dtype=g.dtype, device=g.device)
    storage = index_add(storage, 0, _positions(size, stride, storage_offset, g), g.reshape((_count(size),)))
    mine = _positions(shape, strides, offset, g)
    out = index_select(storage, 0, mine)
    if any(k == 0 and n > 1 for n, k in zip(shape, strides, strict=True)):
        ones = full((_count(shape),), 1, dtype=g.dtype, device=g.device)
        out = out / index_select(index_add(full((reach,), 0, dtype=g.dtype, device=g.device), 0, mine, ones), 0, mine)
    return out.reshape(shape)


def _strided_scatter(
    base: Tensor, source: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Origin
) -> Tensor:
    from candelabra.ops.creation import full
    from candelabra.ops.indexing import index_put, index_select

    strides, offset = origin
    shape = tuple(base.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    mine = _positions(shape, strides, offset, base)
    storage = full((reach,), 0, dtype=base.dtype, device=base.device)
    storage = index_put(storage, (mine,), base.reshape((_count(shape),)))
    places = _positions(size, stride, storage_offset, base)
    storage = index_put(storage, (places,), source.reshape((_count(size),)))
    return index_select(storage, 0, mine).reshape(shape)


as_strided.vjp(input=_strided_back).scattered(_strided_scatter)


@operator(by(lambda input: (*shape_of(input), 2)), view=True, result=real_part, accepts="complex")
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs (real, imaginary) in a last dim of size 2, over the same memory."""
    ...


def _complex_of(d: Any) -> Any:
    return d.to_complex()


@operator(by(lambda input: shape_of(input)[:-1]), view=True, result=_complex_of, accepts="real floating")
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs in a last dim of size 2 as complex numbers, over the same memory."""
    ...


view_as_real.vjp(input=lambda g: view_as_complex(g.contiguous())).scattered(
    lambda base, source: view_as_complex(source.contiguous())
)
view_as_complex.vjp(input=lambda g: view_as_real(g)).scattered(lambda base, source: view_as_real(source))
