"""Broadcasting, splitting, padding and blocks: compositions of views and ``cat``."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._layout import broadcast_shapes as broadcast
from candelabra._operators.fronts.joining import chunk, split
from candelabra._operators.fronts.numbers import number_for
from candelabra._operators.fronts.shaping import conj, expand, mH, narrow, reshape, sizes
from candelabra._operators.primitives import creation, strided, views
from candelabra._operators.primitives.joining import cat
from candelabra._records.callables import public
from candelabra._size import Size
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype, promote_types

if TYPE_CHECKING:
    from candelabra.typing import Number

Tensors = tuple[Tensor, ...]


def given(tensors: tuple[Any, ...]) -> list[Tensor]:
    """``f(a, b)`` and ``f([a, b])`` alike, as a list."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)


# -- broadcasting -----------------------------------------------------------------------------------------------------
@public(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which all the shapes (or ints, shapes of one dim) broadcast.

    Raises ``RuntimeError`` naming the first shape that does not fit, ``ValueError`` for negative sizes.
    """
    result: tuple[int, ...] = ()
    for position, shape in enumerate(shapes):
        wanted = sizes((shape,))
        if any(size < 0 for size in wanted):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        for d in range(1, min(len(wanted), len(result)) + 1):
            if wanted[-d] not in (1, result[-d]) and result[-d] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {wanted[-d]} at {-d}! Mismatching argument at "
                    f"index {position} had {wanted}; but expected shape should be broadcastable to {list(result)}"
                )
        result = broadcast(result, wanted)
    return Size(result)


@public(method=False)
def broadcast_tensors(*tensors: Any) -> Tensors:
    """The tensors expanded to their common shape: views."""
    found = given(tensors)
    shape = broadcast(*[tuple(t.shape) for t in found])
    return tuple([expand(t, shape) for t in found])


# -- splitting --------------------------------------------------------------------------------------------------------
@public
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Tensors:
    """Views of the given sizes along ``dim``, which they must sum to."""
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
            f"{list(split_sizes)}"
        )
    return split(input, split_sizes, dim)


@public
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> Tensors:
    """:func:`split`. Nothing is unsafe here: the parts are views, and writes to them are recorded."""
    return split(tensor, split_size, dim)


@public
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Tensors:
    """:func:`split_with_sizes`; see :func:`unsafe_split`."""
    return split_with_sizes(input, split_sizes, dim)


@public
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Tensors:
    """:func:`chunk`; see :func:`unsafe_split`."""
    return chunk(input, chunks, dim)


# -- matrices ---------------------------------------------------------------------------------------------------------
@public(is_function=False, is_property=True)
def H(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix; a number as it is."""
    if input.ndim not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if input.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.{hint}")
    return mH(input) if input.ndim else conj(input)


@public(method=False)
def block_diag(*tensors: Any) -> Tensor:
    """The matrices along a diagonal, zeros elsewhere; vectors count as rows, numbers as 1 × 1 matrices.

    The dtype is what all of theirs promote to. Raises ``RuntimeError`` for tensors of more than two dims.
    """
    found = given(tensors)
    for number, t in enumerate(found):
        if t.ndim > 2:
            raise RuntimeError(
                f"block_diag: Input tensors must have 2 or fewer dimensions. Input {number} has {t.ndim} dimensions"
            )
    if not found:
        from candelabra._operators.fronts.creation import empty

        return empty((1, 0))
    common: dtype = found[0].dtype
    for t in found[1:]:
        common = promote_types(common, t.dtype)
    width = sum(t.shape[-1] if t.ndim else 1 for t in found)
    rows, start = [], 0
    for t in found:
        block = reshape(t, (1,) * (2 - t.ndim) + tuple(t.shape)).to(common)
        height, size = block.shape
        left, right = block.new_zeros((height, start)), block.new_zeros((height, width - start - size))
        rows.append(cat([left, block, right], 1))
        start += size
    return cat(rows, 0)


@public(is_function=False)
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal; ``wrap`` begins it anew below in matrices that are higher than wide.

    Raises ``RuntimeError`` for fewer than two dims, and for more than two of unequal size.
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    value = number_for(fill_value, input.dtype)
    rows, columns = shape[0], shape[1]
    again = range(columns + 1, rows, columns + 1) if wrap and len(shape) == 2 else ()
    for first in (0, *again):
        line = narrow(input, 0, first, rows - first) if first else input
        for _ in shape[1:]:
            line = strided.diagonal(line, 0, 0, line.ndim - 1)
        creation.filled.form("inplace")(line, value)
    return input


# -- padding ----------------------------------------------------------------------------------------------------------
@public(method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    """``value`` put in before and after the last dims: ``pad`` is (before, after) of the last, of the last but one, …

    Negative amounts cut off. Raises ``RuntimeError`` for an odd number of amounts and for more than the dims have.
    """
    amounts = list(pad)
    if len(amounts) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(amounts)}")
    if len(amounts) > 2 * input.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(amounts)} while the input has {input.ndim} dimensions."
        )
    wanted, place, kept = list(input.shape), [slice(0, size, 1) for size in input.shape], input
    for number in range(len(amounts) // 2):
        before, after = amounts[2 * number : 2 * number + 2]
        d = input.ndim - 1 - number
        size = input.shape[d]
        left, right = max(0, -before), max(0, -after)
        kept = narrow(kept, d, left, size - left - right)
        wanted[d] = size + before + after
        place[d] = slice(max(0, before), max(0, before) + kept.shape[d], 1)
    padded = creation.full(tuple(wanted), number_for(value, input.dtype), dtype=input.dtype, device=input._instance)
    return views.basic_index_scatter(padded, kept, tuple(place))


@public(method=False, out=True)
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor in ``num_chunks`` parts along ``dim``, padded with zeros, flattened and joined part by part.

    Raises ``RuntimeError`` for no chunks, empty tensors and a ``dim`` that one of them lacks.
    """
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    d = wrap_dim(dim, max(t.ndim for t in tensors))
    parts = []
    for t in tensors:
        if d >= t.ndim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        missing = -t.shape[d] % num_chunks
        padded = constant_pad_nd(t, [0, 0] * (t.ndim - 1 - d) + [0, missing])
        parts.append(reshape(padded, (*t.shape[:d], num_chunks, -1)))
    return cat(parts, d + 1)
