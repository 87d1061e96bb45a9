"""Views that only strides can show: diagonals, windows, parts of the storage, complex numbers as pairs."""

from __future__ import annotations

from math import prod

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import extent
from candelabra._operators.primitives.views import Geometry, Ints, permute, replaced
from candelabra._records.promotion import real_part
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra.typing import Dim, Shape, Tensor


@operator(
    by(lambda input, *dims: geometry.diagonal_shape(shape_of(input), *dims)),
    view=geometry.diagonal_geometry,
    method=False,
    public=False,
)
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
    from candelabra._operators.primitives.creation import full

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


@operator(by(lambda input, *window: geometry.unfold_shape(shape_of(input), *window)), view=geometry.unfold_geometry)
def unfold(input: Tensor, dimension: Dim, size: int, step: int) -> Tensor:
    """Windows of ``size`` along ``dimension``, ``step`` apart, as a new last dim."""
    ...


def overlapped(x: Tensor, shape: Ints, dim: int, step: int) -> Tensor:
    """Windows (the last dim of ``x``) that start ``step`` apart along ``dim``, added up: the adjoint of unfold."""
    # A window of k * step elements is k blocks. Block j of all windows is one row of blocks, moved by j blocks.
    from candelabra._operators.primitives.creation import full
    from candelabra._operators.primitives.joining import cat

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
    from candelabra._operators.primitives.creation import arange, full

    found = full((1,) * len(shape), offset, dtype=int64, device=like.device)
    for d, (n, k) in enumerate(zip(shape, strides, strict=True)):
        steps = arange(0, k, n, dtype=int64, device=like.device)
        found = found + steps.reshape([n if i == d else 1 for i in range(len(shape))])
    return found.reshape((prod(shape),))


def _strided_back(g: Tensor, input_spec: Any, size: Ints, stride: Ints, storage_offset: int, origin: Origin) -> Tensor:
    # The storage's gradient, then the input's share of it. Elements that the input shows several times share evenly.
    from candelabra._operators.primitives.creation import full
    from candelabra._operators.primitives.indexing import index_add, index_select

    strides, offset = origin
    shape = tuple(input_spec.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    storage = full((reach,), 0, dtype=g.dtype, device=g.device)
    storage = index_add(storage, 0, _positions(size, stride, storage_offset, g), g.reshape((prod(size),)))
    mine = _positions(shape, strides, offset, g)
    out = index_select(storage, 0, mine)
    if any(k == 0 and n > 1 for n, k in zip(shape, strides, strict=True)):
        ones = full((prod(shape),), 1, dtype=g.dtype, device=g.device)
        out = out / index_select(index_add(full((reach,), 0, dtype=g.dtype, device=g.device), 0, mine, ones), 0, mine)
    return out.reshape(shape)


def strided_scatter(
    base: Tensor, source: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Origin
) -> Tensor:
    """``base`` with what :func:`as_strided` shows of its storage replaced by ``source``."""
    from candelabra._operators.primitives.creation import full
    from candelabra._operators.primitives.indexing import index_put, index_select

    strides, offset = origin
    shape = tuple(base.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    mine = _positions(shape, strides, offset, base)
    storage = full((reach,), 0, dtype=base.dtype, device=base.device)
    storage = index_put(storage, (mine,), base.reshape((prod(shape),)))
    places = _positions(size, stride, storage_offset, base)
    storage = index_put(storage, (places,), source.reshape((prod(size),)))
    return index_select(storage, 0, mine).reshape(shape)


as_strided.vjp(input=_strided_back).scattered(strided_scatter)


@operator(by(lambda input: (*shape_of(input), 2)), view=True, result=real_part, accepts="complex")
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs (real, imaginary) in a last dim of size 2, over the same memory."""
    ...


def _complex_of(d: Any) -> Any:
    return d.to_complex()


@by
def _paired(input: Tensor) -> Ints:
    shape = shape_of(input)
    if input.dtype.itemsize < 4:
        raise RuntimeError(f"view_as_complex is only supported for float and double tensors, but got {input.dtype}")
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input._layout()[0][-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    return shape[:-1]


@operator(_paired, view=True, result=_complex_of, accepts="real floating")
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs in a last dim of size 2 as complex numbers, over the same memory."""
    ...


view_as_real.vjp(input=lambda g: view_as_complex(g.contiguous())).scattered(
    lambda base, source: view_as_complex(source.contiguous())
)
view_as_complex.vjp(input=lambda g: view_as_real(g)).scattered(lambda base, source: view_as_real(source))
