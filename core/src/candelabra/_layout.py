"""Arithmetic of shapes and strides, which all devices share, so that views and their errors are equal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from candelabra._annotations import Any

Shape = tuple[int, ...]


class layout:
    """The layout of a tensor: :data:`strided`, or :data:`sparse_coo`, see :mod:`candelabra.sparse`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"candelabra.{self.name}"


class memory_format(layout):
    """The memory order of the dims of a dense tensor."""


strided = layout("strided")
sparse_coo = layout("sparse_coo")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def physical_order(rank: int, format: object) -> Shape | None:
    """Return the dims from the outermost to the innermost in memory, or None for formats in C order.

    Raises ``RuntimeError`` if a channels-last format does not fit the rank, ``TypeError`` for other values.
    """
    if format is channels_last or format is channels_last_3d:
        wanted = 4 if format is channels_last else 5
        if rank != wanted:
            raise RuntimeError(f"required rank {wanted} tensor to use {format!r} format")
        return (0, *range(2, rank), 1)
    if format is not None and not isinstance(format, memory_format):
        raise TypeError(f"memory_format must be a candelabra.memory_format, not {type(format).__name__}")
    return None


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """Return C-order strides in elements. As in PyTorch, sizes of 0 count as 1."""
    return _strides_of(tuple(shape))


@lru_cache(1024)
def _strides_of(shape: Shape) -> Shape:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous_layout(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the strides are in C order. Dims of size 1 are ignored, and an empty tensor always is."""
    expected = 1
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def view_strides(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> Shape | None:
    """Return the strides that show the same memory as shape ``target``, or None if that requires a copy.

    Source: the rule in ``torch.Tensor.view``'s documentation: dims may be merged if stride[i] = stride[i+1] ·
    size[i+1], and split in any way.
    """
    return _view_strides(tuple(shape), tuple(strides), tuple(target))


@lru_cache(1024)
def _view_strides(shape: Shape, strides: Shape, target: Shape) -> Shape | None:
    if 0 in shape or 0 in target:
        return contiguous_strides(target) if 0 in shape and 0 in target else None
    if strides == contiguous_strides(shape):
        return contiguous_strides(target) if prod(shape) == prod(target) else None
    blocks: list[tuple[int, int]] = []  # (elements, innermost stride) of maximal groups of mergeable dims
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if blocks and blocks[-1][1] == stride * size:
            blocks[-1] = (blocks[-1][0] * size, stride)
        else:
            blocks.append((size, stride))
    result: list[int] = []
    remaining, stride = 1, 1
    pending = blocks  # the innermost is last
    for size in reversed(target):
        if remaining == 1 and size != 1:
            if not pending:
                return None
            remaining, stride = pending.pop()
        if size == 1:
            result.append(stride)
            continue
        if remaining % size:
            return None
        result.append(stride)
        remaining //= size
        stride *= size
    return tuple(reversed(result)) if remaining == 1 and not pending else None


def infer_shape(shape: Sequence[int], numel: int) -> Shape:
    """Return ``shape`` with -1 replaced so that it has ``numel`` elements. Raise RuntimeError if that is impossible."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(s < -1 for s in shape):
        raise RuntimeError(f"invalid shape dimension {next(s for s in shape if s < -1)} in {list(shape)}")
    if -1 in shape:
        known = prod(s for s in shape if s != -1)
        if known == numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension "
                "size -1 can be any value and is ambiguous"
            )
        if known and numel % known == 0:
            return tuple(numel // known if s == -1 else s for s in shape)
    elif prod(shape) == numel:
        return tuple(shape)
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Return the shape to which all broadcast. Raise RuntimeError with the sizes and the dim that do not match."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i in range(1, len(shape) + 1):
            a, b = result[-i], shape[-i]
            if b != 1 and a != b:
                if a != 1:
                    raise RuntimeError(
                        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                        f"{rank - i}"
                    )
                result[-i] = b
    return tuple(result)


def expanded_shape(shape: Sequence[int], size: Shape) -> Shape:
    """Return ``size``. Raise ``RuntimeError`` unless ``shape`` expands to it."""
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    for i, (have, want) in enumerate(zip(shape, size[lead:], strict=True)):
        if have not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i + lead}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return size


def reduced_shape(shape: Sequence[int], dims: Sequence[int] | None, keepdim: bool) -> Shape:
    """Return the shape after reducing ``dims`` (canonical; None: all)."""
    gone = range(len(shape)) if dims is None else dims
    if keepdim:
        return tuple(1 if i in gone else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in gone)


def wrap_dim(dim: Any, rank: int) -> int:
    """``dim`` counted from the front; IndexError outside ``[-rank, rank-1]``."""
    if type(dim) is not int:
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = dim.__index__()
    limit = rank or 1
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    wrapped: int = dim + limit if dim < 0 else dim
    return wrapped
