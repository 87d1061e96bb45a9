"""Softmax, activations, normalization, embedding and dropout: values, derivatives, errors."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.nn import functional as F
from scipy import special

from tests.nn.network_samples import array, check_gradients, normal, tensor

# -- softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_and_its_logarithm(dim: int) -> None:
    """Both agree with SciPy along any dim, and have both derivatives."""
    x = normal(3, 4, 5)
    np.testing.assert_allclose(array(cd.softmax(tensor(x), dim)), special.softmax(x, dim), rtol=1e-12)
    np.testing.assert_allclose(array(cd.log_softmax(tensor(x), dim)), special.log_softmax(x, dim), rtol=1e-12)
    np.testing.assert_allclose(array(F.softmin(tensor(x), dim)), special.softmax(-x, dim), rtol=1e-12)
    check_gradients(lambda x: cd.softmax(x, dim), x)
    check_gradients(lambda x: cd.log_softmax(x, dim), x)


def test_softmax_of_special_values_and_shapes() -> None:
    """Large values do not overflow, -inf has probability 0, NaN fills its row; 0-d and empty tensors are accepted."""
    x = np.array([[1e300, 1e300, 0.0], [-np.inf, 0.0, 0.0], [np.nan, 1.0, 2.0], [-np.inf, -np.inf, -np.inf]])
    out = array(cd.softmax(tensor(x), 1))
    np.testing.assert_array_equal(out[:2], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert np.isnan(out[2:]).all()
    assert array(cd.softmax(tensor(np.array(3.0)), 0)) == 1.0
    assert array(cd.log_softmax(tensor(np.array(3.0)), 0)) == 0.0
    assert cd.softmax(tensor(np.zeros((0, 3))), 1).shape == (0, 3)
    assert cd.log_softmax(tensor(np.zeros((3, 0))), 1).shape == (3, 0)


def test_softmax_refuses_integers_and_wrong_dims() -> None:
    """Integers have no softmax, and a dim must exist."""
    with pytest.raises(RuntimeError, match="\"softmax\" not implemented for 'Long'"):
        cd.softmax(tensor(np.arange(3)), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        cd.log_softmax(tensor(normal(2, 3)), 2)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2), (2, 2, 3, 2)])
def test_functional_softmax_has_an_implicit_dim(shape: tuple[int, ...]) -> None:
    """The default of dim is PyTorch's: 0 for tensors of 0, 1 and 3 dims, 1 for others. The core's function has none."""
    x = tensor(normal(*shape))
    dim = 0 if len(shape) in (0, 1, 3) else 1
    for name in ("softmax", "log_softmax", "softmin"):
        function = getattr(F, name)
        np.testing.assert_array_equal(array(function(x)), array(function(x, dim)))
    single = F.softmax(x, dtype=cd.float32)
    assert single.dtype is cd.float32
    np.testing.assert_array_equal(array(single), array(cd.softmax(x, dim, dtype=cd.float32)))
    with pytest.raises(TypeError, match=r"softmax\(\) missing 1 required positional argument: 'dim'"):
        cd.softmax(x)


def test_softmax_of_half_types_computes_in_float32() -> None:
    """A thousand equal float16 logits give 0.001 each, rounded once."""
    out = array(cd.softmax(tensor(np.zeros(1000, np.float16)), 0))
    np.testing.assert_array_equal(out, np.float16(0.001))


# -- activations ------------------------------------------------------------------------------------------------------
def _sigmoid(x: np.ndarray) -> np.ndarray:
    return special.expit(x)


ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (lambda x: F.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "selu": (F.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "celu": (lambda x: F.celu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    "gelu": (F.gelu, lambda x: x * special.ndtr(x)),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (F.silu, lambda x: x * _sigmoid(x)),
    "mish": (F.mish, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softplus": (F.softplus, lambda x: np.logaddexp(0, x)),
    "softplus_beta": (lambda x: F.softplus(x, 2.0, 3.0), lambda x: np.where(2 * x > 3, x, np.logaddexp(0, 2 * x) / 2)),
    "logsigmoid": (F.logsigmoid, special.log_expit),
    "hardtanh": (F.hardtanh, lambda x: np.clip(x, -1, 1)),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardshrink": (F.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (F.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x)),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "threshold": (lambda x: F.threshold(x, 0.3, 9.0), lambda x: np.where(x > 0.3, x, 9.0)),
    "tanh": (F.tanh, np.tanh),
    "sigmoid": (F.sigmoid, _sigmoid),
}


def test_softshrink_is_odd() -> None:
    """Between -lambd and lambd the result is 0 with the input's sign, also of -0; the derivative at infinity is 1."""
    x = cd.tensor([-0.0, 0.0, -0.3, 0.3, -0.5, -math.inf, 2.0], requires_grad=True)
    y = F.softshrink(x)
    assert repr(y.tolist()) == "[-0.0, 0.0, -0.0, 0.0, -0.0, -inf, 1.5]"
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_values_and_derivatives(name: str) -> None:
    """Values by SciPy's formulas, first and second derivatives by finite differences, also on a transposed input."""
    function, expected = ACTIVATIONS[name]
    x = normal(4, 5) * 2
    np.testing.assert_allclose(array(function(tensor(x))), expected(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(function(tensor(x).permute(1, 0))), expected(x.T), rtol=1e-10, atol=1e-12)
    check_gradients(function, x)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardswish"])
def test_activation_in_place_writes_into_its_input(name: str) -> None:
    """inplace=True writes the result into the input and returns it, with the gradient of the function."""
    function = getattr(F, name)
    x = tensor(normal(3, 4), True)
    wanted = function(x)
    written = x * 1
    assert function(written, inplace=True) is written
    np.testing.assert_array_equal(array(written), array(wanted))
    np.testing.assert_array_equal(array(grad(written.sum(), [x])[0]), array(grad(wanted.sum(), [x])[0]))


@pytest.mark.parametrize("name", ["elu", "selu", "softplus", "logsigmoid", "gelu", "silu", "mish", "leaky_relu"])
def test_activations_neither_overflow_nor_lose_nan(name: str) -> None:
    """Extreme inputs give the limits with finite gradients, and NaN gives NaN."""
    x = tensor(np.array([-1e4, 1e4, np.nan]), True)
    out = getattr(F, name)(x)
    assert np.isfinite(array(out)[:2]).all()
    assert np.isnan(array(out)[2])
    (g,) = grad(out.sum(), [x])
    assert np.isfinite(array(g)[:2]).all()


def test_relu_has_gradient_zero_below_zero_even_for_infinite_gradients() -> None:
    """The gradient of an input of at most 0 is exactly 0, also if the output's gradient is infinite."""
    x = tensor(np.array([-1.0, 0.0, 2.0]), True)
    (g,) = grad(F.relu(x), [x], tensor(np.array([np.inf, np.nan, 3.0])))
    np.testing.assert_array_equal(array(g), [0.0, 0.0, 3.0])


def test_prelu_has_a_slope_per_channel() -> None:
    """There is one slope, or one per channel, with a gradient."""
    x, w = normal(2, 3, 4), normal(3)
    np.testing.assert_allclose(array(cd.prelu(tensor(x), tensor(w))), np.where(x > 0, x, x * w[:, None]))
    np.testing.assert_allclose(array(cd.prelu(tensor(x), tensor(w[:1]))), np.where(x > 0, x, x * w[0]))
    check_gradients(cd.prelu, x, w)


def test_glu_gates_one_half_by_the_other() -> None:
    """The result is the first half times the sigmoid of the second half."""
    x = normal(3, 6)
    np.testing.assert_allclose(array(F.glu(tensor(x))), x[:, :3] * _sigmoid(x[:, 3:]), rtol=1e-12)
    check_gradients(lambda x: F.glu(x, 1), x)


ACTIVATION_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: F.gelu(x, approximate="x"), RuntimeError, "approximate argument must be either none or tanh"),
    (lambda x: F.hardtanh(x, 2.0, 1.0), ValueError, "min_val cannot be greater than max_val"),
    (lambda x: F.softshrink(x, -1.0), RuntimeError, "lambda must be greater or equal to 0, but found to be -1"),
    (lambda x: F.celu(x, 0.0), RuntimeError, "alpha cannot be 0 for CELU"),
    (lambda x: F.glu(x, 1), RuntimeError, "Halving dimension must be even, but dimension 1 is size 3"),
    (lambda x: F.glu(tensor(np.array(1.0))), RuntimeError, "glu does not support scalars"),
    (lambda x: cd.prelu(x, tensor(normal(2))), RuntimeError, "Found parameter numbers = 2 and channel size = 3"),
    (lambda x: cd.prelu(x, tensor(normal(1, 1))), RuntimeError, "Expected `weight` to be a scalar or 1D tensor"),
    (lambda x: cd.prelu(tensor(np.array(1.0)), tensor(normal(2))), RuntimeError, "Not allow zero-dim input tensor"),
]


@pytest.mark.parametrize("case", range(len(ACTIVATION_ERRORS)))
def test_activations_refuse_bad_arguments(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = ACTIVATION_ERRORS[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(2, 3)))


# -- normalisation ----------------------------------------------------------------------------------------------------
def standardized(x: np.ndarray, dims: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    """Return the array with mean 0 and variance 1 over ``dims``."""
    return (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)


def test_layer_norm_over_the_last_dims() -> None:
    """Values are normalized, scaled and shifted; first and second derivatives agree with finite differences."""
    x, w, b = normal(3, 4, 5), normal(4, 5), normal(4, 5, seed=1)
    out = F.layer_norm(tensor(x), (4, 5), tensor(w), tensor(b))
    np.testing.assert_allclose(array(out), standardized(x, (1, 2)) * w + b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(F.layer_norm(tensor(x), (5,))), standardized(x, (2,)), rtol=1e-10, atol=1e-12)
    check_gradients(lambda x, w, b: F.layer_norm(x, (4, 5), w, b), x, w, b)
    check_gradients(lambda x: F.layer_norm(x, (5,)), x)


def test_group_and_instance_norm() -> None:
    """Each group of channels, or each channel of each sample, is normalized separately."""
    x, w, b = normal(2, 6, 3, 4), normal(6), normal(6, seed=1)
    grouped = standardized(x.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(x.shape) * w[:, None, None] + b[:, None, None]
    np.testing.assert_allclose(array(F.group_norm(tensor(x), 3, tensor(w), tensor(b))), grouped, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(F.instance_norm(tensor(x))), standardized(x, (2, 3)), rtol=1e-10, atol=1e-12)
    check_gradients(lambda x, w, b: F.group_norm(x, 3, w, b), x, w, b)


def test_batch_norm_trains_and_evaluates() -> None:
    """Training uses the batch and updates the running statistics; evaluation uses the running statistics."""
    x, w, b = normal(4, 3, 5) * 2 + 1, normal(3), normal(3, seed=1)
    mean, var = tensor(np.zeros(3)), tensor(np.ones(3))
    out = F.batch_norm(tensor(x), mean, var, tensor(w), tensor(b), True, 0.1)
    np.testing.assert_allclose(array(out), standardized(x, (0, 2)) * w[:, None] + b[:, None], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(mean), 0.1 * x.mean((0, 2)), rtol=1e-10)
    np.testing.assert_allclose(array(var), 0.9 + 0.1 * x.var((0, 2), ddof=1), rtol=1e-10)
    still = F.batch_norm(tensor(x), mean, var, tensor(w), tensor(b))
    expected = (x - array(mean)[:, None]) / np.sqrt(array(var)[:, None] + 1e-5) * w[:, None] + b[:, None]
    np.testing.assert_allclose(array(still), expected, rtol=1e-10, atol=1e-12)
    check_gradients(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b)


def test_rms_norm_divides_by_the_root_mean_square() -> None:
    """The mean is not subtracted, and the result is multiplied by the weight."""
    x, w = normal(3, 5), normal(5)
    expected = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(array(F.rms_norm(tensor(x), (5,), tensor(w), 1e-6)), expected, rtol=1e-12)
    check_gradients(lambda x, w: F.rms_norm(x, (5,), w), x, w)


NORM_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x: F.layer_norm(x, (7,)),
        RuntimeError,
        r"Given normalized_shape=\[7\], expected input with shape \[\*, 7\]",
    ),
    (lambda x: F.layer_norm(x, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (lambda x: F.layer_norm(x, (3,), tensor(normal(4))), RuntimeError, "Expected weight to be of same shape as"),
    (
        lambda x: F.layer_norm(x, (3,), tensor(normal(3)), tensor(normal(4))),
        RuntimeError,
        "Expected bias to be of same",
    ),
    (lambda x: F.rms_norm(x, (7,)), RuntimeError, r"Given normalized_shape=\[7\]"),
    (lambda x: F.rms_norm(x, ()), RuntimeError, r"Expected normalized_shape to be at least 1-dimensional"),
    (
        lambda x: F.rms_norm(x, x.shape[-1:], cd.ones(1)),
        RuntimeError,
        r"Expected weight to be of same shape as normalized_shape, but got weight of shape \[1\]",
    ),
    (
        lambda x: F.batch_norm(x, tensor(normal(2)), tensor(normal(3))),
        RuntimeError,
        "running_mean should contain 3 elements",
    ),
    (lambda x: F.batch_norm(x, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda x: F.batch_norm(x[:1], None, None, training=True), ValueError, "Expected more than 1 value per channel"),
    (lambda x: F.group_norm(x, 2), RuntimeError, "number of channels in input to be divisible by num_groups"),
    (lambda x: F.group_norm(x, 3, tensor(normal(4))), RuntimeError, "Expected weight to be a vector of size equal to"),
    (lambda x: F.group_norm(tensor(normal(3)), 3), RuntimeError, "Expected at least 2 dimensions for input tensor"),
    (lambda x: F.instance_norm(tensor(normal(2, 3, 1))), ValueError, "Expected more than 1 spatial element"),
]


@pytest.mark.parametrize("case", range(len(NORM_ERRORS)))
def test_normalization_refuses_sizes_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = NORM_ERRORS[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(2, 3)))


# -- linear and embedding ---------------------------------------------------------------------------------------------
def test_linear_is_a_product_and_a_sum() -> None:
    """linear accepts any leading dims, with and without a bias; bilinear takes two inputs."""
    x, w, b = normal(2, 3, 4), normal(5, 4), normal(5)
    np.testing.assert_allclose(array(F.linear(tensor(x), tensor(w), tensor(b))), x @ w.T + b, rtol=1e-10)
    np.testing.assert_allclose(array(F.linear(tensor(x[0, 0]), tensor(w))), w @ x[0, 0], rtol=1e-10)
    check_gradients(F.linear, x, w, b)
    y, v = normal(2, 3, 5), normal(6, 4, 5)
    np.testing.assert_allclose(
        array(F.bilinear(tensor(x), tensor(y), tensor(v))), np.einsum("nka,oab,nkb->nko", x, v, y), rtol=1e-10
    )


def test_linear_refuses_sizes_that_do_not_match() -> None:
    """Sizes, ranks and dtypes that do not match raise errors with PyTorch's texts."""
    x = tensor(normal(2, 3))
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"):
        F.linear(x, tensor(normal(4, 5)))
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: double != float"):
        F.linear(x, tensor(normal(4, 3, dtype=np.float32)))
    with pytest.raises(RuntimeError, match="both arguments to linear need to be at least 1D, but they are 0D and 2D"):
        F.linear(tensor(np.array(1.0)), tensor(normal(4, 3)))
    with pytest.raises(RuntimeError, match="input batch dimensions do not match"):
        F.bilinear(x, tensor(normal(3, 3)), tensor(normal(1, 3, 3)))
    with pytest.raises(RuntimeError, match="do not match weight of size"):
        F.bilinear(x, x, tensor(normal(1, 3, 4)))


def test_embedding_selects_rows() -> None:
    """Indices have any shape; gradients add up per row, except for the padding row."""
    w, i = normal(5, 3), np.array([[0, 4, 4], [1, 2, 4]])
    np.testing.assert_array_equal(array(F.embedding(tensor(i), tensor(w))), w[i])
    check_gradients(lambda w: F.embedding(tensor(i), w), w)
    weight = tensor(w, True)
    (g,) = grad(F.embedding(tensor(i), weight, padding_idx=-1).sum(), [weight])
    np.testing.assert_array_equal(array(g)[:, 0], [1, 1, 1, 0, 0])
    (g,) = grad(F.embedding(tensor(i), weight, scale_grad_by_freq=True).sum(), [weight])
    np.testing.assert_allclose(array(g)[:, 0], [1, 1, 1, 0, 1])
    assert F.embedding(tensor(np.zeros((0, 2), np.int64)), weight).shape == (0, 2, 3)


def test_embedding_scales_rows_down_to_max_norm() -> None:
    """Selected rows with a larger norm are scaled down in place; other rows do not change."""
    w = tensor(np.array([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]]))
    out = F.embedding(tensor(np.array([0, 1, 0])), w, max_norm=1.0)
    np.testing.assert_allclose(array(out), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(array(w)[2], [30.0, 40.0])


EMBEDDING_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda w: F.embedding(tensor(np.array([5])), w), IndexError, "index out of range in self"),
    (lambda w: F.embedding(tensor(np.array([-1])), w), IndexError, "index out of range in self"),
    (
        lambda w: F.embedding(tensor(np.array([1.0])), w),
        RuntimeError,
        "scalar types: Long, Int; but got Double instead",
    ),
    (lambda w: F.embedding(tensor(np.array([1])), tensor(normal(3))), RuntimeError, "'weight' must be 2-D"),
    (lambda w: F.embedding(tensor(np.array([1])), w, 3), AssertionError, "Padding_idx must be within num_embeddings"),
    (
        lambda w: F.embedding(tensor(np.array([1])), w.requires_grad_(), None, None, 2.0, True, True),
        RuntimeError,
        "scale_grad_by_freq is not supported with sparse gradients",
    ),
]


@pytest.mark.parametrize("case", range(len(EMBEDDING_ERRORS)))
def test_embedding_refuses_bad_arguments(case: int) -> None:
    """Bad indices and arguments raise PyTorch's error class with its text."""
    call, error, text = EMBEDDING_ERRORS[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(3, 2)))


def test_one_hot() -> None:
    """The number of classes is computed or given; classes out of range are an error."""
    np.testing.assert_array_equal(array(F.one_hot(tensor(np.array([2, 0])))), [[0, 0, 1], [1, 0, 0]])
    assert F.one_hot(tensor(np.zeros((2, 0), np.int64)), 4).shape == (2, 0, 4)
    for bad, classes, text in (
        ([-1], -1, "Class values must be non-negative."),
        ([3], 3, "Class values must be smaller than num_classes."),
        ([], -1, "Can not infer total number of classes from empty tensor."),
    ):
        with pytest.raises(RuntimeError, match=text):
            F.one_hot(tensor(np.array(bad, np.int64)), classes)
    with pytest.raises(RuntimeError, match="one_hot is only applicable to index tensor"):
        F.one_hot(tensor(np.array([1.0])))


# -- dropout ----------------------------------------------------------------------------------------------------------
def test_masked_dropout_scales_the_other_elements() -> None:
    """Elements that are not masked, and their gradients, are divided by 1 - p."""
    x, mask = tensor(normal(4), True), tensor(np.array([1, 0, 1, 1]))
    out = F.masked_dropout(x, mask, 0.2)
    np.testing.assert_allclose(array(out), array(x) * [1.25, 0, 1.25, 1.25])
    (g,) = grad(out.sum(), [x])
    np.testing.assert_allclose(array(g), [1.25, 0, 1.25, 1.25])


def test_dropout_drops_in_training_only() -> None:
    """A fraction p of the elements becomes 0, none in evaluation and all for p = 1; dropout2d drops whole channels."""
    x = tensor(np.ones((50, 40)))
    kept = array(F.dropout(x, 0.25))
    assert set(np.unique(kept)) == {0.0, 1 / 0.75}
    assert 0.2 < (kept == 0).mean() < 0.3
    assert F.dropout(x, 0.25, training=False) is x
    assert (array(F.dropout(x, 1.0)) == 0).all()
    planes = array(F.dropout2d(tensor(np.ones((8, 16, 2, 2))), 0.5)).reshape(128, 4)
    assert ((planes == planes[:, :1]).all(1)).all()
