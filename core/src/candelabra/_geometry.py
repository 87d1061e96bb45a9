"""Where the elements of a view lie: shapes and geometries of indexing, diagonals and windows."""

from __future__ import annotations

from candelabra._annotations import Any

Ints = tuple[int, ...]
Geometry = tuple[Ints, Ints, int]


def slice_length(part: slice) -> int:
    """The number of elements of a canonical slice."""
    return max(0, -(-(part.stop - part.start) // part.step))


def indexed_shape(shape: Ints, index: tuple[Any, ...]) -> Ints:
    """The shape of ``x[index]``, of which there are no more than dims; IndexError where an int is out of bounds."""
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
            result.append(slice_length(part))
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
            offset += part.start * strides[dim] if slice_length(part) else 0
            steps.append(strides[dim] * part.step)
        else:
            offset += (part % shape[dim]) * strides[dim]
        dim += 1
    return wanted, (*steps, *strides[dim:]), offset


def one_slice(shape: Ints, dim: int, start: int, stop: int, step: int = 1) -> tuple[Any, ...]:
    """The canonical index that slices one dim and takes all of those before it."""
    return (*(slice(0, size, 1) for size in shape[:dim]), slice(start, stop, step)) if shape else ()


def diagonal_shape(shape: Ints, offset: int, dim1: int, dim2: int) -> Ints:
    """All other dims, then the diagonal's length."""
    return _diagonal(shape, offset, dim1, dim2)[0]


def _diagonal(shape: Ints, offset: int, dim1: int, dim2: int) -> tuple[Ints, list[int]]:
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = shape[dim1], shape[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    kept = [i for i in range(len(shape)) if i not in (dim1, dim2)]
    return (*[shape[i] for i in kept], length), kept


def diagonal_geometry(shape: Ints, strides: Ints, start: int, offset: int, dim1: int, dim2: int) -> Geometry:
    """A diagonal on strided memory."""
    wanted, kept = _diagonal(shape, offset, dim1, dim2)
    if wanted[-1]:
        start += offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    return wanted, (*[strides[i] for i in kept], strides[dim1] + strides[dim2]), start


def unfold_shape(shape: Ints, dimension: int, size: int, step: int) -> Ints:
    """The windows' count in place of the dim, their size last."""
    return _windows(shape, dimension, size, step)


def _windows(shape: Ints, dimension: int, size: int, step: int) -> Ints:
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if not shape:
        if size > 1:
            raise RuntimeError(f"maximum size for tensor at dimension 0 is 1 but size is {size}")
        return (size,)
    if size > shape[dimension]:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {shape[dimension]} but size is {size}")
    count = (shape[dimension] - size) // step + 1
    return (*shape[:dimension], count, *shape[dimension + 1 :], size)


def unfold_geometry(shape: Ints, strides: Ints, offset: int, dimension: int, size: int, step: int) -> Geometry:
    """Windows on strided memory."""
    wanted = _windows(shape, dimension, size, step)
    if not shape:
        return wanted, (1,), offset
    steps = (*strides[:dimension], strides[dimension] * step, *strides[dimension + 1 :], strides[dimension])
    return wanted, steps, offset


def extent(shape: Ints, strides: Ints) -> int:
    """How far a layout reaches, in elements; 0 when it is empty."""
    return 0 if 0 in shape else 1 + sum((n - 1) * k for n, k in zip(shape, strides, strict=True))
