"""Functions of the standard that rearrange, join and split arrays."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._layout import broadcast_shapes as _common_shape
from candelabra._layout import wrap_dim
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, named, promoted

Arrays = tuple[Tensor, ...] | list[Tensor]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which all shapes broadcast, ``()`` without any. Raises ``ValueError`` if they do not
    broadcast.
    """
    try:
        return tuple(_common_shape(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_arrays(*arrays: Tensor) -> tuple[Array, ...]:
    """Return views of the arrays, broadcast to their common shape."""
    shape = broadcast_shapes(*(tuple(x.shape) for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Array:
    """Return a view of ``x``, broadcast to a shape."""
    return arrayed(named("broadcast_to")(x, shape), x)


def concat(arrays: Arrays, /, *, axis: int | None = 0) -> Array:
    """Concatenate arrays along ``axis``; None flattens them first. Dtypes are promoted."""
    operands = promoted(*arrays)
    if axis is None:
        operands, axis = tuple(operand.reshape((operand.numel(),)) for operand in operands), 0
    return arrayed(named("cat")(operands, wrap_dim(axis, operands[0].ndim)), *arrays)


def stack(arrays: Arrays, /, *, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis. Dtypes are promoted."""
    return arrayed(named("stack")(promoted(*arrays), axis))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return views of the slices along ``axis``."""
    return tuple(arrayed(operand) for operand in named("unbind")(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Array:
    """Return a view with new axes of size 1 at the given positions. Raises ``IndexError`` for positions out of
    range.
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = x.ndim + len(axes)
    positions = [wrap_dim(a, rank) for a in axes]
    if len(set(positions)) < len(positions):
        raise ValueError(f"expand_dims() expects distinct axes, got {axes}")
    out = x
    for position in sorted(positions):
        out = out.unsqueeze(position)
    return arrayed(out, x)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Array:
    """Return a view without axes of size 1. Raises ``ValueError`` for an axis of another size."""
    axes = tuple(wrap_dim(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze() expects axes of size 1, but axis {a} has size {x.shape[a]}, not 1")
    return arrayed(x.reshape([size for d, size in enumerate(x.shape) if d not in axes]), x)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return a copy with the elements in reverse order along the axes (None: all)."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return arrayed(named("flip")(x, axes), x)


def matrix_transpose(x: Tensor, /) -> Array:
    """Return a view of the transposed matrices in the last two dims. Raises ``ValueError`` for fewer than two dims."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose() expects an array of at least 2 dims, not {x.ndim}")
    return arrayed(named("transpose")(x, -1, -2))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Return a view with the axes ``source`` moved to the positions ``destination``; the others keep their order."""
    return arrayed(named("moveaxis")(x, source, destination), x)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Array:
    """Return a view with the axes in the given order."""
    return arrayed(named("permute")(x, tuple(axes)), x)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Repeat each element, or slice along ``axis``, ``repeats`` times: a number, or one per slice. None flattens
    first.
    """
    if isinstance(repeats, (tuple, list)):
        repeats = named("tensor")(list(repeats), device=x.device)
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    return arrayed(named("repeat_interleave")(x, repeats, axis), x)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Return the same elements in another shape, one size of which may be -1: a view if the strides allow it.

    ``copy=True`` always copies; ``copy=False`` raises ``ValueError`` if a view is impossible.
    """
    if copy:
        return arrayed(named("clone")(x).reshape(shape))
    if copy is False:
        try:
            return arrayed(x.view(shape), x)
        except RuntimeError as error:
            raise ValueError(f"reshape(): copy=False, but this shape needs a copy: {error}") from None
    return arrayed(x.reshape(shape), x)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the elements shifted cyclically along the axes, or along the flattened array for None."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    if isinstance(shift, tuple) and len(shift) == 1 and axis is None:
        shift = shift[0]
    return arrayed(named("roll")(x, shift, axis), x)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Array:
    """Repeat ``x`` along each axis; missing axes and repetitions are 1."""
    return arrayed(named("tile")(x, tuple(repetitions)), x)
