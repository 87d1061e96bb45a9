"""Convolutions and transposed convolutions as modules: values, padding modes, sizes, states, printing, errors."""

from __future__ import annotations

import copy
import math
import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd import gradcheck
from candelabra.nn import functional as F
from candelabra.nn.modules.conv import _ConvNd, _ConvTransposeNd

from tests.nn.network_samples import array, normal, tensor

TRANSPOSED = [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d]
PLAIN = [nn.Conv1d, nn.Conv2d, nn.Conv3d]


def filled(module: nn.Module) -> nn.Module:
    """Give the module's parameters the values that the figures of PyTorch 2.13 were computed with."""
    with cd.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(((cd.arange(parameter.numel()) % 7) - 3.0).reshape(parameter.shape) / 2 + i)
    return module


def counted(*shape: int) -> cd.Tensor:
    """Return the values -2 to 2, repeated."""
    return (cd.arange(math.prod(shape)) % 5 - 2.0).reshape(shape)


# -- transposed convolutions ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("module", "shape", "output_size", "expected"),
    [
        (
            lambda: nn.ConvTranspose1d(2, 2, 3, stride=2, padding=1, output_padding=1, groups=2),
            (1, 2, 3), None, [1.5, 2.0, 0.5, 0.0, -0.5, -0.5, 0.5, 1.0, 1.0, 2.0, -1.0, -2.0],
        ),
        (
            lambda: nn.ConvTranspose2d(2, 1, (2, 3), stride=(2, 1), dilation=(1, 2), bias=False),
            (1, 2, 2, 2), None,
            [6, -1.5, -1, 4, -1, 2.5, -1, 1, -1, -0.5, -1, -2, -1.5, -1.5, 1.5, -1, 1, -0.5, 0.5, 0, 0, 0.5, -0.5, 1],
        ),
        (
            lambda: nn.ConvTranspose3d(1, 1, 2, stride=2, padding=1),
            (1, 1, 2, 2, 2), (2, 3, 2), [2.5, -2.0, -0.5, 0.0, -0.5, 1.0, -0.5, 0.5, 0.5, -0.5, -0.5, -0.5],
        ),
    ],
    ids=["1d", "2d", "3d"],
)  # fmt: skip
def test_transposed_convolutions_have_the_figures_of_pytorch(
    module: Any, shape: tuple[int, ...], output_size: Any, expected: list[float]
) -> None:
    """Values agree with PyTorch 2.13, also in a channels-last input and without a batch dim."""
    layer = filled(module())
    x = counted(*shape)
    assert layer(x, output_size).flatten().tolist() == expected
    assert layer(x[0], output_size).flatten().tolist() == expected
    flipped = x.transpose(0, -1).contiguous().transpose(0, -1)
    assert layer(flipped, output_size).flatten().tolist() == expected


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_convolution_is_the_adjoint_of_the_convolution(rank: int) -> None:
    """<conv(x), y> = <x, conv_transpose(y)> with the same weight, whichever of the possible sizes x has."""
    for size in (7, 8):
        forward = PLAIN[rank - 1](4, 6, 3, stride=2, padding=1, groups=2, bias=False).double()
        back = TRANSPOSED[rank - 1](6, 4, 3, stride=2, padding=1, groups=2, bias=False).double()
        back.weight = forward.weight
        x = tensor(normal(2, 4, *[size] * rank))
        y = tensor(normal(*forward(x).shape, seed=1))
        sizes = [size] * rank
        for output_size in (sizes, x.shape):
            lifted = back(y, output_size)
            assert lifted.shape == x.shape
            np.testing.assert_allclose(float((forward(x) * y).sum()), float((x * lifted).sum()), rtol=1e-9)


def test_the_gradients_of_a_transposed_convolution_agree_with_differences() -> None:
    """gradcheck holds by input, weight and bias, with an output size that is asked for."""
    layer = nn.ConvTranspose2d(2, 3, (3, 2), stride=2, dtype=cd.float64)
    x = tensor(normal(2, 2, 2, 3), True)

    def call(x: Any, weight: Any, bias: Any) -> Any:
        changed = copy.copy(layer)
        changed.__dict__["_parameters"] = {"weight": weight, "bias": bias}
        return changed(x, [6, 7])

    assert gradcheck(call, (x, layer.weight, layer.bias))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: nn.ConvTranspose2d(1, 1, 3, padding_mode="circular"),
            'Only "zeros" padding mode is supported for ConvTranspose2d',
        ),
        (
            lambda: nn.ConvTranspose1d(1, 1, 3)(cd.ones(1, 1, 4), output_size=(1, 2)),
            "ConvTranspose1D: for 3D input, output_size must have 1 or 3 elements (got 2)",
        ),
        (
            lambda: nn.ConvTranspose2d(1, 1, 3)(cd.ones(1, 4, 4), output_size=(1, 1, 6, 6)),
            "ConvTranspose2D: for 3D input, output_size must have 2 or 3 elements (got 4)",
        ),
        (
            lambda: nn.ConvTranspose2d(1, 1, 3, stride=2)(cd.ones(1, 1, 4, 4), output_size=(8, 9)),
            "requested an output size of (8, 9), but valid sizes range from [9, 9] to [10, 10] (for an input of "
            "candelabra.Size([4, 4]))",
        ),
        (lambda: nn.ConvTranspose1d(3, 2, 1, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.ConvTranspose1d(2, 3, 1, groups=2), "out_channels must be divisible by groups"),
    ],
)
def test_a_transposed_convolution_refuses_what_does_not_fit(call: Any, text: str) -> None:
    """Padding modes, output sizes and groups that do not fit raise ValueError with PyTorch's text."""
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_a_transposed_convolution_has_no_padding_strings() -> None:
    """padding="same" raises TypeError."""
    with pytest.raises(
        TypeError, match="ConvTranspose2d: argument 'padding' must be an int or a tuple of ints, not str"
    ):
        nn.ConvTranspose2d(1, 1, 3, padding="same")


def test_the_number_of_dims_is_checked_before_the_output_size() -> None:
    """An input with too few dims is reported as such, with an output size too."""
    with pytest.raises(RuntimeError, match=re.escape("Expected 3D (unbatched) or 4D (batched) input to")):
        nn.ConvTranspose2d(1, 1, 3)(cd.ones(5, 5), output_size=(12, 12))


def test_a_padding_mode_set_afterwards_is_refused_by_the_call() -> None:
    """A transposed convolution whose padding_mode was changed raises, instead of ignoring it."""
    layer = nn.ConvTranspose3d(1, 1, 1)
    layer.padding_mode = "reflect"
    with pytest.raises(ValueError, match="Only `zeros` padding mode is supported for ConvTranspose3d"):
        layer(cd.ones(1, 1, 2, 2, 2))


# -- convolutions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "line", "plane", "volume"),
    [
        ("reflect", [1.5, 3.5, 3.5, 0.5, -1.5, -1.5], [6, 2.5, 2.5, -6, -2, -2, 3, -0.5, -0.5],
         [-1.5, -0.5, -1.5, 2.5, 3.5, 2.5, -1.5, -0.5, -1.5]),
        ("replicate", [5.5, 5, 3.5, 0.5, -2, -3.5], [7.5, 2.5, -2, -4.5, -2, 1, 1.5, 1.5, -0.5],
         [5.5, 4.5, 2.5, 4.5, 3.5, 1.5, -0.5, -1.5, -3.5]),
        ("circular", [-0.5, 0.5, 3.5, 0.5, -0.5, 0.5], [4.5, 2.5, 2, 0, -2, -2.5, -3, 0, -3],
         [-1.5, -0.5, -1.5, 2.5, 3.5, 2.5, -1.5, -0.5, -1.5]),
    ],
)  # fmt: skip
def test_padding_modes_have_the_figures_of_pytorch(
    mode: str, line: list[float], plane: list[float], volume: list[float]
) -> None:
    """Values agree with PyTorch 2.13 for sizes per dim, for "same" with an even kernel, and for three dims."""
    one = filled(nn.Conv1d(1, 1, 3, padding=2, padding_mode=mode))
    two = filled(nn.Conv2d(1, 1, (2, 3), padding="same", padding_mode=mode))
    three = filled(nn.Conv3d(1, 1, (1, 2, 2), padding=(0, 1, 1), padding_mode=mode))
    assert one(counted(1, 1, 4)).flatten().tolist() == line
    assert two(counted(1, 1, 3, 3)).flatten().tolist() == plane
    assert three(counted(1, 1, 1, 2, 2)).flatten().tolist() == volume


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_padding_mode_is_a_pad_before_the_convolution(mode: str, rank: int) -> None:
    """The layer equals F.pad in the mode, then a convolution without padding; gradients reach the input."""
    layer = PLAIN[rank - 1](2, 4, 3, stride=2, padding=1, dilation=1, groups=2, padding_mode=mode).double()
    x = tensor(normal(2, 2, *[5] * rank), True)
    around = F.pad(x, [1] * (2 * rank), "constant" if mode == "zeros" else mode)
    expected = getattr(F, f"conv{rank}d")(around, layer.weight, layer.bias, 2, 0, 1, 2)
    np.testing.assert_allclose(array(layer(x)), array(expected), rtol=1e-12, atol=1e-12)
    (got,) = cd.autograd.grad(layer(x).sum(), x)
    (wanted,) = cd.autograd.grad(expected.sum(), x)
    np.testing.assert_allclose(array(got), array(wanted), rtol=1e-12, atol=1e-12)


def test_valid_padding_is_none_in_every_mode() -> None:
    """padding="valid" adds nothing, also in a mode that would take values from the input."""
    layer = nn.Conv1d(1, 1, 3, padding="valid", padding_mode="circular")
    assert layer(cd.ones(1, 1, 5)).shape == (1, 1, 3)


def test_users_can_convolve_with_weights_of_their_own() -> None:
    """A subclass that standardizes its weight calls _conv_forward, and an override of it serves the call."""

    class Standardized(nn.Conv2d):
        def forward(self, input: Any) -> Any:
            return self._conv_forward(input, self.weight - self.weight.mean((1, 2, 3), True), self.bias)

    class Doubled(nn.Conv1d):
        def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
            return super()._conv_forward(input, 2 * weight, bias)

    assert Standardized(1, 2, 3, bias=False)(cd.ones(1, 1, 3, 3)).abs().max() < 1e-6
    layer = Doubled(1, 1, 1, bias=False)
    assert layer(cd.ones(1, 1, 1)).item() == 2 * layer.weight.item()
    assert isinstance(layer, _ConvNd)


def test_channels_last_inputs_give_the_same_values() -> None:
    """An input in memory format channels_last is accepted."""
    layer = nn.Conv2d(3, 4, 3, padding=1)
    x = tensor(normal(2, 3, 5, 5).astype(np.float32))
    np.testing.assert_allclose(
        array(layer(x.contiguous(memory_format=cd.channels_last))), array(layer(x)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", [*PLAIN, *TRANSPOSED])
def test_an_empty_batch_gives_an_empty_result(kind: Any) -> None:
    """A batch of size 0 gives the shape of a batch of size 0, and zero gradients."""
    layer = kind(2, 3, 2)
    rank = len(layer.kernel_size)
    out = layer(cd.empty(0, 2, *[4] * rank))
    assert out.shape == (0, 3, *[5 if layer.transposed else 3] * rank)
    out.sum().backward()
    assert layer.weight.grad.abs().sum() == 0


@pytest.mark.parametrize("kind", [*PLAIN, *TRANSPOSED])
def test_weights_are_uniform_within_one_over_the_root_of_fan_in(kind: Any) -> None:
    """Weight and bias have the variance k² / 3 of U(-k, k), k = 1 / sqrt(weight[0].numel())."""
    layer = kind(24, 36, 3, groups=2)
    bound = 1 / math.sqrt(layer.weight[0].numel())
    assert layer.weight.shape[:2] == ((24, 18) if layer.transposed else (36, 12))
    for parameter in (layer.weight, layer.bias):
        assert parameter.abs().max() <= bound
    spread = (layer.weight.double() ** 2).mean().item() / (bound**2 / 3)
    assert abs(spread - 1) < 6 * math.sqrt(0.8 / layer.weight.numel())  # the variance of x² is 4/45 of the square


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False),
            "ConvTranspose2d(4, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1), groups=2, "
            "bias=False)",
        ),
        (
            lambda: nn.ConvTranspose1d(1, 1, 2, dilation=3),
            "ConvTranspose1d(1, 1, kernel_size=(2,), stride=(1,), dilation=(3,))",
        ),
        (
            lambda: nn.Conv3d(1, 2, (1, 2, 3), padding=(0, 1, 2), padding_mode="replicate"),
            "Conv3d(1, 2, kernel_size=(1, 2, 3), stride=(1, 1, 1), padding=(0, 1, 2), padding_mode=replicate)",
        ),
    ],
)
def test_convolutions_print_what_differs_from_the_defaults(module: Any, text: str) -> None:
    """The printed form is PyTorch's."""
    assert repr(module()) == text


def test_states_have_weight_and_bias() -> None:
    """state_dict() has weight and bias, in this order, and loads into another layer."""
    layer, other = nn.ConvTranspose1d(2, 3, 4), nn.ConvTranspose1d(2, 3, 4)
    assert list(layer.state_dict()) == ["weight", "bias"]
    other.load_state_dict(layer.state_dict())
    x = cd.ones(1, 2, 3)
    assert other(x).tolist() == layer(x).tolist()
    assert list(nn.ConvTranspose1d(2, 3, 4, bias=False).state_dict()) == ["weight"]
    assert isinstance(layer, _ConvTransposeNd)


def test_the_base_class_has_no_convolution() -> None:
    """A subclass of the common base must define what it computes."""

    class Bare(nn.modules.conv._Conv):
        _rank = 1

    with pytest.raises(NotImplementedError, match="Bare must define _conv_forward"):
        Bare(1, 1, 1)(cd.ones(1, 1, 1))


# -- time first -------------------------------------------------------------------------------------------------------
def test_conv_tbc_is_conv1d_over_the_first_dim() -> None:
    """F.conv_tbc agrees with F.conv1d of permuted operands; with no steps left the result is empty."""
    x, w, b = (tensor(normal(*shape)) for shape in ((5, 2, 3), (3, 3, 4), (4,)))
    expected = F.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    np.testing.assert_allclose(array(F.conv_tbc(x, w, b, 1)), array(expected), rtol=1e-12)
    assert cd.conv_tbc(x[:2], w, b).shape == (0, 2, 4)
    np.testing.assert_allclose(array(F.conv_tbc(x, w, b, -1)), array(F.conv_tbc(x[1:4], w, b)), rtol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "pad", "text"),
    [
        (((5, 3), (3, 3, 4), (4,)), 0, "Input must have 3 dims: time, batch, in_channel"),
        (((5, 2, 3), (3, 4), (4,)), 0, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
        (((5, 2, 3), (3, 3, 4), (1, 4)), 0, "Bias must be 1-D"),
        (((5, 2, 2), (3, 3, 4), (4,)), 0, "Input dim 2 (input channels) is not == dim 1 in the weight tensor"),
        (((5, 2, 3), (3, 3, 4), (3,)), 0, "Bias size must equal dim 2 in the weight tensor (output channels)."),
        (((5, 2, 3), (3, 3, 4), (4,)), -2, "Trying to create tensor with negative dimension -1: [-1, 2, 4]"),
    ],
)
def test_conv_tbc_refuses_sizes_that_do_not_fit(shapes: Any, pad: int, text: str) -> None:
    """Wrong numbers of dims and of channels raise RuntimeError with PyTorch's text."""
    with pytest.raises(RuntimeError, match=re.escape(text)):
        F.conv_tbc(*[cd.ones(*shape) for shape in shapes], pad)
