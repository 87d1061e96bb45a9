"""Repeating, moving dims, views of the storage: compositions of the views."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import Any
from candelabra._codegen.arguments import as_size, wrap_dim
from candelabra._geometry import extent
from candelabra._operators.fronts.shaping import movedim, narrow, reshape, sizes, unsqueeze
from candelabra._operators.primitives import creation, indexing, strided, views
from candelabra._records.callables import public
from candelabra._tensor import Tensor
from candelabra.dtypes import PYTHON_NAMES, int64


# -- repeating --------------------------------------------------------------------------------------------------------
@public(is_function=False)
def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """The tensor ``repeats[d]`` times along each dim ``d``, in a copy; leading dims may be added.

    Raises ``RuntimeError`` for fewer repeats than dims and for negative ones.
    """
    times = sizes(repeats)
    lead = len(times) - input.ndim
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (*(1,) * lead, *input.shape)
    wanted = tuple(n * s for n, s in zip(times, shape))
    if any(n < 0 for n in times):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {next(w for w, n in zip(wanted, times) if n < 0)}: "
            f"{list(wanted)}"
        )
    spread = reshape(input, tuple(part for size in shape for part in (1, size)))
    spread = spread.expand(tuple(part for n, size in zip(times, shape) for part in (n, size)))
    return reshape(creation.clone(spread), wanted)


@public
def tile(input: Tensor, *dims: Any) -> Tensor:
    """As ``repeat``, with as many leading ones as are missing."""
    times = sizes(dims)
    return repeat(input, (*(1,) * (input.ndim - len(times)), *times))


@public
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every slice along ``dim`` (None: of the flattened tensor) ``repeats`` times in a row: an int, or one for each.

    Without ``repeats`` the input is those, and the result the indices that it repeats. ``output_size``, the sum of the
    repeats, spares finding it out.

    Raises ``RuntimeError`` for negative repeats and where counts or sizes do not agree.
    """
    if repeats is None:
        return _repeated(input, output_size).to(input.dtype)
    if dim is None:
        input, dim = reshape(input, -1 if input.numel() else 0), 0
    elif not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if isinstance(repeats, Tensor):
        if repeats.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if repeats.numel() != 1 and repeats.numel() != size:
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.numel()} and input.size({d}) = {size}"
            )
        repeats = reshape(repeats, 1).expand(size) if repeats.numel() == 1 else repeats
        return indexing.index_select.function(input, d, _repeated(repeats, output_size))
    count = as_size(repeats)
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    if output_size not in (None, size * count):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {size * count} but got {output_size}")
    spread = unsqueeze(input, d + 1)
    shape = (*spread.shape[: d + 1], count, *spread.shape[d + 2 :])
    return reshape(creation.clone(spread.expand(shape)), (*input.shape[:d], size * count, *input.shape[d + 1 :]))


def _repeated(counts: Tensor, total: int | None) -> Tensor:
    """0 as often as the first count says, 1 as often as the second, …: how many ends lie at or before each place."""
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype.name not in ("int32", "int64"):
        kind = PYTHON_NAMES[counts.dtype.name]
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if counts.numel() and counts.amin().item() < 0:
        raise RuntimeError("repeats can not be negative")
    ends = counts.to(int64).cumsum(0)
    wanted = int(ends[-1].item()) if counts.numel() else 0
    if total not in (None, wanted):
        raise RuntimeError("allocated size does not match required size")
    marks = creation.full.function((wanted + 1,), 0, dtype=int64, device=counts._instance)
    marks = indexing.index_add.function(marks, 0, ends, ends * 0 + 1)
    places: Tensor = narrow(marks, 0, 0, wanted).cumsum(0)
    return places


# -- other names ------------------------------------------------------------------------------------------------------
@public
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """:func:`movedim` under NumPy's name."""
    return movedim(input, source, destination)


@public
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """:func:`transpose` under another name."""
    return views.transpose(input, dim0, dim1)


# -- as_strided -------------------------------------------------------------------------------------------------------
@public
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the memory under ``input``: any sizes and steps, from ``storage_offset`` (default: that of ``input``).

    Raises ``RuntimeError`` for negative steps and for elements outside the memory of ``input`` or its base.
    """
    shape, steps = sizes((size,)), sizes((stride,))
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in steps):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    strides, offset = input._layout()
    start = offset if storage_offset is None else storage_offset
    base = input._base if input._is_view() else input
    base_strides, low = base._layout()
    high = low + extent(tuple(base._payload.shape), base_strides)
    if prod(shape) and (start < low or start + extent(shape, steps) > high):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {start} are out of bounds for "
            f"storage of {high} elements"
        )
    return strided.as_strided(input, shape, steps, start, (tuple(strides), offset))
