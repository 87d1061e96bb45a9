"""The geometry of views: basic indexing on strided memory, and the extent of a layout."""

from __future__ import annotations

from candelabra._annotations import Any

Ints = tuple[int, ...]
Geometry = tuple[Ints, Ints, int]


def slice_length(part: slice) -> int:
    """Return the number of elements of a canonical slice."""
    length: int = max(0, -(-(part.stop - part.start) // part.step))
    return length


def indexed_shape(shape: Ints, index: tuple[Any, ...]) -> Ints:
    """Return the shape of ``x[index]`` for a canonical index. Raise IndexError if an int is out of bounds."""
    if not shape and len(index) == 1 and index[0] is not None:
        if isinstance(index[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    result: list[int] = []
    dim = 0
    for part in index:
        if part is None:
            result.append(1)
            continue
        if isinstance(part, slice):
            result.append(max(0, -(-(part.stop - part.start) // part.step)))  # slice_length(), without its frame
        elif not -shape[dim] <= part < shape[dim]:
            raise IndexError(f"index {part} is out of bounds for dimension {dim} with size {shape[dim]}")
        dim += 1
    return (*result, *shape[dim:])


def indexed_geometry(shape: Ints, strides: Ints, offset: int, index: tuple[Any, ...]) -> Geometry:
    """Basic indexing on strided memory."""
    wanted = indexed_shape(shape, index)
    steps: list[int] = []
    dim = 0
    for part in index:
        if part is None:
            steps.append(shape[dim] * strides[dim] if dim < len(shape) else 1)
            continue
        if isinstance(part, slice):
            if wanted[len(steps)]:
                offset += part.start * strides[dim]
            steps.append(strides[dim] * part.step)
        else:
            offset += (part % shape[dim]) * strides[dim]
        dim += 1
    return wanted, (*steps, *strides[dim:]), offset


def one_slice(shape: Ints, dim: int, start: int, stop: int, step: int = 1) -> tuple[Any, ...]:
    """Return the canonical index that slices one dim and takes all dims before it completely."""
    return (*(slice(0, size, 1) for size in shape[:dim]), slice(start, stop, step)) if shape else ()


def extent(shape: Ints, strides: Ints) -> int:
    """Return the extent of a layout in elements, from its first to after its last one; 0 if it is empty."""
    return 0 if 0 in shape else 1 + sum((n - 1) * k for n, k in zip(shape, strides, strict=True))
