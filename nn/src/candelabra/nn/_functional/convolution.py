"""Convolutions for each number of spatial dims, with PyTorch's arguments and errors."""

from __future__ import annotations

from candelabra import is_autocast_enabled, unsqueeze
from candelabra.dtypes import DTYPE_MASK
from candelabra.library import public, record, shape_of
from candelabra.nn._functional.sizes import Ints, Sizes, per_dim
from candelabra.nn._operators import convolution
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _sizes(value: Any, rank: int, name: str, least: int) -> Ints:
    """Return one int per spatial dim. Raises ``RuntimeError`` for another number of values, and for smaller ones."""
    sizes = per_dim(value, rank)
    if sizes is None:
        shown = list(value) if isinstance(value, (tuple, list)) else value
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {name}={shown}"
        )
    if min(sizes) < least:
        raise RuntimeError(f"{'non-positive' if least else 'negative'} {name} is not supported")
    return sizes


def _fitting(
    name: str, input: Tensor, weight: Tensor, bias: Tensor | None, rank: int, channels: int, kind: str
) -> tuple[Tensor, bool]:
    """Return the input with a batch dim, and whether it had one. Raises ``RuntimeError`` for operands of other dims or
    dtypes, and for another bias than of ``channels`` elements.
    """
    shape, kernel = input._payload.shape, weight._payload.shape
    if len(shape) != rank + 2 and len(shape) != rank + 1:
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    batched = len(shape) == rank + 2
    if not batched:
        input = unsqueeze(input, 0)
    if len(kernel) != rank + 2:
        raise RuntimeError(
            f"Expected {rank + 2}-dimensional weight for {rank + 2}-dimensional input {list(input.shape)}, but got "
            f"weight of size {list(weight.shape)} instead"
        )
    if (input._keys ^ weight._keys) & DTYPE_MASK and not _is_cast(input, weight):
        raise _mixed(input, "weight", weight)
    if bias is not None:
        if (input._keys ^ bias._keys) & DTYPE_MASK and not _is_cast(input, bias):
            raise _mixed(input, "bias", bias)
        if bias._payload.shape != (channels,):
            raise RuntimeError(
                f"Given {kind}weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {channels} "
                f"elements, but got bias of size {list(bias.shape)} instead"
            )
    return input, batched


def _is_cast(input: Tensor, other: Tensor) -> bool:
    """Return whether autocast gives two tensors of different floating dtypes one dtype."""
    floating = input.is_floating_point() and other.is_floating_point()
    return floating and is_autocast_enabled(input.device.type)


def _mixed(input: Tensor, name: str, other: Tensor) -> RuntimeError:
    return RuntimeError(
        f"Input type ({input.dtype.title.lower()}) and {name} type ({other.dtype.title.lower()}) should be the same"
    )


def _same_padding(input: Tensor, weight: Tensor, stride: Ints, dilation: Ints) -> tuple[Tensor, Ints]:
    """Return the input and the padding that keeps its size. If the total is odd, the input gets one zero at its end."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(t % 2 for t in total):
        shape = (*input.shape[:2], *[s + t % 2 for s, t in zip(input.shape[2:], total, strict=True)])
        whole = tuple(slice(0, s, 1) for s in input.shape)
        input = record("basic_index_adjoint")(input, shape, whole)
    return input, tuple(t // 2 for t in total)


def _conv(
    rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    kernel = weight._payload.shape
    input, batched = _fitting(f"conv{rank}d", input, weight, bias, rank, kernel[0] if kernel else 0, "")
    steps = _sizes(stride, rank, "stride", 1)
    dilations = _sizes(dilation, rank, "dilation", 1)
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        paddings = (0,) * rank
        if padding == "same":
            input, paddings = _same_padding(input, weight, steps, dilations)
    else:
        paddings = _sizes(padding, rank, "padding", 0)
    if 0 in kernel:  # empty sums, which the device's kernel computes; it refuses all other sizes that do not fit
        convolution.check_geometry(shape_of(input), kernel, paddings, dilations, groups)
    out: Tensor = convolution.conv.canonical(input, weight, bias, steps, paddings, dilations, groups)
    return out if batched else record("squeeze")(out, (0,))


@public(method=False, aliases=("nn.functional.conv1d",))
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, L) or (C, L) with (O, C / groups, k). ``padding`` may be "same" or "valid"."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@public(method=False, aliases=("nn.functional.conv2d",))
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, H, W) or (C, H, W) with (O, C / groups, kH, kW).

    ``padding`` is the number of zeros (per dim), "valid" for none or "same" for as many as keep the size at stride 1.
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@public(method=False, aliases=("nn.functional.conv3d",))
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, D, H, W) or (C, D, H, W) with (O, C / groups, kD, kH, kW)."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


_AXES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def _check_output_padding(extra: Ints, stride: Ints, dilation: Ints) -> None:
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        axes = _AXES[len(extra)]
        shown = [
            f"{name}_{axis}: {value}"
            for name, values in (("output_padding", extra), ("stride", stride), ("dilation", dilation))
            for axis, value in zip(axes, values, strict=True)
        ]
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {' '.join(shown)}")


def _conv_transpose(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    kernel = weight._payload.shape
    channels = kernel[1] * groups if len(kernel) > 1 else 0
    title = f"conv_transpose{rank}d"
    input, batched = _fitting(title, input, weight, bias, rank, channels, "transposed=1, ")
    steps = _sizes(stride, rank, "stride", 1)
    dilations = _sizes(dilation, rank, "dilation", 1)
    paddings, extra = _sizes(padding, rank, "padding", 0), _sizes(output_padding, rank, "output_padding", 0)
    if any(extra):
        _check_output_padding(extra, steps, dilations)
    if kernel[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(kernel)}] instead"
        )
    sizes = input._payload.shape
    if sizes[1] != kernel[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(kernel)}, expected input{list(sizes)} to have "
            f"{kernel[0]} channels, but got {sizes[1]} channels instead"
        )
    shape = [sizes[0], channels]
    for n, k, s, p, d, e in zip(sizes[2:], kernel[2:], steps, paddings, dilations, extra, strict=True):
        shape.append((n - 1) * s - 2 * p + d * (k - 1) + 1 + e)
    if min(shape[2:]) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, sizes[2:]))}). Calculated output size per "
            f"channel: ({' x '.join(map(str, shape[2:]))}). Output size is too small"
        )
    out: Tensor = convolution.conv_input.canonical(input, weight, tuple(shape), steps, paddings, dilations, groups)
    if bias is not None:
        # Under autocast the product is in a half type and the bias in float32; the result is as the product.
        bias = bias.to(out.dtype) if out.dtype.is_half else bias
        out = out + bias.reshape((channels, *[1] * rank))
    return out if batched else record("squeeze")(out, (0,))


@public(method=False, aliases=("nn.functional.conv_transpose1d",))
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of (N, C, L) or (C, L) with (C, O / groups, k)."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False, aliases=("nn.functional.conv_transpose2d",))
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of (N, C, H, W) or (C, H, W) with (C, O / groups, kH, kW).

    It is the adjoint of :func:`conv2d` in its input; ``output_padding`` selects one of several possible sizes.
    """
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@public(method=False, aliases=("nn.functional.conv_transpose3d",))
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of (N, C, D, H, W) or (C, D, H, W) with (C, O / groups, kD, kH, kW)."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
