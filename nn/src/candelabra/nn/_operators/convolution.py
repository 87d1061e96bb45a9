"""Convolution over any number of spatial dims, as three multilinear maps that are closed under differentiation.

With ``y = conv(x, w)``, the adjoint of ``conv`` in ``x`` is :func:`conv_input` (the transposed convolution) and the
one in ``w`` is :func:`conv_weight`; the derivative of each consists of the other two, so derivatives of every order are
exact. As usual in deep learning, the convolution is a cross-correlation: the kernel is not flipped.
"""

from __future__ import annotations

from candelabra.library import batching, by, operator, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor

Ints = tuple[int, ...]


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return the size of the output along one dim."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def check_geometry(shape: Ints, weight: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    """Raise ``RuntimeError`` with PyTorch's message for sizes that do not match; ``shape`` has a batch dim."""
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(weight)} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(weight)}] instead"
        )
    if shape[1] != weight[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight)}, expected input{list(shape)} to have "
            f"{weight[1] * groups} channels, but got {shape[1]} channels instead"
        )
    padded = [s + 2 * p for s, p in zip(shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(weight[2:], dilation, strict=True)]
    if any(r > s for r, s in zip(reach, padded, strict=True)) or any(k < 1 for k in weight[2:]):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )


@by
def _convolved(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Ints:
    shape, kernel = shape_of(input), shape_of(weight)
    check_geometry(shape, kernel, padding, dilation, groups)
    spatial = [output_size(*sizes) for sizes in zip(shape[2:], kernel[2:], stride, padding, dilation, strict=True)]
    return (shape[0], kernel[0], *spatial)


@operator(_convolved, accepts="numeric", method=False, public=False, out=False, autocast="lower")
def conv(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The cross-correlation of ``input`` (N, C, *spatial) with ``weight`` (O, C / groups, *kernel), plus ``bias`` (O).

    ``padding`` zeros are added on both sides of each dim.
    """
    ...


@by
def _given_shape(first: Tensor, second: Tensor, shape: Ints, *_: Any) -> Ints:
    return shape


@operator(_given_shape, accepts="numeric", method=False, public=False, out=False, autocast="lower")
def conv_input(
    output: Tensor, weight: Tensor, shape: Shape, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The adjoint of :func:`conv` in its input, of the given ``shape``: the transposed convolution.

    ``input[n, c, i * stride + k * dilation - padding] += output[n, o, i] * weight[o, c, k]`` over all o, i, k.
    """
    ...


@operator(_given_shape, accepts="numeric", method=False, public=False, out=False)
def conv_weight(
    input: Tensor, output: Tensor, shape: Shape, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """The adjoint of :func:`conv` in its weight, of the given ``shape``.

    ``weight[o, c, k]`` is the sum of ``output[n, o, i] * input[n, c, i * stride + k * dilation - padding]`` over n, i.
    """
    ...


def _sum_over_positions(g: Tensor) -> Tensor:
    return g.sum((0, *range(2, g.ndim)))


def _conv_of_size(
    input: Tensor, weight: Tensor, sizes: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """Return the first ``size`` elements of :func:`conv` along the spatial dims.

    The shape that an adjoint was called with may be larger, if PyTorch's ``output_padding`` exceeds the stride.
    """
    out: Tensor = conv(input, weight, None, stride, padding, dilation, groups)
    for dim, size in enumerate(sizes, 2):
        if out.shape[dim] != size:
            out = out.narrow(dim, 0, size)
    return out


conv.vjp(
    input=lambda g, input_spec, weight, stride, padding, dilation, groups: conv_input.canonical(
        g, weight.conj(), input_spec.shape, stride, padding, dilation, groups
    ),
    weight=lambda g, input, weight_spec, stride, padding, dilation, groups: conv_weight.canonical(
        input.conj(), g, weight_spec.shape, stride, padding, dilation, groups
    ),
    bias=lambda g: _sum_over_positions(g),
)
conv_input.vjp(
    output=lambda g, output_spec, weight, stride, padding, dilation, groups: _conv_of_size(
        g, weight.conj(), output_spec.shape[2:], stride, padding, dilation, groups
    ),
    weight=lambda g, output, weight_spec, stride, padding, dilation, groups: conv_weight.canonical(
        g, output.conj(), weight_spec.shape, stride, padding, dilation, groups
    ),
)
conv_weight.vjp(
    input=lambda g, input_spec, output, stride, padding, dilation, groups: conv_input.canonical(
        output.conj(), g, input_spec.shape, stride, padding, dilation, groups
    ),
    output=lambda g, input, output_spec, stride, padding, dilation, groups: _conv_of_size(
        input.conj(), g, output_spec.shape[2:], stride, padding, dilation, groups
    ),
)


# -- time first -------------------------------------------------------------------------------------------------------
# -- many examples ----------------------------------------------------------------------------------------------------
# Examples with a common weight are further elements of the batch (dim 0). With a weight of their own, they are further
# groups: channels (dim 1 of the input and the output, dim 0 of the weight) of which each group has its part.
@conv.batched
def _conv_of_examples(
    size: int, batched: Any, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    dilation: Ints, groups: int,
) -> Any:  # fmt: skip
    if not batched[1] and not batched[2]:
        out = conv.canonical(batching.merged(input, 0), weight, bias, stride, padding, dilation, groups)
        return batching.split(out, 0, size)
    if bias is not None:
        rest = input, weight, None, stride, padding, dilation, groups
        both = batched[0] or batched[1]
        out = _conv_of_examples(size, (*batched[:2], False), *rest) if both else conv.canonical(*rest)
        own = bias if batched[2] else batching.expanded(bias, size)
        return out + own.reshape((size, 1, own.shape[1], *[1] * len(stride)))
    if not batched[0] and groups == 1:  # the examples share the input: their outputs are further channels
        return batching.split(
            conv.canonical(input, batching.merged(weight, 0), None, stride, padding, dilation, 1), 1, size
        )
    input = batching.merged(input if batched[0] else batching.expanded(input, size), 1)
    out = conv.canonical(input, batching.merged(weight, 0), None, stride, padding, dilation, size * groups)
    return batching.split(out, 1, size)


@conv_input.batched
def _conv_input_of_examples(
    size: int, batched: Any, output: Tensor, weight: Tensor, shape: Ints, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Any:  # fmt: skip
    if not batched[1]:
        merged = (size * shape[0], *shape[1:])
        found = conv_input.canonical(batching.merged(output, 0), weight, merged, stride, padding, dilation, groups)
        return batching.split(found, 0, size)
    output = batching.merged(output if batched[0] else batching.expanded(output, size), 1)
    merged = (shape[0], size * shape[1], *shape[2:])
    weight = batching.merged(weight, 0)
    found = conv_input.canonical(output, weight, merged, stride, padding, dilation, size * groups)
    return batching.split(found, 1, size)


@conv_weight.batched
def _conv_weight_of_examples(
    size: int, batched: Any, input: Tensor, output: Tensor, shape: Ints, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Any:  # fmt: skip
    merged = (size * shape[0], *shape[1:])
    if not batched[0] and groups == 1:
        output = batching.merged(output, 1)
        found = conv_weight.canonical(input, output, merged, stride, padding, dilation, 1)
        return batching.split(found, 0, size)
    input, output = (batching.merged(t, 1) for t in batching.all_batched(size, batched, (input, output)))
    found = conv_weight.canonical(input, output, merged, stride, padding, dilation, size * groups)
    return batching.split(found, 0, size)


def _tbc_shape(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Ints:
    shape, kernel, biases = shape_of(input), shape_of(weight), shape_of(bias)
    if len(shape) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(kernel) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if len(biases) != 1:
        raise RuntimeError("Bias must be 1-D")
    if shape[2] != kernel[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if biases[0] != kernel[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    out = (shape[0] + 2 * pad - kernel[0] + 1, shape[1], kernel[2])
    if out[0] < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {out[0]}: {list(out)}")
    return out


@operator(by(_tbc_shape), accepts="numeric", method=False, aliases=("nn.functional.conv_tbc",), out=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """The cross-correlation along time of (T, N, C) with (k, C, O), plus ``bias`` (O): the result is (T', N, O)."""
    shape = _tbc_shape(input, weight, bias, pad)
    if not shape[0]:
        return input.new_zeros(shape) + bias
    if pad < 0:  # steps are removed
        input, pad = input[-pad : input.shape[0] + pad], 0
    out: Tensor = conv(input.permute((1, 2, 0)), weight.permute((2, 1, 0)), bias, (1,), (pad,), (1,), 1)
    return out.permute((2, 0, 1))
