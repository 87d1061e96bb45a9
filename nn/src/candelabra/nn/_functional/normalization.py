"""Normalization over channels and groups of channels."""

from __future__ import annotations

from math import prod

from candelabra.library import NO_GRAD, active_levels, batch_levels, check_targets, mode, public
from candelabra.nn._operators.normalization import check_dtypes, narrowed, normalize, scale_about
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@public(method=False, aliases=("nn.functional.group_norm",))
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize each of ``num_groups`` groups of channels of (N, C, *); ``weight`` and ``bias`` are per channel."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels = input.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(given.shape)} and input of shape {list(input.shape)}"
            )
    check_dtypes(input, weight, bias)
    spatial = tuple(input.shape[2:])
    grouped = input.reshape((batch, num_groups, channels // num_groups, *spatial))
    over = (1, num_groups, channels // num_groups, *[1] * len(spatial))
    affine = [None if t is None else t.reshape(over) for t in (weight, bias)]
    out = normalize(grouped, affine[0], affine[1], tuple(range(2, grouped.ndim)), eps).values
    return narrowed(out, input).reshape(input.shape)


def _check_channels(channels: int, **parameters: Tensor | None) -> None:
    """Raise ``RuntimeError`` unless each parameter has an element per channel."""
    for name, value in parameters.items():
        if value is not None and value._payload.shape != (channels,):
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")


@public(namespace="nn.functional")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel (dim 1): by the batch's statistics in training, else by running statistics.

    In training, the running statistics are updated in place: they move towards the batch's (with the unbiased
    variance) by ``momentum``.
    """
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{input.dtype.title}'")
    check_dtypes(input, running_mean, running_var, weight, bias)
    shape = input._payload.shape
    rank = len(shape)
    channels = shape[1] if rank > 1 else 0
    _check_channels(channels, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    over = (channels, *(1,) * (rank - 2))
    scale = None if weight is None else weight.reshape(over)
    shift = None if bias is None else bias.reshape(over)
    if not training:
        if eps < 0:
            raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
        if running_mean is None:
            raise RuntimeError("running_mean must be defined in evaluation mode")
        if running_var is None:
            raise RuntimeError("running_var must be defined in evaluation mode")
        center, factor = running_mean.reshape(over), (running_var.reshape(over) + eps).rsqrt()
        factor = factor if scale is None else factor * scale
        if shift is None:
            return narrowed((input - center) * factor, input)
        return narrowed(scale_about(input, center, factor, shift), input)
    size = prod(shape)
    count = size // channels if channels else 0
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if not size:
        # An empty batch has no statistics.
        out = input.clone() if scale is None else input * scale
        return narrowed(out if shift is None else out + shift, input)
    if rank < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    values, mean, rstd = normalize.canonical(input, scale, shift, (0, *range(2, rank)), eps)
    if running_mean is not None or running_var is not None:
        _update_statistics(running_mean, running_var, mean, rstd, momentum, eps, count)
    return narrowed(values, input)


def _check_examples(mean: Tensor, *statistics: Tensor | None) -> None:
    """Raise functorch's error if ``vmap`` has statistics for each example, but one running statistic for all."""
    for statistic in statistics:
        if statistic is not None and batch_levels(mean) - batch_levels(statistic):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
                "in place, were not batched. If you are using modules and do not need eval mode, please set "
                "`track_running_stats` to be False"
            )


def _update_statistics(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    momentum: float,
    eps: float,
    n: int,
) -> None:
    with mode(include=NO_GRAD):
        check_targets(running_mean, running_var)
        if active_levels.frames:
            _check_examples(mean, running_mean, running_var)
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean.reshape(running_mean._payload.shape) * momentum)
        if running_var is not None:
            unbiased = (1 / (rstd * rstd) - eps) * (n / (n - 1))
            running_var.mul_(1 - momentum).add_(unbiased.reshape(running_var._payload.shape) * momentum)


@public(namespace="nn.functional")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample of (N, C, *); ``use_input_stats=False`` uses running statistics.

    Otherwise running statistics move towards the means over the batch of the samples' statistics, by ``momentum``.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    rank = input.ndim
    count = 1
    for size in input.shape[2:]:
        count *= size
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    check_dtypes(input, running_mean, running_var, weight, bias)
    channels = input.shape[1]
    _check_channels(channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    over = (channels, *(1,) * (rank - 2))
    affine = [None if t is None else t.reshape(over) for t in (weight, bias)]
    values, mean, rstd = normalize(input, affine[0], affine[1], tuple(range(2, rank)), eps)
    if running_mean is not None and input.shape[0]:  # an empty batch has no statistics
        with mode(include=NO_GRAD):
            variance = (1 / (rstd * rstd) - eps).mean(0)
            _update_statistics(running_mean, running_var, mean.mean(0), (variance + eps).rsqrt(), momentum, eps, count)
    return narrowed(values, input)


@public(name="batch_norm", method=False)
def batch_norm_in_order(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """``nn.functional.batch_norm`` with another order of arguments; ``cudnn_enabled`` has no effect."""
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@public(name="instance_norm", method=False)
def instance_norm_in_order(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """``nn.functional.instance_norm`` with another order of arguments; ``cudnn_enabled`` has no effect."""
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
