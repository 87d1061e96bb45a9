"""Batch normalization by the statistics of all ranks of a process group."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor


def batch_norm_over_ranks(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: Any,
) -> Tensor:
    """Normalize (N, C, *) by mean and variance per channel over all ranks' batches, and update the running statistics.

    The variance is that of the centered values, which needs a second sum over the ranks but does not cancel. Half types
    compute in float32.
    """
    from candelabra.distributed.nn.functional import all_reduce

    x = input.float() if input.dtype.is_half else input
    channels, dims = x.shape[1], [dim for dim in range(x.ndim) if dim != 1]
    shape = (1, channels, *[1] * (x.ndim - 2))
    count = x.new_full((1,), float(x.numel() // channels))
    sums = all_reduce(cd.cat([x.sum(dims), count]), group=group)
    total = sums[-1].detach()
    mean = sums[:-1] / total
    centered = x - mean.view(shape)
    var = all_reduce((centered * centered).sum(dims), group=group) / total
    if running_mean is not None and running_var is not None:
        with cd.no_grad():
            running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
            unbiased = var * (total / (total - 1))
            running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)
    out = centered * (var + eps).rsqrt().view(shape)
    if weight is not None:
        out = out * weight.view(shape)
    if bias is not None:
        out = out + bias.view(shape)
    return out.to(input.dtype)
