"""Elements put at flat places, parts of the memory replaced, indices under a mask."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import Any
from candelabra._codegen.arguments import as_origin, as_sizes
from candelabra._dispatch.promote import title
from candelabra._operators.primitives import creation, indexing
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.strided import as_strided, strided_scatter
from candelabra._records.callables import public
from candelabra._tensor import Tensor
from candelabra.dtypes import bool_, int64


# -- at flat places ---------------------------------------------------------------------------------------------------
def _placed(input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """``put`` on the tensor seen as 1-d."""
    if not index._keys & int64.bit:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {title(index.dtype)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{title(input.dtype)} and source.dtype = {title(source.dtype)}"
        )
    count = input.numel()
    if source.numel() != index.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    if not index.numel():
        return input.clone()
    if not count:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    for place in (int(index.amin().item()), int(index.amax().item())):
        if not -count <= place < count:
            raise IndexError(f"out of range: tried to access index {place} on a tensor of {count} elements.")
    flat = indexing.index_put.function(reshape(input, -1), (reshape(index, -1),), reshape(source, -1), accumulate)
    return reshape(flat, tuple(input.shape))


@public
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with the elements of ``source`` put, or added, at ``index``, which counts as if ``input`` were 1-d.

    Negative indices count back. Raises ``IndexError`` for places outside and for unequal counts, ``RuntimeError`` for
    unequal dtypes.
    """
    return _placed(input, index, source, accumulate)


@public(is_function=False)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of :func:`put`."""
    return creation.copied.form("inplace")(input, _placed(input, index, source, accumulate))


# -- parts replaced ---------------------------------------------------------------------------------------------------
@public
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of ``input`` with ``src`` in the place of what :func:`as_strided` shows of it."""
    shown = as_strided(input.detach(), size, stride, storage_offset)
    if shown.shape != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(shown.shape)}"
        )
    origin = as_origin(None, input)
    start = origin[1] if storage_offset is None else storage_offset
    return strided_scatter(input, src.to(input.dtype), as_sizes((size,)), as_sizes((stride,)), start, origin)


def _clamped(input: Tensor, indices: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    return tuple(
        None if i is None else i.clamp(-input.shape[d], max(input.shape[d] - 1, 0)) for d, i in enumerate(indices)
    )


@public(method=False)
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any) -> Tensor:
    """``input[indices]`` where ``mask`` holds, ``fill`` elsewhere; indices there may be out of bounds."""
    out = indexing.index.function(input, _clamped(input, indices))
    return out.masked_fill(~mask.to(bool_), fill)


@public(method=False)
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """``input`` with ``values`` added at ``indices`` where ``mask`` holds; elsewhere they may be out of bounds."""
    return indexing.index_put.function(input, _clamped(input, indices), values.masked_fill(~mask.to(bool_), 0), True)
