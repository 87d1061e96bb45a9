"""Max pooling undone as far as it can be, as in ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.dtypes import PYTHON_NAMES, int64
from candelabra.library import public
from candelabra.nn._functional.sizes import Ints, Sizes, per_dim
from candelabra.nn._operators.pooling import scatter_planes
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _output_size(input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, given: Any) -> Ints:
    """The size that the pooled input had: the smallest that fits, unless given."""
    kernel, around = per_dim(kernel_size, rank), per_dim(padding, rank)
    steps = kernel if stride is None else per_dim(stride, rank)
    if kernel is None or steps is None or around is None:
        raise RuntimeError(f"max_unpool{rank}d: kernel_size, stride and padding must be one or {rank} ints")
    sizes = zip(input.shape[input.ndim - rank :], kernel, steps, around, strict=True)
    smallest = tuple((n - 1) * s + k - 2 * p for n, k, s, p in sizes)
    if given is None:
        return smallest
    wanted = tuple(given)[2:] if len(given) == rank + 2 else tuple(given)
    if len(wanted) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(given)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(wanted, smallest, steps, strict=True)):
        if abs(size - usual) >= step:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {dim} must be between {usual - step} and {usual + step})'
            )
    return wanted


def _max_unpool(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    shape = tuple(input.shape)
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dimensions."
        )
    if indices.dtype is not int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {PYTHON_NAMES[indices.dtype.name]}")
    if tuple(indices.shape) != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    lead, sizes = shape[: len(shape) - rank], _output_size(input, rank, kernel_size, stride, padding, output_size)
    count, size = 1, 1
    for n in shape[len(lead) :]:
        count *= n
    for n in sizes:
        size *= n
    if indices.numel():
        worst = [int(i) for i in (indices.amin().item(), indices.amax().item()) if not 0 <= i < size]
        if worst:
            raise RuntimeError(
                f"Found an invalid max index: {worst[0]} (output volumes are of size {'x'.join(map(str, sizes))})"
            )
    flat: Tensor = scatter_planes(input.reshape((*lead, count)), indices.reshape((*lead, count)), size, True)
    return flat.reshape((*lead, *sizes))


@public(namespace="nn.functional")
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, L) or (C, L) put back where :func:`max_pool1d` found them, and zeros elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@public(namespace="nn.functional")
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, H, W) or (C, H, W) put back where :func:`max_pool2d` found them, and zeros elsewhere.

    Several sizes pool to the same one: ``output_size`` says which it was.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@public(namespace="nn.functional")
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """The values of (N, C, D, H, W) or (C, D, H, W) put back where :func:`max_pool3d` found them."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
