"""Fractional max pooling: windows of one size at random positions. Graham, Fractional max-pooling, 2014."""

from __future__ import annotations

from candelabra.dtypes import int64
from candelabra.library import float32_on_host, public, shape_of
from candelabra.nn._functional.sizes import Ints
from candelabra.nn._operators.window_maxima import placed_max_pool, window_starts
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _tuple_of(name: str, argument: str, value: Any, rank: int) -> Ints:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    if len(given) == 1:
        given *= rank
    if len(given) != rank or not all(hasattr(v, "__index__") for v in given):
        form = "tuple of Ints" if rank == 2 else "tuple of three Ints"
        raise RuntimeError(f"{name}: {argument} must either be a single Int or {form}")
    return tuple([v.__index__() for v in given])


def _output_size(name: str, input: Tensor, rank: int, output_size: Any, output_ratio: Any) -> Any:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * rank
    if len(ratios) != rank:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    return tuple([int(s * r) for s, r in zip(shape_of(input)[input.ndim - rank :], ratios, strict=True)])


def _check(name: str, input: Tensor, rank: int, kernel: Ints, output: Ints) -> None:
    shape = shape_of(input)
    for dim in range(len(shape) - rank - 1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(shape)} with "
                f"dimension {dim} being empty."
            )
    for what, n, k, m in zip(NAMES[rank], shape[len(shape) - rank :], kernel, output, strict=True):
        if k < 1:
            raise RuntimeError(f"{name}(): pool {what} must be positive, not {k}")
        if m < 0:
            raise RuntimeError(f"{name}(): output {what} must not be negative, but it is {m}")
        if m + k - 1 > n - (rank == 3):  # PyTorch refuses as many windows of a volume as there are positions
            raise RuntimeError(f"{name}(): pool {what} {k} too large relative to input {what} {n}")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.title}'")


def _check_samples(samples: Tensor, input: Tensor, rank: int, batch: int, channels: int) -> None:
    shape = shape_of(samples)
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(shape)}")
    if shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if shape[2] != rank:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {rank}; got {shape[2]}.")


def _fractional_max_pool(
    rank: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{rank}d"
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(input.shape)}")
    input, samples = float32_on_host(input), None if samples is None else float32_on_host(samples)
    given = _output_size(name, input, rank, output_size, output_ratio)
    kernel = _tuple_of(name, "kernel_size", kernel_size, rank)
    output = _tuple_of(name, "output_size", given, rank)
    _check(name, input, rank, kernel, output)
    shape = shape_of(input)
    sizes, channels = shape[len(shape) - rank :], shape[len(shape) - rank - 1]
    batch = shape[0] if len(shape) == rank + 2 else 1
    if samples is None:
        from candelabra import rand_like

        samples = rand_like(input.new_empty((batch, channels, rank)))
    _check_samples(samples, input, rank, batch, channels)
    pooled = (*shape[: len(shape) - rank], *output)
    if 0 in pooled:
        return input.new_zeros(pooled), input.new_zeros(pooled, dtype=int64)
    if samples.shape[0] != batch:
        samples = samples.narrow(0, 0, batch)
    starts = window_starts(samples, sizes, kernel, output)
    if len(shape) == rank + 2:
        return placed_max_pool(input, starts, kernel, output)
    values, indices = placed_max_pool(input.unsqueeze(0), starts, kernel, output)
    return values.squeeze(0), indices.squeeze(0)


@public(namespace="nn.functional")
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """As :func:`fractional_max_pool2d`, but always a pair (values, indices)."""
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@public(namespace="nn.functional")
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """As :func:`fractional_max_pool3d`, but always a pair (values, indices)."""
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@public(namespace="nn.functional")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of (N, C, H, W) or (C, H, W) at random positions, which differ for each channel.

    The result has the given size, or that of the input times ``output_ratio``. ``_random_samples`` (N, C, 2) are the
    uniform numbers from which the positions follow. With ``return_indices`` a pair (values, indices into the H × W
    plane).
    """
    found = _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@public(namespace="nn.functional")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maximum of windows of (N, C, D, H, W) or (C, D, H, W) at random positions; see
    :func:`fractional_max_pool2d`.
    """
    found = _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
