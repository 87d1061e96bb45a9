"""Normalisations that give their statistics too, as PyTorch's ``native_*`` functions do.

The results of layers, groups and batches come with the mean and the reciprocal of the standard deviation that were
used. Half types are averaged in float32.
"""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.primitives import creation
from candelabra._records.callables import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor


class Normalized(NamedTuple):
    """What was normalised, the mean, and the reciprocal of the standard deviation."""

    out: Tensor
    mean: Tensor
    rstd: Tensor


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize == 2 else x


def _statistics(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(mean, variance, reciprocal of the standard deviation) over ``dims``, which stay with size 1."""
    mean = x.mean(tuple(dims), keepdim=True)
    variance = (x - mean).square().mean(tuple(dims), keepdim=True)
    return mean, variance, (variance + eps).rsqrt()


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int], like: Tensor) -> Tensor:
    if weight is not None:
        x = x * weight.reshape(*shape)
    if bias is not None:
        x = x + bias.reshape(*shape)
    return x if x.dtype is like.dtype else x.to(like.dtype)


@public(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Normalized:
    """(normalised, mean, 1 / standard deviation) over the last dims, whose sizes are ``normalized_shape``.

    Raises ``RuntimeError`` where the input's last sizes are others, or those of ``weight`` or ``bias``.
    """
    shape = tuple(normalized_shape)
    rank = len(shape)
    if not rank:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(given.shape)} "
                f"and normalized_shape = {list(shape)}"
            )
    if tuple(input.shape[-rank:]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {str(list(shape))[1:]}, "
            f"but got input of size{list(input.shape)}"
        )
    wide = _wide(input)
    mean, _, scale = _statistics(wide, range(-rank, 0), eps)
    out = _scaled((wide - mean) * scale, weight, bias, shape, input)
    return Normalized(out, mean.detach().to(input.dtype), scale.detach().to(input.dtype))


@public(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Normalized:
    """(normalised, mean, 1 / standard deviation) over groups of channels of an input (N, C, …), HxW elements each."""
    if C % group or input.numel() != N * C * HxW:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, and {N}x{C}x{HxW} elements, but got "
            f"input of shape {list(input.shape)} and num_groups={group}"
        )
    wide = _wide(input).reshape(N, group, C // group * HxW)
    mean, _, scale = _statistics(wide, (-1,), eps)
    normalised = ((wide - mean) * scale).reshape(input.shape)
    out = _scaled(normalised, weight, bias, (C, *[1] * (input.ndim - 2)), input)
    return Normalized(out, *(s.reshape(N, group).to(input.dtype) for s in (mean, scale)))


@public(method=False, out=True)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Normalized:
    """(normalised, mean, 1 / standard deviation) over all dims but the second, the channels.

    In training the batch's statistics are used, handed back and mixed into the running ones by ``momentum``; else the
    running ones are used, and the other two results are empty. Raises ``RuntimeError`` without running statistics then.
    """
    dims = [d for d in range(input.ndim) if d != 1]
    shape = (1, -1, *[1] * (input.ndim - 2))
    wide = _wide(input)
    if training:
        mean, variance, scale = _statistics(wide, dims, eps)
        count = prod(input.shape[d] for d in dims)
        _mixed(running_mean, mean, momentum)
        _mixed(running_var, variance * (count / max(count - 1, 1)), momentum)
        saved = [s.detach().reshape(-1).to(input.dtype) for s in (mean, scale)]
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("native_batch_norm(): running_mean and running_var are needed where training is False")
        mean, scale = _wide(running_mean).reshape(shape), (_wide(running_var) + eps).rsqrt().reshape(shape)
        none = creation.full((0,), 0, dtype=input.dtype, device=input.device)
        saved = [none, none.clone()]
    return Normalized(_scaled((wide - mean) * scale, weight, bias, shape, input), *saved)


def _mixed(running: Tensor | None, batch: Tensor, momentum: float) -> None:
    if running is not None:
        running.copy_(running * (1 - momentum) + batch.detach().reshape(-1) * momentum)
