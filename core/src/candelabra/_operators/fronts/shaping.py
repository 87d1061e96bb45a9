"""Shapes: reshape, view, expand, permute and their kin. All but a copying ``reshape`` are views."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_shape, as_size, wrap_dim
from candelabra._keys import VIEW
from candelabra._layout import (
    contiguous_format,
    contiguous_strides,
    infer_shape,
    is_contiguous_layout,
    physical_order,
    preserve_format,
    view_strides,
)
from candelabra._operators.primitives import joining, strided, views
from candelabra._operators.primitives.creation import clone
from candelabra._records.callables import public
from candelabra._records.record import OPERATORS
from candelabra.dtypes import INTEGER
from candelabra.dtypes import dtype as dtype_type

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` alike, as a tuple of ints."""
    for size in shape:
        if type(size) is not int:
            break
    else:
        return shape
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    return tuple([as_size(s) for s in shape])


@public
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view where possible, else a copy. One size may be -1."""
    wanted = _without_minus(sizes(shape), input)
    if not input._keys & VIEW:  # nearly always in C order
        try:
            out: Tensor = views.view.function(input, wanted)
            return out
        except RuntimeError:
            infer_shape(wanted, input.numel())  # raises where the count was what is wrong
    if view_strides(input._payload.shape, input._layout()[0], wanted) is None:
        input = clone(input)
    return views.view.function(input, wanted)


def _without_minus(wanted: tuple[int, ...], input: Tensor) -> tuple[int, ...]:
    """The shape with -1 replaced; whether it fits the elements is for who makes the view."""
    for size in wanted:
        if size < 0:
            return infer_shape(wanted, input.numel())
    return wanted


@public(is_function=False)
def view(input: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """The same elements in another shape, over the same memory; RuntimeError where that takes a copy.

    With a dtype, ``x.view(candelabra.int32)``, those bytes as another dtype: the last dim changes with its width.
    """
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], dtype_type)):
        kind = dtype or shape[0]
        return views.alias(input) if kind is input.dtype else OPERATORS["view_dtype"](input, dtype=kind)
    out: Tensor = views.view.function(input, _without_minus(sizes(shape if size is None else (size,)), input))
    return out


@public(is_function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.view(other.shape)``."""
    return view(input, other.shape)


@public(is_function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.reshape(other.shape)``."""
    return reshape(input, other.shape)


@public(is_function=False)
def expand(input: Tensor, *size: Any) -> Tensor:
    """Sizes of 1 repeated without a copy; -1 keeps a size."""
    wanted = sizes(size)
    for s in wanted:
        if s < 0:
            break
    else:
        out: Tensor = views.expand.function(input, wanted)
        return out
    have = tuple(input._payload.shape)
    lead = len(wanted) - len(have)
    kept = tuple(have[i - lead] if s == -1 and i >= lead >= 0 else s for i, s in enumerate(wanted))
    if any(s < 0 for s in kept):
        raise RuntimeError(
            f"The expanded size of the tensor ({list(wanted)}) isn't allowed in a leading, non-existing dimension"
        )
    return views.expand.function(input, kept)


@public(is_function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.shape)``."""
    return expand(input, other.shape)


@public
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """``input.expand(size)``."""
    return expand(input, size)


@public
def permute(input: Tensor, *dims: Any) -> Tensor:
    """The dims in another order."""
    rank = len(input._payload.shape)
    given = sizes(dims)
    order = tuple([wrap_dim(d, rank) for d in given])
    if len(order) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(order)}"
        )
    if len(set(order)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return views.permute.function(input, order)


@public
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dims moved to other places, the rest in order."""
    rank = len(input._payload.shape)
    sources = [wrap_dim(d, rank) for d in (source if isinstance(source, (tuple, list)) else (source,))]
    targets = [wrap_dim(d, rank) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({sources} dims) should contain the same number of "
            f"dims as destination ({targets} dims)"
        )
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise RuntimeError(f"movedim: repeated dim in source ({sources}) or destination ({targets})")
    order = [d for d in range(rank) if d not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return views.permute(input, tuple(order))


@public(is_function=False, is_property=True)
def T(input: Tensor) -> Tensor:
    """All dims in reverse order."""
    rank = len(input._payload.shape)
    if rank <= 2:
        return views.t.function(input)
    return views.permute.function(input, tuple(range(rank))[::-1])


@public(is_function=False, is_property=True)
def mT(input: Tensor) -> Tensor:
    """The last two dims swapped."""
    if len(input._payload.shape) < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices.")
    return views.transpose.function(input, -2, -1)


@public(is_function=False, is_property=True)
def mH(input: Tensor) -> Tensor:
    """The last two dims swapped, conjugated."""
    return conj(mT(input))


@public
def adjoint(input: Tensor) -> Tensor:
    """The last two dims swapped, conjugated."""
    return mH(input)


@public
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    if not input.is_complex():
        return input
    from candelabra._operators.primitives.pointwise import conj_physical

    return conj_physical(input)


@public(is_property=True)
def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor as it is."""
    return select(strided.view_as_real(input), -1, 0) if input.is_complex() else input


@public(is_property=True)
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select(strided.view_as_real(input), -1, 1)


@public
def unsqueeze(input: Tensor, dim: Any = None, *, axis: int | None = None) -> Tensor:
    """A dim of size 1 put in before ``dim``."""
    dim = dim if axis is None else axis
    return views.unsqueeze.function(input, wrap_dim(dim, len(input._payload.shape) + 1))


@public
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Dims of size 1 dropped: all of them, or those named."""
    dim = dim if axis is None else axis
    shape = input._payload.shape
    if dim is None:
        dims = tuple(i for i, s in enumerate(shape) if s == 1)
    else:
        named = dim if isinstance(dim, (tuple, list)) else (dim,)
        dims = tuple(d for d in (wrap_dim(d, len(shape)) for d in named) if shape and shape[d] == 1)
    return views.squeeze.function(input, dims)


@public
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from ``start_dim`` to ``end_dim`` as one; a view where possible."""
    shape = tuple(input._payload.shape)
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, 1)
    if start == end:
        return input
    size = 1
    for s in shape[start : end + 1]:
        size *= s
    return reshape(input, (*shape[:start], size, *shape[end + 1 :]))


@public
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim; a view where possible."""
    return reshape(input, -1 if input.numel() else 0)


@public
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several; one of their sizes may be -1."""
    shape = tuple(input._payload.shape)
    d = wrap_dim(dim, len(shape))
    try:
        inner = infer_shape(as_shape(tuple(sizes)), shape[d])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            "input tensor"
        ) from None
    return views.view(input, (*shape[:d], *inner, *shape[d + 1 :]))


@public
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice number ``index`` along ``dim``, which is dropped."""
    shape = input._payload.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, len(shape))
    place = as_size(index)
    if not -shape[d] <= place < shape[d]:
        raise IndexError(f"select(): index {place} out of range for tensor of size {list(shape)} at dimension {d}")
    full = tuple(slice(0, s, 1) for s in shape[:d])
    return views.basic_index.function(input, (*full, place % shape[d]))


@public
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """``length`` slices along ``dim``, from ``start`` on."""
    shape = input._payload.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, len(shape))
    size = shape[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if hasattr(start, "_payload") and (start.ndim or start.dtype.category != INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = as_size(start)
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    if first < 0:
        first += size
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return views.basic_index.function(input, geometry.one_slice(tuple(shape), d, first, first + length))


@public
def unbind(input: Tensor, dim: int = 0, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """All slices along ``dim``."""
    dim = dim if axis is None else axis
    shape = input._payload.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, len(shape))
    before = tuple(slice(0, s, 1) for s in shape[:d])
    return tuple([views.basic_index.function(input, (*before, i)) for i in range(shape[d])])


@public
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dims, ``offset`` above the main one, as a view's last dim."""
    rank = len(input._payload.shape)
    return strided.diagonal(input, offset, wrap_dim(dim1, rank), wrap_dim(dim2, rank))


@public
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dims swapped."""
    return views.transpose.function(input, axis0, axis1)


@public
def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The order along ``dims`` (ints or a tuple) reversed, in a copy."""
    rank = len(input._payload.shape)
    dims = axes if dims is None else (dims,)
    order = tuple([wrap_dim(d, rank) for d in sizes(dims)])
    if len(set(order)) != len(order):
        raise RuntimeError(f"dim {order[-1]} appears multiple times in the list of dims")
    return joining.flip(input, order) if order and rank else clone(input)


@public(is_function=False)
def contiguous(input: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in the order that ``memory_format`` asks for (C order), else a copy."""
    if memory_format is not contiguous_format:
        return laid_out(input, memory_format)
    shape, strides = input._payload.shape, input._layout()[0]
    if strides == contiguous_strides(shape) or is_contiguous_layout(shape, strides):
        return input
    return clone(input)


def laid_out(input: Tensor, format: Any) -> Tensor:
    """The tensor in a memory format: itself, or a copy whose channels lie last."""
    if format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    order = physical_order(input.ndim, format)
    if input.is_contiguous(format):
        return input
    if order is None:
        return clone(input)
    return views.permute(clone(views.permute(input, order)), views.inverse(order))
