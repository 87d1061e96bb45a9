"""Linear maps, embedding, normalisation and dropout, as in ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from candelabra.dtypes import PYTHON_NAMES
from candelabra.keys import NO_GRAD, mode
from candelabra.nn.operators import embedding as lookup
from candelabra.nn.operators.normalization import normalize
from candelabra.ops.creation import cast, copied

if TYPE_CHECKING:
    from candelabra.tensor import Tensor


# -- linear -----------------------------------------------------------------------------------------------------------
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: input (*, in), weight (out, in) or (in), bias (out) or ()."""
    if weight.dtype is not input.dtype:
        a, b = (PYTHON_NAMES[t.dtype.name].lower() for t in (input, weight))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    out: Tensor = input @ (weight.t() if weight.ndim == 2 else weight)
    return out if bias is None else out + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[o] @ input2`` for each o: inputs (*, a) and (*, b), weight (out, a, b), bias (out)."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}"
        )
    if weight.ndim != 3 or weight.shape[1] != input1.shape[-1] or weight.shape[2] != input2.shape[-1]:
        raise RuntimeError(
            f"bilinear(): inputs of size {input1.shape[-1]} and {input2.shape[-1]} do not match weight of size "
            f"{list(weight.shape)}"
        )
    count, width, other = weight.shape
    halfway = input1 @ weight.permute(1, 0, 2).reshape((width, count * other))
    out = (halfway.reshape((*input1.shape[:-1], count, other)) * input2.unsqueeze(-2)).sum(-1)
    return out if bias is None else out + bias


# -- embedding --------------------------------------------------------------------------------------------------------
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` (rows, width) that ``input``, of int64 or int32, names: shape (*input.shape, width).

    The row ``padding_idx`` gets no gradient. With ``max_norm`` the rows looked up are first scaled down, in place, to
    that norm. ``sparse`` gradients are refused: there are no sparse tensors.
    """
    if isinstance(padding_idx, bool) or (
        padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]
    ):
        raise AssertionError("Padding_idx must be within num_embeddings")
    if input.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{PYTHON_NAMES[input.dtype.name]} instead (while checking arguments for embedding)"
        )
    if sparse:
        raise RuntimeError("embedding(): sparse gradients are not supported, use sparse=False")
    if max_norm is not None:
        _shrink_rows(weight, input, max_norm, norm_type)
    row = -1 if padding_idx is None else padding_idx % weight.shape[0]
    out: Tensor = lookup.embedding(weight, input, row, bool(scale_grad_by_freq))
    return out


def _shrink_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up down to ``max_norm``, in place and unseen by autograd."""
    with mode(include=NO_GRAD):
        picked = input.reshape((-1 if input.numel() else 0,))
        rows = lookup.embedding(weight, picked)
        if norm_type == float("inf"):
            norms = rows.abs().amax(1, True)
        else:
            norms = (rows.abs() ** norm_type).sum(1, True) ** (1.0 / norm_type)
        scale = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1.0)
        weight.index_put_((picked,), rows * scale)


# -- normalisation ----------------------------------------------------------------------------------------------------
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dims, whose sizes are ``normalized_shape``; ``weight`` and ``bias`` have that shape."""
    dims = _normalized_dims(input, normalized_shape, weight, bias)
    out: Tensor = normalize.function(input, weight, bias, dims, eps).values
    return out


def _normalized_dims(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> tuple[int, ...]:
    """The last dims, whose sizes must be ``normalized_shape``, as must those of ``weight`` and ``bias``."""
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given._payload.shape) != wanted:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(given.shape)} "
                f"and normalized_shape = {list(wanted)}"
            )
    shape = tuple(input._payload.shape)
    first = len(shape) - len(wanted)
    if first < 0 or shape[first:] != wanted:
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape [*, {', '.join(map(str, wanted))}], but "
            f"got input of size{list(shape)}"
        )
    return tuple(range(first, len(shape)))


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last dims; ``eps`` is the dtype's smallest step unless given."""
    dims = _normalized_dims(input, normalized_shape, weight, None)
    if eps is None:
        eps = _STEPS[input.dtype.name]
    out = input * ((input * input).mean(dims, True) + eps).rsqrt()
    return out if weight is None else out * weight


_STEPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each of ``num_groups`` groups of channels of (N, C, *); ``weight`` and ``bias`` are per channel."""
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
    spatial = tuple(input.shape[2:])
    grouped = input.reshape((batch, num_groups, channels // num_groups, *spatial))
    over = (1, num_groups, channels // num_groups, *[1] * len(spatial))
    affine = [None if t is None else t.reshape(over) for t in (weight, bias)]
    out = normalize(grouped, affine[0], affine[1], tuple(range(2, grouped.ndim)), eps).values
    return out.reshape(input.shape)


def _per_channel(name: str, value: Tensor | None, channels: int, rank: int) -> Tensor | None:
    if value is None:
        return None
    if tuple(value.shape) != (channels,):
        raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
    return value.reshape((channels, *[1] * (rank - 2)))


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
    """Normalise each channel (dim 1): by the batch's statistics when ``training``, else by the running ones.

    In training the running statistics move towards the batch's (the unbiased variance) by ``momentum``, in place.
    """
    channels, rank = input.shape[1], input.ndim
    affine = [_per_channel(n, t, channels, rank) for n, t in (("weight", weight), ("bias", bias))]
    stored = [
        _per_channel(n, t, channels, rank) for n, t in (("running_mean", running_mean), ("running_var", running_var))
    ]
    if not training:
        for name, value in (("running_mean", running_mean), ("running_var", running_var)):
            if value is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        mean, variance = stored
        assert mean is not None
        assert variance is not None
        scale = (variance + eps).rsqrt()
        if affine[0] is not None:
            scale = scale * affine[0]
        out = (input - mean) * scale
        return out if affine[1] is None else out + affine[1]
    count = input.numel() // max(channels, 1)
    if count <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    values, mean, rstd = normalize(input, affine[0], affine[1], (0, *range(2, rank)), eps)
    _move_statistics(running_mean, running_var, mean, rstd, momentum, eps, count)
    result: Tensor = values
    return result


def _move_statistics(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    momentum: float,
    eps: float,
    n: int,
) -> None:
    with mode(include=NO_GRAD):
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean.reshape(running_mean.shape) * momentum)
        if running_var is not None:
            unbiased = (1 / (rstd * rstd) - eps) * (n / (n - 1))
            running_var.mul_(1 - momentum).add_(unbiased.reshape(running_var.shape) * momentum)


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
    """Normalise each channel of each sample of (N, C, *); with ``use_input_stats=False`` by the running statistics."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    rank, channels = input.ndim, input.shape[1]
    count = 1
    for size in input.shape[2:]:
        count *= size
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    affine = [_per_channel(n, t, channels, rank) for n, t in (("weight", weight), ("bias", bias))]
    values, mean, rstd = normalize(input, affine[0], affine[1], tuple(range(2, rank)), eps)
    if running_mean is not None or running_var is not None:
        with mode(include=NO_GRAD):
            variance = (1 / (rstd * rstd) - eps).mean(0)
            _move_statistics(running_mean, running_var, mean.mean(0), (variance + eps).rsqrt(), momentum, eps, count)
    result: Tensor = values
    return result


# -- dropout ----------------------------------------------------------------------------------------------------------
def masked_dropout(input: Tensor, mask: Tensor, p: float) -> Tensor:
    """``input * mask / (1 - p)``: what is kept of dropout once the mask (1 with probability 1 - p, else 0) is drawn."""
    return input * (cast(mask, dtype=input.dtype) * (0.0 if p == 1 else 1.0 / (1.0 - p)))


def _dropped(input: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout with a mask of ``shape``, which broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    from candelabra.fronts.random import rand

    mask = rand(*shape, device=input.device) >= p
    out = masked_dropout(input, mask, p)
    if inplace:
        written: Tensor = copied.form("inplace")(input, out)
        return written
    return out


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements set to 0 with probability ``p``, the others divided by ``1 - p``; nothing unless ``training``."""
    return _dropped(input, tuple(input.shape), p, training, inplace)


def _channels(name: str, input: Tensor, ranks: tuple[int, ...]) -> tuple[int, ...]:
    if input.ndim not in ranks:
        raise RuntimeError(
            f"{name}: Expected {' or '.join(f'{r}D' for r in ranks)} input, but received a {input.ndim}D input"
        )
    lead = 2 if input.ndim == ranks[-1] else 1
    return (*input.shape[:lead], *[1] * (input.ndim - lead))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, L) or (C, L)."""
    return _dropped(input, _channels("dropout1d", input, (2, 3)), p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, H, W) or (C, H, W)."""
    return _dropped(input, _channels("dropout2d", input, (3, 4)), p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropped(input, _channels("dropout3d", input, (4, 5)), p, training, inplace)
