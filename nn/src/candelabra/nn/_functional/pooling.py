"""Pooling for each number of spatial dims, with PyTorch's arguments and errors."""

from __future__ import annotations

from math import prod

from candelabra.library import AUTOGRAD, NO_GRAD, float32_on_host, public, state
from candelabra.nn._functional.sizes import Ints, Sizes, per_dim
from candelabra.nn._operators import pooling
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor


_NUMBERS = {1: "one int", 2: "two ints", 3: "three ints"}


def _refuse_window(name: str, argument: str, rank: int, optional: bool = False) -> Any:
    """Raise ``RuntimeError`` for a size that is neither one int nor one for each spatial dim."""
    how = "either be omitted, a single int, or" if optional else "either be a single int, or"
    raise RuntimeError(f"{name}: {argument} must {how} a tuple of {_NUMBERS[rank]}")


def _check_input(name: str, input: Tensor, rank: int) -> None:
    shape = input._payload.shape
    if name == "max_pool2d" and len(shape) not in (3, 4):
        raise RuntimeError(f"non-empty 3D or 4D (batch mode) tensor expected for input, but got {list(shape)}")
    if len(shape) not in (rank + 1, rank + 2) or 0 in shape[len(shape) - rank - 1 :]:
        if rank == 3 and len(shape) in (4, 5) and name.startswith("max"):
            raise RuntimeError(
                f"{name}: Expected input's non-batch dimensions to have positive length, but input has a shape of "
                f"{list(shape)} and non-batch dimension {shape[len(shape) - 4 :].index(0) + len(shape) - 4} has length "
                "zero!"
            )
        if rank == 3:
            raise RuntimeError(f"non-empty 4D or 5D (batch mode) tensor expected for input, but got {list(shape)}")
        raise RuntimeError(
            f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(shape)}"
        )


def _check_positive(name: str, kernel: Ints, steps: Ints, dilations: Ints) -> None:
    if min(kernel) <= 0:
        raise RuntimeError(f"{name}() kernel_size must be greater than zero, but got {min(kernel)}")
    if name == "max_pool1d" and min(steps + dilations) <= 0:
        what, value = ("stride", steps[0]) if steps[0] <= 0 else ("dilation", dilations[0])
        raise RuntimeError(f"{name}() {what} must be greater than zero, but got {value}")
    if min(steps) <= 0:
        raise RuntimeError("stride should not be zero" if 0 in steps else f"stride must be positive, not {list(steps)}")
    if min(dilations) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilations)}")


def _geometry(
    name: str, input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Check the arguments. Return kernel, stride, padding, dilation and the number of windows, per dim."""
    kernel = per_dim(kernel_size, rank) or _refuse_window(name, "kernel_size", rank)
    omitted = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if omitted else per_dim(stride, rank) or _refuse_window(name, "stride", rank, True)
    paddings = per_dim(padding, rank) or _refuse_window(name, "padding", rank)
    dilations = per_dim(dilation, rank) or _refuse_window(name, "dilation", rank)
    _check_positive(name, kernel, steps, dilations)
    for k, p, d in zip(kernel, paddings, dilations, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    _check_input(name, input, rank)
    shape = input._payload.shape
    output_size = tuple(map(pooling.pooled_size, shape[-rank:], kernel, steps, paddings, dilations, [ceil_mode] * rank))
    if min(output_size) < 1:
        if name == "max_pool1d":
            raise RuntimeError(f"Invalid computed output size: {output_size[0]}")
        sizes = shape[len(shape) - rank - 1 :]
        counts = (sizes[0], *output_size)
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, sizes))}). Calculated output size: "
            f"({'x'.join(map(str, counts))}). Output size is too small"
        )
    return kernel, steps, paddings, dilations, output_size


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if rank == 3 and not return_indices:
        input = float32_on_host(input)
    geometry = _geometry(f"max_pool{rank}d", input, rank, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return tuple(pooling.max_pool.canonical(input, *geometry))
    if (input._keys & AUTOGRAD) and not (state.bits & NO_GRAD):
        return pooling.max_pool.canonical(input, *geometry).values
    return pooling.max_pool_values.canonical(input, *geometry)


@public(method=False, aliases=("nn.functional.max_pool1d_with_indices",))
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """As :func:`max_pool1d`, but always a pair (values, indices)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)  # type: ignore[no-any-return]


@public(namespace="nn.functional")
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """As :func:`max_pool2d`, but always a pair (values, indices)."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)  # type: ignore[no-any-return]


@public(namespace="nn.functional")
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """As :func:`max_pool3d`, but always a pair (values, indices)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)  # type: ignore[no-any-return]


@public(method=False, aliases=("nn.functional.max_pool1d",))
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, L) or (C, L); with ``return_indices`` a pair (values, indices)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public(method=False, aliases=("nn.functional.max_pool2d",))
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, H, W) or (C, H, W); ``stride`` is the kernel's size unless given.

    NaN propagates. With ``return_indices`` the result is a pair (values, indices into the flattened H × W plane).
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public(method=False, aliases=("nn.functional.max_pool3d",))
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W); see :func:`max_pool2d`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _are_inside(sizes: Ints, kernel: Ints, steps: Ints, paddings: Ints, dilations: Ints, counts: Ints) -> bool:
    """Return whether all windows are inside of the padded input. In ceil mode the last ones may exceed it."""
    each = zip(sizes, kernel, steps, paddings, counts, strict=True)
    return all((c - 1) * s + k <= n + 2 * p for n, k, s, p, c in each)


def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Tensor:
    if rank == 3:
        input = float32_on_host(input)
    geometry = _geometry(f"avg_pool{rank}d", input, rank, kernel_size, stride, padding, 1, ceil_mode)
    kernel, steps, paddings, dilations, output_size = geometry
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    total = pooling.sum_pool.canonical(input, *geometry)
    spatial = input._payload.shape[-rank:]
    if divisor_override is not None:
        divisor: Any = divisor_override
    elif (count_include_pad or not any(paddings)) and (not ceil_mode or _are_inside(spatial, *geometry)):
        divisor = prod(kernel)
    else:
        # The divisor is the number of elements of the window in the input, with or without its padding.
        counted = tuple(n + 2 * p for n, p in zip(spatial, paddings, strict=True)) if count_include_pad else spatial
        ones = input.new_ones((1, *counted))
        divisor = pooling.sum_pool(
            ones, kernel, steps, (0,) * rank if count_include_pad else paddings, dilations, output_size
        )
    return total / divisor if input.dtype.is_floating_point else total.div(divisor, rounding_mode="trunc")


@public(method=False, aliases=("nn.functional.avg_pool1d",))
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of (N, C, L) or (C, L); see :func:`avg_pool2d`."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@public(namespace="nn.functional", out=True)
def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of (N, C, H, W) or (C, H, W); ``stride`` is the kernel's size unless given.

    Padding counts as zeros, or not at all with ``count_include_pad=False``; ``divisor_override`` replaces the divisor.
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@public(namespace="nn.functional", out=True)
def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W); see :func:`avg_pool2d`."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
