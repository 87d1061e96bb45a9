"""Copies with repetitions: of the whole tensor (``repeat``, ``tile``), or of each slice (``repeat_interleave``)."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._codegen.arguments import as_size
from candelabra._geometry import Ints
from candelabra._layout import wrap_dim
from candelabra._operators.conversion.copies import clone
from candelabra._operators.creation.filled import new_full
from candelabra._operators.indexing.index_operators import index_add, index_select
from candelabra._operators.shapes.expanding import expand
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow
from candelabra._operators.shapes.squeezing import unsqueeze
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor


# -- repetitions of the tensor -----------------------------------------------------------------------------------------
@by
def _repeated(input: Tensor, repeats: Ints) -> Ints:
    shape = shape_of(input)
    lead = len(repeats) - len(shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    result = tuple([n * s for n, s in zip(repeats, (*(1,) * lead, *shape), strict=True)])
    if any(n < 0 for n in repeats):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {next(w for w, n in zip(result, repeats) if n < 0)}: "
            f"{list(result)}"
        )
    return result


@operator(_repeated, is_function=False)
def repeat(input: Tensor, *repeats: Shape) -> Tensor:
    """Return a copy with the tensor repeated ``repeats[d]`` times along each dim ``d``; leading dims may be added.

    Raises ``RuntimeError`` for fewer repeats than dims and for negative ones.
    """
    result: Ints = _repeated(repeat, (input, repeats))
    shape = (*(1,) * (len(repeats) - input.ndim), *input.shape)
    pairs: list[int] = []
    for count, size in zip(repeats, shape, strict=True):
        pairs += (count, size)  # type: ignore[arg-type] # canonical: ints
    expanded = expand(reshape(input, [pair_size for size in shape for pair_size in (1, size)]), pairs)
    return reshape(clone(expanded), result)


def _counts_per_dim(input: Tensor, dims: Ints) -> Ints:
    """Return a count for each dim; missing leading counts are 1."""
    return (*(1,) * (len(shape_of(input)) - len(dims)), *dims)


@operator(by(lambda input, dims: _repeated(repeat, (input, _counts_per_dim(input, dims)))))
def tile(input: Tensor, *dims: Shape) -> Tensor:
    """Return a copy with the tensor repeated ``dims[d]`` times along each dim ``d``; missing leading counts are 1."""
    return repeat(input, _counts_per_dim(input, dims))  # type: ignore[arg-type]


# -- repetitions of slices --------------------------------------------------------------------------------------------
def _flattened(input: Tensor, dim: int | None) -> tuple[Ints, int]:
    """Return the shape and the canonical dim whose slices are repeated; without ``dim``, those of the flattened
    tensor.
    """
    shape = shape_of(input)
    if dim is None:
        return (input.numel(),), 0
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return shape, wrap_dim(dim, len(shape))


@by
def _interleaved(input: Tensor, repeats: int, dim: int | None, output_size: int | None) -> Ints:
    shape, d = _flattened(input, dim)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    size = shape[d] * repeats
    if output_size not in (None, size):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {size} but got {output_size}")
    return (*shape[:d], size, *shape[d + 1 :])


@operator(_interleaved, name="repeat_interleave", public=False)
def repeat_each(input: Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Repeat each slice along ``dim`` (None: of the flattened tensor) ``repeats`` times.

    ``output_size``, the size along ``dim`` in the result, is checked. Raises ``RuntimeError`` for negative repeats.
    """
    count = as_size(repeats)
    result: Ints = _interleaved(repeat_each, (input, count, dim, output_size))
    shape, d = _flattened(input, dim)
    expanded = unsqueeze(reshape(input, shape), d + 1)
    expanded = expand(expanded, (*shape[: d + 1], count, *shape[d + 1 :]))
    return reshape(clone(expanded), result)


@by
def _interleaved_by_counts(input: Tensor, repeats: Tensor, dim: int | None, output_size: int | None) -> Ints | None:
    shape, d = _flattened(input, dim)
    counts = shape_of(repeats)
    if len(counts) > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.numel() not in (1, shape[d]):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.numel()} and input.size({d}) = {shape[d]}"
        )
    return None if output_size is None else (*shape[:d], output_size, *shape[d + 1 :])


@operator(_interleaved_by_counts, promote=unpromoted, data_dependent=True, public=False)
def repeat_interleave_tensor(
    input: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each slice along ``dim`` (None: of the flattened tensor) as often as its count in ``repeats``.

    ``repeats`` has a single count or one for each slice. Raises ``RuntimeError`` for negative counts, for another
    number of counts than slices, and if ``output_size`` is not their sum.
    """
    _interleaved_by_counts(repeat_interleave_tensor, (input, repeats, dim, output_size))
    shape, d = _flattened(input, dim)
    if repeats.numel() == 1:
        repeats = expand(reshape(repeats, (1,)), (shape[d],))
    indices = repeat_interleave_indices(repeats, output_size=output_size)
    return index_select(reshape(input, shape), d, indices)


@by
def _indices_shape(repeats: Tensor, output_size: int | None) -> Ints | None:
    if len(shape_of(repeats)) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    return None if output_size is None else (output_size,)


@operator(_indices_shape, accepts="integer", data_dependent=True, public=False)
def repeat_interleave_indices(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Return each index i repeated ``repeats[i]`` times, in order, in the dtype of the counts.

    Raises ``RuntimeError`` for negative counts and if ``output_size`` is not their sum.
    """
    # The index at each position is the number of cumulative counts that are at most the position.
    _indices_shape(repeat_interleave_indices, (repeats, output_size))
    if repeats.numel() and int(repeats.amin()) < 0:
        raise RuntimeError("repeats can not be negative")
    ends = repeats.to(int64).cumsum(0)
    size = int(ends[-1]) if repeats.numel() else 0
    if output_size not in (None, size):
        raise RuntimeError("allocated size does not match required size")
    marks = index_add(new_full(ends, (size + 1,), 0), 0, ends, new_full(ends, ends.shape, 1))
    return narrow(marks, 0, 0, size).cumsum(0).to(repeats.dtype)


repeat_interleave_indices.no_gradient("indices are integers")

repeat_interleave = overloads(
    "repeat_interleave", repeat_each, repeat_interleave_tensor, repeat_interleave_indices,
)  # fmt: skip
