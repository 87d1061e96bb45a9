"""Normalisations that also return their statistics: PyTorch's ``native_*_norm``.

The statistics are the mean and the reciprocal of the standard deviation. They are computed in float32 for half types.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.views import check_targets
from candelabra._operators.creation.filled import new_full
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, normalized_dims, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class NativeNormOutput(NamedTuple):
    """The normalised input, the mean, and the reciprocal of the standard deviation."""

    out: Tensor
    mean: Tensor
    rstd: Tensor


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype.is_half else x


def _statistics(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (mean, variance, reciprocal of the standard deviation) over ``dims``, which are kept with size 1."""
    mean = x.mean(tuple(dims), keepdim=True)
    variance = (x - mean).square().mean(tuple(dims), keepdim=True)
    return mean, variance, (variance + eps).rsqrt()


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int], like: Tensor) -> Tensor:
    """Return ``x * weight + bias`` in the dtype of ``like``; weight and bias are reshaped to ``shape``, which
    broadcasts.
    """
    if weight is not None:
        x = x * weight.reshape(*shape)
    if bias is not None:
        x = x + bias.reshape(*shape)
    return x if x.dtype is like.dtype else x.to(like.dtype)


@by
def _layer_shapes(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Shapes:
    shape, dims = shape_of(input), normalized_dims(input, normalized_shape, weight, bias)
    statistics = (*shape[: dims[0]], *[1] * len(dims))
    return shape, statistics, statistics


@operator(_layer_shapes, promote=unpromoted, result=(same, same, same), method=False, autocast=Autocast("float32"))
def native_layer_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None, bias: Tensor | None, eps: float
) -> NativeNormOutput:
    """Return (normalised, mean, 1 / standard deviation) over the last dims, whose sizes are ``normalized_shape``.

    Raises ``RuntimeError`` if the last sizes of the input or the shapes of ``weight`` and ``bias`` are different.
    """
    _layer_shapes(native_layer_norm, (input, normalized_shape, weight, bias, eps))
    wide, shape = _wide(input), tuple(normalized_shape)  # type: ignore[arg-type] # canonical: a tuple
    mean, _, scale = _statistics(wide, range(-len(shape), 0), eps)
    out = _affine((wide - mean) * scale, weight, bias, shape, input)
    return NativeNormOutput(out, mean.detach().to(input.dtype), scale.detach().to(input.dtype))


@by
def _group_shapes(input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Shapes:
    if C % group or input.numel() != N * C * HxW:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, and {N}x{C}x{HxW} elements, but got "
            f"input of shape {list(input.shape)} and num_groups={group}"
        )
    return shape_of(input), (N, group), (N, group)


@operator(_group_shapes, promote=unpromoted, result=(same, same, same), method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> NativeNormOutput:
    """Return (normalised, mean, 1 / standard deviation) over groups of channels of an input (N, C, …), HxW elements
    each.
    """
    _group_shapes(native_group_norm, (input, weight, bias, N, C, HxW, group, eps))
    wide = _wide(input).reshape(N, group, C // group * HxW)
    mean, _, scale = _statistics(wide, (-1,), eps)
    normalised = ((wide - mean) * scale).reshape(input.shape)
    out = _affine(normalised, weight, bias, (C, *[1] * (input.ndim - 2)), input)
    return NativeNormOutput(out, *(s.reshape(N, group).to(input.dtype) for s in (mean, scale)))


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
) -> NativeNormOutput:
    """Return (normalised, mean, 1 / standard deviation) over all dims except the second, the channels.

    In training, the statistics of the batch are used and returned, and update the running ones with weight
    ``momentum``. Otherwise the running ones are used, and the other two results are empty. Raises ``RuntimeError`` if
    they are None.
    """
    dims = [d for d in range(input.ndim) if d != 1]
    shape = (1, -1, *[1] * (input.ndim - 2))
    wide = _wide(input)
    if training:
        mean, variance, scale = _statistics(wide, dims, eps)
        count = prod(input.shape[d] for d in dims)
        for name, running in (("running_mean", running_mean), ("running_var", running_var)):
            if running is not None and tuple(running.shape) != (input.shape[1],):
                raise RuntimeError(f"{name} should contain {input.shape[1]} elements not {running.numel()}")
        check_targets(running_mean, running_var)
        _update(running_mean, mean, momentum)
        _update(running_var, variance * (count / max(count - 1, 1)), momentum)
        saved = [s.detach().reshape(-1).to(input.dtype) for s in (mean, scale)]
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "native_batch_norm(): expected running_mean and running_var if training is False, got None"
            )
        mean, scale = _wide(running_mean).reshape(shape), (_wide(running_var) + eps).rsqrt().reshape(shape)
        saved = [new_full(input, (0,), 0), new_full(input, (0,), 0)]
    return NativeNormOutput(_affine((wide - mean) * scale, weight, bias, shape, input), *saved)


def _update(running: Tensor | None, batch: Tensor, momentum: float) -> None:
    """Update a running statistic with that of a batch."""
    if running is not None:
        running.copy_(running * (1 - momentum) + batch.detach().reshape(-1) * momentum)
