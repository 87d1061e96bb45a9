"""A tensor with parts of it replaced: ``index_fill``, ``index_copy``, ``select_scatter``, ``masked_scatter``, …"""

from __future__ import annotations

from candelabra import _geometry as geometry
from candelabra._annotations import Any
from candelabra._dispatch.promote import title
from candelabra._layout import broadcast_shapes, wrap_dim
from candelabra._operators.elementwise import selection
from candelabra._operators.fronts.numbers import number_for
from candelabra._operators.fronts.scattering import as_dtype, raveled
from candelabra._operators.indexing.basic import basic_index, basic_index_scatter
from candelabra._operators.primitives import creation, indexing
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow, select
from candelabra._records.callables import public
from candelabra._tensor import Tensor
from candelabra.dtypes import bool_, int64


# -- slices named by an index -----------------------------------------------------------------------------------------
def _slice_mask(input: Tensor, dim: int, index: Tensor, value: Any) -> tuple[Tensor, Any]:
    """Where ``index_fill`` writes, as a mask that broadcasts to ``input``, and the checked value."""
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if not index._keys & int64.bit:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        value = value if value.dtype is input.dtype else creation.cast.function(value, dtype=input.dtype)
    else:
        value = number_for(value, input.dtype)
    size = input.shape[dim] if input.ndim else 1
    none = creation.full.function((size,), False, dtype=bool_, device=input._instance)
    yes = creation.full.function((), True, dtype=bool_, device=input._instance)
    mask = indexing.index_put.function(none, (reshape(index, -1) if index.numel() else index,), yes)
    return reshape(mask, tuple(size if d == dim else 1 for d in range(input.ndim))), value


@public
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with ``value`` (a number or a 0-d tensor) in the slices along ``dim`` that ``index`` names."""
    mask, filler = _slice_mask(input, wrap_dim(dim, input.ndim), index, value)
    return selection.masked_fill.function(input, mask, filler)


@public
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """In-place form of :func:`index_fill`."""
    mask, filler = _slice_mask(input, wrap_dim(dim, input.ndim), index, value)
    return selection.masked_fill.form("inplace")(input, mask, filler)


def _copied_slices(input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[tuple[Any, ...], Tensor]:
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not index._keys & int64.bit:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {title(index.dtype)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{title(input.dtype)} and (source) {title(source.dtype)}"
        )
    size = source.shape[dim] if dim < source.ndim else 1
    if index.numel() != size:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) ({size})"
        )
    have = [s for d, s in enumerate(input.shape) if d != dim]
    given = [s for d, s in enumerate(source.shape) if d != dim]
    if have != given:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, have))} at dimension {dim} and source slice shape: {' '.join(map(str, given))} at "
            "dimension 0."
        )
    return (*(None,) * dim, reshape(index, -1) if index.numel() else index), source


@public(out="exact")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the slices of ``source`` put at the places along ``dim`` that ``index`` names."""
    indices, source = _copied_slices(input, wrap_dim(dim, input.ndim), index, source)
    return indexing.index_put.function(input, indices, source) if input.ndim else source.clone()


@public
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """In-place form of :func:`index_copy`."""
    indices, source = _copied_slices(input, wrap_dim(dim, input.ndim), index, source)
    if not input.ndim:
        return creation.copied.form("inplace")(input, reshape(source, ()))
    return indexing.index_put.form("inplace")(input, indices, source)


# -- views replaced ---------------------------------------------------------------------------------------------------
def _fits(part: Tensor, src: Tensor) -> None:
    if tuple(part.shape) != tuple(src.shape):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )


@public(out="exact")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with ``src`` as the slice number ``index`` along ``dim``."""
    part = select(input.detach(), dim, index)
    _fits(part, src)
    d = wrap_dim(dim, input.ndim)
    place = (*(slice(0, s, 1) for s in input.shape[:d]), index % input.shape[d])
    return basic_index_scatter(input, as_dtype(src, input.dtype), place)


@public(out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of ``input`` with ``src`` in the place of ``input[start:end:step]`` along ``dim``."""
    d = wrap_dim(dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    place = geometry.one_slice(tuple(input.shape), d, *slice(start, end, step).indices(input.shape[d]))
    _fits(basic_index(input.detach(), place), src)
    return basic_index_scatter(input, as_dtype(src, input.dtype), place)


# -- masks ------------------------------------------------------------------------------------------------------------
@public
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements of ``source``, in order, where ``mask`` holds."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{title(input.dtype)} and {title(source.dtype)}"
        )
    if not mask._keys & bool_.bit:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {title(mask.dtype)}")
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    wide = input.expand(shape)
    rows = indexing.nonzero.function(mask.expand(shape))
    if rows.shape[0] > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    if not shape:
        return reshape(source, -1)[0] if rows.shape[0] else input.clone()
    return indexing.index_put.function(wide, rows.unbind(1), narrow(raveled(source), 0, 0, rows.shape[0]))


@public(is_function=False)
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place form of :func:`masked_scatter`."""
    return creation.copied.form("inplace")(input, masked_scatter(input, mask, source))
