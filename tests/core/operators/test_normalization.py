"""Normalisations and their statistics, compared with NumPy."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck


@pytest.fixture
def data(rng: np.random.Generator) -> Any:
    """Return normal numbers: 4 samples of 6 channels of 5 elements."""
    return rng.normal(size=(4, 6, 5))


def normalised(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """Return (normalised, mean, 1 / standard deviation) by the definition."""
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def near(actual: Any, expected: Any) -> None:
    """Assert that shapes are equal, and values up to rounding."""
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_layers_are_normalised_over_their_last_dims(data: Any) -> None:
    """Weight and bias have the shape of the normalised dims; the statistics keep these dims with size 1."""
    weight, bias = data[0] + 2, data[1]
    out, mean, rstd = cd.native_layer_norm(
        cd.from_numpy(data.copy()), (6, 5), cd.from_numpy(weight), cd.from_numpy(bias.copy()), 1e-5
    )
    expected = normalised(data, (1, 2), 1e-5)
    near(out, expected[0] * weight + bias)
    near(mean, expected[1])
    near(rstd, expected[2])


def test_groups_of_channels_are_normalised_together(data: Any) -> None:
    """Six channels in three groups have statistics of shape (N, groups)."""
    out, mean, rstd = cd.native_group_norm(cd.from_numpy(data.copy()), None, None, 4, 6, 5, 3, 1e-3)
    expected = normalised(data.reshape(4, 3, 10), (2,), 1e-3)
    near(out, expected[0].reshape(data.shape))
    near(mean, expected[1][..., 0])
    near(rstd, expected[2][..., 0])


def test_batches_are_normalised_by_their_own_statistics_in_training(data: Any) -> None:
    """The running statistics are updated with the batch's mean and unbiased variance."""
    running_mean, running_var = cd.zeros(6, dtype=cd.float64), cd.ones(6, dtype=cd.float64)
    out, mean, rstd = cd.native_batch_norm(
        cd.from_numpy(data.copy()), None, None, running_mean, running_var, True, 0.25, 1e-5
    )
    expected = normalised(data, (0, 2), 1e-5)
    near(out, expected[0])
    near(mean, expected[1].reshape(-1))
    near(rstd, expected[2].reshape(-1))
    near(running_mean, 0.25 * data.mean((0, 2)))
    near(running_var, 0.75 + 0.25 * data.var((0, 2), ddof=1))


def test_batches_are_normalised_by_the_running_statistics_otherwise(data: Any) -> None:
    """The running statistics do not change, and the saved statistics are empty."""
    running_mean, running_var = cd.from_numpy(data[0, :, 0].copy()), cd.from_numpy(data[1, :, 0] ** 2)
    before = running_mean.tolist(), running_var.tolist()
    out, mean, rstd = cd.native_batch_norm(
        cd.from_numpy(data.copy()), None, None, running_mean, running_var, False, 0.25, 1e-5
    )
    scale = np.sqrt(data[1, :, 0] ** 2 + 1e-5)
    near(out, (data - data[0, :, 0].reshape(1, 6, 1)) / scale.reshape(1, 6, 1))
    assert (mean.shape, rstd.shape) == ((0,), (0,))
    assert (running_mean.tolist(), running_var.tolist()) == before


def test_batches_are_written_into_tensors_that_are_given() -> None:
    """``out=`` has three tensors."""
    outs = tuple(cd.empty(0) for _ in range(3))
    actual = cd.native_batch_norm(cd.ones(2, 3), None, None, None, None, True, 0.1, 1e-5, out=outs)
    assert all(a is b for a, b in zip(actual, outs, strict=True))
    assert outs[1].tolist() == [1.0, 1.0, 1.0]


def test_half_types_are_averaged_in_single_precision() -> None:
    """The mean of 4,096 ones is one, although bfloat16 cannot count to 4,096."""
    out, mean, _ = cd.native_layer_norm(cd.ones(1, 4096, dtype=cd.bfloat16), (4096,), None, None, 1e-5)
    assert mean.item() == 1.0
    assert (out.dtype, mean.dtype) == (cd.bfloat16, cd.bfloat16)


def test_derivatives_to_second_order(data: Any) -> None:
    """Input, weight and bias have derivatives."""
    x = cd.from_numpy(data[:2, :4, :3].copy()).requires_grad_()
    weight, bias = cd.from_numpy(data[0, :4, 0].copy()).requires_grad_(), cd.from_numpy(data[1, :4, 0].copy())
    bias.requires_grad_()

    def batch(x: Any, weight: Any, bias: Any) -> Any:
        return cd.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-3)[0]

    def group(x: Any, weight: Any, bias: Any) -> Any:
        return tuple(cd.native_group_norm(x, weight, bias, 2, 4, 3, 2, 1e-3))

    for function in (batch, group):
        assert gradcheck(function, (x, weight, bias))
        assert gradgradcheck(function, (x, weight, bias))
    assert gradcheck(lambda x: cd.native_layer_norm(x, (3,), None, None, 1e-3)[0], (x,))


def test_shapes_that_do_not_fit_are_refused() -> None:
    """The normalised sizes, the groups and the running statistics are checked."""
    x = cd.ones(2, 4, 3)
    with pytest.raises(RuntimeError, match=r"expected input with shape \[\*, 5, 3\], but got input of size\[2, 4, 3\]"):
        cd.native_layer_norm(x, (5, 3), None, None, 1e-5)
    with pytest.raises(RuntimeError, match="Expected normalized_shape to be at least 1-dimensional"):
        cd.native_layer_norm(x, (), None, None, 1e-5)
    for name, parameters in (("weight", (cd.ones(1), None)), ("bias", (None, cd.ones(1)))):
        text = f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape"
        with pytest.raises(RuntimeError, match=text):
            cd.native_layer_norm(x, (3,), *parameters, 1e-5)
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        cd.native_group_norm(x, None, None, 2, 4, 3, 3, 1e-5)
    with pytest.raises(RuntimeError, match="expected running_mean and running_var if training is False, got None"):
        cd.native_batch_norm(x, None, None, None, None, False, 0.1, 1e-5)
