"""Max unpooling, the partial inverse of max pooling.

The values that max pooling selected return to their positions, and all other elements are 0.
"""

from __future__ import annotations

import math

from candelabra.dtypes import int64
from candelabra.library import Autocast, by, highest, operator, shape_of
from candelabra.nn._functional.sizes import Ints, Sizes, per_dim
from candelabra.nn._operators.pooling import put_planes
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Sequence, Tensor


def _output_size(shape: Ints, rank: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Ints:
    """Return the spatial size that the pooled input had: the smallest possible one, or the given one.

    Raises ``ValueError`` for a given size that does not pool to ``shape``.
    """
    kernel, paddings = per_dim(kernel_size, rank), per_dim(padding, rank)
    strides = kernel if stride is None else per_dim(stride, rank)
    if kernel is None or strides is None or paddings is None:
        raise RuntimeError(f"max_unpool{rank}d: kernel_size, stride and padding must be one or {rank} ints")
    sizes = zip(shape[len(shape) - rank :], kernel, strides, paddings, strict=True)
    smallest = tuple((n - 1) * s + k - 2 * p for n, k, s, p in sizes)
    if output_size is None:
        return smallest
    expected = tuple(output_size)[2:] if len(output_size) == rank + 2 else tuple(output_size)
    if len(expected) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(expected, smallest, strides, strict=True)):
        if abs(size - usual) >= step:
            raise ValueError(
                f'invalid output_size "{expected}" (dim {dim} must be between {usual - step} and {usual + step})'
            )
    return expected


def _unpooled_shape(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Ints:
    shape = shape_of(input)
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dimensions."
        )
    if indices.dtype is not int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.title}")
    if shape_of(indices) != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(shape_of(indices))}"
        )
    return *shape[: len(shape) - rank], *_output_size(shape, rank, kernel_size, stride, padding, output_size)


def _check_positions(rank: int, input: Tensor, indices: Tensor, *sizes: Any) -> None:
    """Raise ``RuntimeError`` for the first index that is not a position in the output."""
    spatial = _unpooled_shape(rank, input, indices, *sizes)[input.ndim - rank :]
    count = math.prod(spatial)
    for index in indices.reshape((-1,)).tolist():
        if not 0 <= index < count:
            raise RuntimeError(
                f"Found an invalid max index: {index} (output volumes are of size {'x'.join(map(str, spatial))})"
            )


def _max_unpool(rank: int, input: Tensor, indices: Tensor, *sizes: Any) -> Tensor:
    shape = _unpooled_shape(rank, input, indices, *sizes)
    lead = shape[: len(shape) - rank]
    flat = (*lead, math.prod(input.shape[len(lead) :]))
    # put_planes() refuses indices out of bounds; the record's check then names the first one.
    out: Tensor = put_planes(input.reshape(flat), indices.reshape(flat), math.prod(shape[len(lead) :])).reshape(shape)
    return out


@operator(
    by(lambda *args: _unpooled_shape(1, *args)),
    check=lambda *args: _check_positions(1, *args),
    promote=highest,
    out=False,
    namespace="nn.functional",
    autocast=Autocast(host="float32"),
)
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, L) or (C, L) at the positions where :func:`max_pool1d` found them, and 0 elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@operator(
    by(lambda *args: _unpooled_shape(2, *args)),
    check=lambda *args: _check_positions(2, *args),
    promote=highest,
    out=False,
    namespace="nn.functional",
    autocast=Autocast(host="float32"),
)
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, H, W) or (C, H, W) at the positions where :func:`max_pool2d` found them, and 0 elsewhere.

    Several sizes pool to the same size: ``output_size`` selects one of them.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@operator(
    by(lambda *args: _unpooled_shape(3, *args)),
    check=lambda *args: _check_positions(3, *args),
    promote=highest,
    out=False,
    namespace="nn.functional",
    autocast=Autocast(host="float32"),
)
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, D, H, W) or (C, D, H, W) at the positions where :func:`max_pool3d` found them."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
