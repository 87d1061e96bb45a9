"""Functions of the standard that rearrange, join and cut arrays."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._layout import broadcast_shapes as _common_shape
from candelabra._layout import wrap_dim
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, named, promoted

Arrays = tuple[Tensor, ...] | list[Tensor]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to; ``()`` of none. ``ValueError`` where they don't."""
    try:
        return tuple(_common_shape(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_arrays(*arrays: Tensor) -> tuple[Array, ...]:
    """Views of the arrays in the shape that all broadcast to."""
    shape = broadcast_shapes(*(tuple(x.shape) for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Array:
    """A view of ``x`` in a shape that it broadcasts to."""
    return arrayed(named("broadcast_to")(x, shape), x)


def concat(arrays: Arrays, /, *, axis: int | None = 0) -> Array:
    """The arrays one after the other along ``axis``; None flattens them first. Dtypes are promoted."""
    parts = promoted(*arrays)
    if axis is None:
        parts, axis = tuple(part.reshape((part.numel(),)) for part in parts), 0
    return arrayed(named("cat")(parts, wrap_dim(axis, parts[0].ndim)), *arrays)


def stack(arrays: Arrays, /, *, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis. Dtypes are promoted."""
    return arrayed(named("stack")(promoted(*arrays), axis))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along ``axis``, views."""
    return tuple(arrayed(part) for part in named("unbind")(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Array:
    """A view with new axes of size 1 at the given places of the result. ``IndexError`` for places outside it."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = x.ndim + len(axes)
    places = [wrap_dim(a, rank) for a in axes]
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims(): an axis is named twice in {axes}")
    out = x
    for place in sorted(places):
        out = out.unsqueeze(place)
    return arrayed(out, x)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Array:
    """A view without axes of size 1. ``ValueError`` for an axis of another size."""
    axes = tuple(wrap_dim(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze(): axis {a} has size {x.shape[a]}, not 1")
    return arrayed(x.reshape([size for d, size in enumerate(x.shape) if d not in axes]), x)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements in reversed order along the axes (None: all), in a copy."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return arrayed(named("flip")(x, axes), x)


def matrix_transpose(x: Tensor, /) -> Array:
    """The matrices in the last two dims transposed, a view. ``ValueError`` where there are fewer than two."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose() takes an array of at least 2 dims, not {x.ndim}")
    return arrayed(named("transpose")(x, -1, -2))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """A view with the axes ``source`` at the places ``destination``, the others in their order."""
    return arrayed(named("moveaxis")(x, source, destination), x)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Array:
    """A view with the axes in the given order."""
    return arrayed(named("permute")(x, tuple(axes)), x)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element (or slice along ``axis``) ``repeats`` times, a number or one per slice; None flattens first."""
    if isinstance(repeats, (tuple, list)):
        repeats = named("tensor")(list(repeats), device=x.device)
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    return arrayed(named("repeat_interleave")(x, repeats, axis), x)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The same elements in another shape, one size of which may be -1: a view where the layout allows.

    ``copy=True`` always copies; with ``copy=False`` a ``ValueError`` where a view is impossible.
    """
    if copy:
        return arrayed(named("clone")(x).reshape(shape))
    if copy is False:
        try:
            return arrayed(x.view(shape), x)
        except RuntimeError as error:
            raise ValueError(f"reshape(): copy=False, but the shape takes one: {error}") from None
    return arrayed(x.reshape(shape), x)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements moved along the axes, what falls off the end coming back at the start; None: as if flat."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    if isinstance(shift, tuple) and len(shift) == 1 and axis is None:
        shift = shift[0]
    return arrayed(named("roll")(x, shift, axis), x)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Array:
    """Repeat ``x`` along each axis; axes that are missing on either side count as 1."""
    return arrayed(named("tile")(x, tuple(repetitions)), x)
