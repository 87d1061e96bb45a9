"""Layers: results, representations, and errors."""

from __future__ import annotations

import math
import re
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import nn


def close(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    """Return whether two tensors have the same shape and nearly the same values."""
    return a.shape == b.shape and bool(((a - b).abs() <= tolerance * (1 + b.abs())).all().item())


@pytest.mark.parametrize(
    ("module", "shape", "expected", "text"),
    [
        (lambda: nn.Linear(3, 2), (4, 3), (4, 2), "Linear(in_features=3, out_features=2, bias=True)"),
        (lambda: nn.Linear(3, 2, bias=False), (3,), (2,), "Linear(in_features=3, out_features=2, bias=False)"),
        (lambda: nn.Identity(54, unused=1), (2, 3), (2, 3), "Identity()"),
        (lambda: nn.Conv1d(2, 4, 3), (1, 2, 9), (1, 4, 7), "Conv1d(2, 4, kernel_size=(3,), stride=(1,))"),
        (
            lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, bias=False),
            (1, 2, 8, 8),
            (1, 4, 4, 4),
            "Conv2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False)",
        ),
        (
            lambda: nn.Conv2d(1, 1, 3, padding="same", padding_mode="circular", dilation=2),
            (1, 1, 6, 7),
            (1, 1, 6, 7),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same, dilation=(2, 2), padding_mode=circular)",
        ),
        (
            lambda: nn.Conv3d(1, 2, 2),
            (1, 1, 3, 3, 3),
            (1, 2, 2, 2, 2),
            "Conv3d(1, 2, kernel_size=(2, 2, 2), stride=(1, 1, 1))",
        ),
        (
            lambda: nn.MaxPool2d(2),
            (1, 2, 6, 6),
            (1, 2, 3, 3),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (lambda: nn.AvgPool1d(2), (1, 2, 6), (1, 2, 3), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
        (
            lambda: nn.AvgPool2d(2, stride=1),
            (1, 2, 6, 6),
            (1, 2, 5, 5),
            "AvgPool2d(kernel_size=2, stride=1, padding=0)",
        ),
        (lambda: nn.AvgPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2), "AvgPool3d(kernel_size=2, stride=2, padding=0)"),
        (lambda: nn.AdaptiveAvgPool1d(2), (1, 2, 6), (1, 2, 2), "AdaptiveAvgPool1d(output_size=2)"),
        (
            lambda: nn.AdaptiveAvgPool2d((1, None)),
            (1, 2, 6, 5),
            (1, 2, 1, 5),
            "AdaptiveAvgPool2d(output_size=(1, None))",
        ),
        (lambda: nn.Flatten(), (2, 3, 4), (2, 12), "Flatten(start_dim=1, end_dim=-1)"),
        (lambda: nn.Unflatten(1, (3, 4)), (2, 12), (2, 3, 4), "Unflatten(dim=1, unflattened_size=(3, 4))"),
        (lambda: nn.LayerNorm(4), (2, 4), (2, 4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (lambda: nn.RMSNorm((3, 4)), (2, 3, 4), (2, 3, 4), "RMSNorm((3, 4), eps=None, elementwise_affine=True)"),
        (lambda: nn.GroupNorm(2, 4), (2, 4, 3), (2, 4, 3), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
        (
            lambda: nn.BatchNorm2d(3),
            (2, 3, 4, 4),
            (2, 3, 4, 4),
            "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
        ),
        (lambda: nn.Softmax(dim=1), (2, 3), (2, 3), "Softmax(dim=1)"),
        (lambda: nn.GELU("tanh"), (2, 3), (2, 3), "GELU(approximate='tanh')"),
        (lambda: nn.ReLU(inplace=True), (2, 3), (2, 3), "ReLU(inplace=True)"),
        (lambda: nn.LeakyReLU(0.2), (2, 3), (2, 3), "LeakyReLU(negative_slope=0.2)"),
        (lambda: nn.ELU(), (2, 3), (2, 3), "ELU(alpha=1.0)"),
        (lambda: nn.Hardtanh(), (2, 3), (2, 3), "Hardtanh(min_val=-1.0, max_val=1.0)"),
        (lambda: nn.Threshold(0.1, 20), (2, 3), (2, 3), "Threshold(threshold=0.1, value=20)"),
        (lambda: nn.PReLU(), (2, 3), (2, 3), "PReLU(num_parameters=1)"),
        (lambda: nn.Softplus(), (2, 3), (2, 3), "Softplus(beta=1.0, threshold=20.0)"),
        (lambda: nn.Softshrink(), (2, 3), (2, 3), "Softshrink(0.5)"),
        (lambda: nn.GLU(), (2, 4), (2, 2), "GLU(dim=-1)"),
        (lambda: nn.Dropout(0.2), (2, 3), (2, 3), "Dropout(p=0.2, inplace=False)"),
    ],
)
def test_layers_give_shapes_and_are_printed_as_pytorch_prints_them(
    module: Any, shape: tuple[int, ...], expected: tuple[int, ...], text: str
) -> None:
    """The output has the documented shape, a gradient reaches every parameter, and repr names the options."""
    layer = module()
    assert repr(layer) == text
    x = cd.randn(*shape)
    out = layer(x)
    assert out.shape == expected
    if list(layer.parameters()):
        out.sum().backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in layer.parameters())


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (nn.ReLU(), F.relu),
        (nn.ReLU6(), F.relu6),
        (nn.SELU(), F.selu),
        (nn.SiLU(), F.silu),
        (nn.Mish(), F.mish),
        (nn.Hardsigmoid(), F.hardsigmoid),
        (nn.Hardswish(), F.hardswish),
        (nn.LeakyReLU(), F.leaky_relu),
        (nn.ELU(), F.elu),
        (nn.CELU(), F.celu),
        (nn.GELU(), F.gelu),
        (nn.Tanh(), F.tanh),
        (nn.Sigmoid(), F.sigmoid),
        (nn.LogSigmoid(), F.logsigmoid),
        (nn.Softsign(), F.softsign),
        (nn.Tanhshrink(), F.tanhshrink),
        (nn.Hardshrink(), F.hardshrink),
        (nn.Softshrink(), F.softshrink),
        (nn.Hardtanh(), F.hardtanh),
        (nn.Softplus(), F.softplus),
        (nn.Softmax(1), lambda x: F.softmax(x, 1)),
        (nn.LogSoftmax(1), lambda x: F.log_softmax(x, 1)),
        (nn.Softmin(1), lambda x: F.softmin(x, 1)),
        (nn.Threshold(0.1, 2.0), lambda x: F.threshold(x, 0.1, 2.0)),
        (nn.PReLU(), lambda x: F.leaky_relu(x, 0.25)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_activation_modules_are_their_functions(module: Any, function: Any) -> None:
    """A module without state computes the function of its name."""
    x = cd.randn(3, 5)
    assert module(x).tolist() == function(x).tolist()


def test_linear_is_a_product_and_a_sum() -> None:
    """The output is x @ W.T + b."""
    layer = nn.Linear(3, 2)
    x = cd.randn(4, 3)
    assert close(layer(x), x @ layer.weight.t() + layer.bias)


def test_weights_are_drawn_within_their_bound() -> None:
    """Initial weights of Linear and Conv are within 1 / sqrt(fan_in), and depend on the seed only."""
    cd.manual_seed(3)
    first = nn.Linear(100, 50)
    assert first.weight.abs().max().item() <= 0.1
    assert first.weight.abs().max().item() > 0.09
    cd.manual_seed(3)
    assert nn.Linear(100, 50).weight.tolist() == first.weight.tolist()
    conv = nn.Conv2d(4, 8, 5)
    assert conv.weight.abs().max().item() <= 0.1


def test_bilinear_is_linear_in_both_inputs() -> None:
    """Each output feature is x1 @ W[k] @ x2."""
    layer = nn.Bilinear(2, 3, 4, bias=False)
    x, y = cd.randn(5, 2), cd.randn(5, 3)
    expected = cd.stack([((x @ layer.weight[k]) * y).sum(1) for k in range(4)], 1)
    assert close(layer(x, y), expected)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes_pad_before_they_convolve(mode: str) -> None:
    """A convolution with a padding mode is the convolution of the padded input."""
    layer = nn.Conv2d(1, 1, 3, padding=(1, 2), padding_mode=mode)
    x = cd.randn(1, 1, 5, 5)
    assert close(layer(x), F.conv2d(F.pad(x, (2, 2, 1, 1), mode=mode), layer.weight, layer.bias))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("constant", [0, 0, 1, 2, 3, 0]),
        ("reflect", [3, 2, 1, 2, 3, 2]),
        ("replicate", [1, 1, 1, 2, 3, 3]),
        ("circular", [2, 3, 1, 2, 3, 1]),
    ],
)
def test_pad_in_every_mode(mode: str, expected: list[int]) -> None:
    """Two values are added before and one after the input."""
    assert F.pad(cd.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode=mode).tolist() == [expected]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((-1, 1), [2, 3, 4, 2]), ((2, -1), [2, 3, 1, 2, 3]), ((-1, -1), [2, 3]), ((-2, 3), [3, 4, 3, 4, 3])],
)
def test_circular_padding_repeats_the_cropped_input(sizes: tuple[int, int], expected: list[int]) -> None:
    """Negative sizes crop the input first, and the rest of it is repeated."""
    assert F.pad(cd.tensor([[1.0, 2.0, 3.0, 4.0]]), sizes, mode="circular").tolist() == [expected]


def test_pad_crops_fills_and_copies() -> None:
    """Negative sizes crop, a value fills, and sizes of 0 give a copy; the input gets its gradient."""
    x = cd.tensor([[1.0, 2.0, 3.0]]).requires_grad_()
    out = F.pad(x, (-1, 1, 1, 0), value=9.0)
    assert out.tolist() == [[9, 9, 9], [2, 3, 9]]
    out.sum().backward()
    assert x.grad.tolist() == [[0, 1, 1]]
    same = F.pad(x.detach(), (0, 0))
    same.add_(1)
    assert x.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.pad(cd.ones(2), (1,)), RuntimeError, "Padding length must be divisible by 2"),
        (
            lambda: F.pad(cd.ones(2), (1, 1, 1, 1)),
            RuntimeError,
            "Padding length should be less than or equal to two times",
        ),
        (lambda: F.pad(cd.ones(2), (1, 1), mode="mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (
            lambda: F.pad(cd.ones(2), (1, 1), "reflect", 1.0),
            RuntimeError,
            'Padding mode "reflect" doesn\'t take in value argument',
        ),
        (
            lambda: F.pad(cd.ones(1, 2), (2, 0), "reflect"),
            RuntimeError,
            "Padding size should be less than the corresponding",
        ),
        (
            lambda: F.pad(cd.ones(1, 2), (3, 0), "circular"),
            RuntimeError,
            "Padding value causes wrapping around more than once.",
        ),
        (
            lambda: F.pad(cd.ones(1, 2), (-2, 1), "circular"),
            RuntimeError,
            "Negative padding value is resulting in an empty dimension.",
        ),
        (
            lambda: F.pad(cd.ones(1, 0), (1, 0), "replicate"),
            RuntimeError,
            "Expected dimension 1 of the input to be non-zero",
        ),
        (lambda: F.pad(cd.ones(1, 2), (-3, 0)), RuntimeError, "resulted in a negative output size, which is invalid"),
        (lambda: nn.Conv2d(3, 4, 1, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 1, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 4, 1, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(1, 1, 3, padding="full"), ValueError, "Invalid padding string 'full', should be one of"),
        (
            lambda: nn.Conv2d(1, 1, 3, 2, padding="same"),
            ValueError,
            "padding='same' is not supported for strided convolutions",
        ),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (lambda: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0, but got (in1_features=0)"),
        (lambda: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: nn.Hardtanh(1.0, -1.0), AssertionError, "max_val must be larger than min_val, got -1.0 and 1.0"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "num_channels (4) must be divisible by num_groups (3)"),
        (lambda: nn.BatchNorm2d(3)(cd.ones(2, 3)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.BatchNorm1d(3)(cd.ones(3)), ValueError, "expected 2D or 3D input (got 1D input)"),
        (lambda: nn.Unflatten("x", (1,)), TypeError, "invalid argument type for dim parameter"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size must be a tuple of ints, but found type int"),
        (
            lambda: nn.Unflatten(1, (1, "a")),
            TypeError,
            "unflattened_size must be tuple of ints, but found element of type str at pos 1",
        ),
        (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "Padding_idx must be within num_embeddings"),
        (
            lambda: nn.Embedding.from_pretrained(cd.ones(3)),
            AssertionError,
            "Embeddings parameter is expected to be 2-dimensional",
        ),
        (lambda: nn.Embedding(3, 2, _weight=cd.ones(2, 2)), AssertionError, "Shape of weight does not match"),
    ],
)
def test_misuse_of_layers_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_dropout_is_the_identity_in_evaluation() -> None:
    """In training, elements are set to 0 and the others scaled; in evaluation the output is the input."""
    layer = nn.Dropout(0.5)
    x = cd.ones(1000)
    out = layer(x)
    assert set(out.tolist()) == {0.0, 2.0}
    assert 350 < (out == 0).sum().item() < 650
    assert layer.eval()(x).tolist() == x.tolist()
    channels = nn.Dropout2d(0.5)(cd.ones(4, 64, 2, 2))
    assert set(channels.sum((2, 3)).reshape(-1).tolist()) == {0.0, 8.0}


def test_layer_norm_normalizes_the_last_dims() -> None:
    """Rows have mean 0 and variance 1. Without affine there are no parameters, without bias only a weight."""
    out = nn.LayerNorm(16)(cd.randn(4, 16) * 5 + 3)
    assert close(out.mean(1), cd.zeros(4), 1e-4)
    assert close(out.var(1, correction=0), cd.ones(4), 1e-3)
    assert list(nn.LayerNorm(4, elementwise_affine=False).parameters()) == []
    for norm in (nn.LayerNorm(4, bias=False), nn.GroupNorm(2, 4, bias=False), nn.BatchNorm1d(4, bias=False)):
        assert [n for n, _ in norm.named_parameters()] == ["weight"]
        assert norm(cd.randn(3, 4)).shape == (3, 4)


def test_batch_norm_keeps_running_statistics() -> None:
    """Training updates the statistics, and evaluation uses them; momentum=None averages over all batches."""
    layer = nn.BatchNorm1d(2, momentum=None)
    a, b = cd.randn(8, 2), cd.randn(8, 2) + 4
    out = layer(a)
    assert close(out.mean(0), cd.zeros(2), 1e-4)
    layer(b)
    assert layer.num_batches_tracked.item() == 2
    assert close(layer.running_mean, (a.mean(0) + b.mean(0)) / 2, 1e-4)
    layer.eval()
    before = layer.running_mean.tolist()
    layer(a)
    assert layer.running_mean.tolist() == before
    assert nn.BatchNorm1d(2, track_running_stats=False).state_dict().keys() == {"weight", "bias"}


def test_embedding_selects_rows() -> None:
    """Indices have any shape; the row for padding is zero and gets no gradient."""
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert repr(table) == "Embedding(5, 3, padding_idx=4)"
    index = cd.tensor([[0, 4], [1, 1]])
    out = table(index)
    assert out.shape == (2, 2, 3)
    assert out[0, 1].tolist() == [0, 0, 0]
    out.sum().backward()
    assert table.weight.grad.sum(1).tolist() == [3, 6, 0, 0, 0]
    frozen = nn.Embedding.from_pretrained(cd.ones(2, 3))
    assert not frozen.weight.requires_grad


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_are_their_functions(reduction: str) -> None:
    """A loss module computes its function with its options."""
    x, y = cd.randn(4, 3), cd.rand(4, 3)
    labels = cd.tensor([0, 2, 1, 2])
    p = x.sigmoid()
    pairs = [
        (nn.MSELoss(reduction=reduction)(x, y), F.mse_loss(x, y, reduction=reduction)),
        (nn.L1Loss(reduction=reduction)(x, y), F.l1_loss(x, y, reduction=reduction)),
        (nn.SmoothL1Loss(reduction=reduction)(x, y), F.smooth_l1_loss(x, y, reduction=reduction)),
        (nn.HuberLoss(reduction=reduction)(x, y), F.huber_loss(x, y, reduction=reduction)),
        (nn.KLDivLoss(reduction=reduction)(x, y), F.kl_div(x, y, reduction=reduction)),
        (nn.BCELoss(reduction=reduction)(p, y), F.binary_cross_entropy(p, y, reduction=reduction)),
        (
            nn.BCEWithLogitsLoss(reduction=reduction)(x, y),
            F.binary_cross_entropy_with_logits(x, y, reduction=reduction),
        ),
        (nn.NLLLoss(reduction=reduction)(x, labels), F.nll_loss(x, labels, reduction=reduction)),
        (
            nn.CrossEntropyLoss(cd.ones(3), reduction=reduction, label_smoothing=0.1)(x, labels),
            F.cross_entropy(x, labels, cd.ones(3), reduction=reduction, label_smoothing=0.1),
        ),
    ]
    for module, function in pairs:
        assert module.tolist() == function.tolist()


# -- initialisation ---------------------------------------------------------------------------------------------------
def test_constant_initialization() -> None:
    """Constants, ones, zeros, identities of matrices and convolutions are written in place, and returned."""
    w = nn.Parameter(cd.empty(2, 3))
    assert nn.init.constant_(w, 3.0) is w
    assert w.tolist() == [[3, 3, 3]] * 2
    assert nn.init.ones_(w).tolist() == [[1, 1, 1]] * 2
    assert nn.init.zeros_(w).tolist() == [[0, 0, 0]] * 2
    assert nn.init.eye_(w).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert w.requires_grad
    kernel = nn.init.dirac_(cd.empty(2, 2, 3, 3))
    x = cd.randn(1, 2, 4, 4)
    assert F.conv2d(x, kernel, padding=1).tolist() == x.tolist()


def test_random_initialization_has_the_expected_deviation() -> None:
    """The standard deviations are those of the papers."""
    cd.manual_seed(0)
    fan_in, fan_out = 200, 100
    w = cd.empty(fan_out, fan_in)
    spreads = {
        "xavier_uniform_": math.sqrt(2 / (fan_in + fan_out)), "xavier_normal_": math.sqrt(2 / (fan_in + fan_out)),
        "kaiming_uniform_": math.sqrt(2 / fan_in), "kaiming_normal_": math.sqrt(2 / fan_in), "normal_": 1.0,
        "uniform_": math.sqrt(1 / 12),
    }  # fmt: skip
    for name, spread in spreads.items():
        assert getattr(nn.init, name)(w).std().item() == pytest.approx(spread, rel=0.05), name
    assert nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu").std().item() == pytest.approx(
        math.sqrt(0.02), rel=0.05
    )
    inside = nn.init.trunc_normal_(w, 1.0, 2.0, 0.0, 3.0)
    assert inside.min().item() >= 0
    assert inside.max().item() <= 3
    assert inside.mean().item() == pytest.approx(1.4, abs=0.1)
    few = nn.init.sparse_(cd.empty(10, 4), 0.3)
    assert (few == 0).sum(0).tolist() == [3] * 4


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...]) -> None:
    """The vectors of the shorter side are orthonormal, times the gain."""
    w = nn.init.orthogonal_(cd.empty(*shape), gain=2.0).reshape(shape[0], -1)
    short = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    assert close(short, cd.eye(short.shape[0]) * 4, 1e-4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nn.init.eye_(cd.ones(2)), "Only tensors with 2 dimensions are supported"),
        (lambda: nn.init.sparse_(cd.ones(2), 0.1), "Only tensors with 2 dimensions are supported"),
        (lambda: nn.init.dirac_(cd.ones(2)), "Only tensors with 3, 4, or 5 dimensions are supported"),
        (lambda: nn.init.dirac_(cd.ones(3, 1, 1), groups=2), "dim 0 must be divisible by groups"),
        (lambda: nn.init.orthogonal_(cd.ones(2)), "Only tensors with 2 or more dimensions are supported"),
        (
            lambda: nn.init.xavier_uniform_(cd.ones(2)),
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
        ),
        (
            lambda: nn.init.kaiming_normal_(cd.ones(2, 2), mode="fan"),
            "Mode fan not supported, please use one of ['fan_in', 'fan_out']",
        ),
        (lambda: nn.init.calculate_gain("swish"), "Unsupported nonlinearity swish"),
        (lambda: nn.init.calculate_gain("leaky_relu", True), "negative_slope True not a valid number"),
    ],
)
def test_misuse_of_initialization_raises_an_error(call: Any, text: str) -> None:
    """Unsuitable shapes and names raise ValueError with the reason."""
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_initialization_of_an_empty_tensor_warns() -> None:
    """A tensor without elements gives a warning."""
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.init.kaiming_uniform_(cd.empty(0, 3))


# -- gradients and parameters of a whole network ----------------------------------------------------------------------
def test_gradients_are_clipped_in_place() -> None:
    """The norm over all parameters is reduced to the limit; a smaller norm does not change."""
    layer = nn.Linear(2, 1)
    layer.weight.grad, layer.bias.grad = cd.tensor([[3.0, 0.0]]), cd.tensor([4.0])
    assert nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item() == pytest.approx(5)
    assert layer.weight.grad.tolist() == [[pytest.approx(0.6), 0]]
    nn.utils.clip_grad_norm_(layer.parameters(), 10.0)
    assert layer.bias.grad.tolist() == [pytest.approx(0.8)]
    assert nn.utils.clip_grad_norm_(layer.parameters(), 10.0, math.inf).item() == pytest.approx(0.8)
    nn.utils.clip_grad_value_(layer.parameters(), 0.5)
    assert layer.bias.grad.tolist() == [0.5]
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    layer.bias.grad = cd.tensor([math.nan])
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True)


def test_parameters_to_a_vector_and_back() -> None:
    """The vector contains all parameters in order, and sets them."""
    a, b = nn.Linear(2, 3), nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(a.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(vector, b.parameters())
    assert b.weight.tolist() == a.weight.tolist()
    with pytest.raises(TypeError, match=r"expected candelabra\.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], b.parameters())
