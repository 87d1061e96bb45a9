"""The CPU's kernels of networks, compared with the Array API's, and their behaviour for half types and chunks."""

from __future__ import annotations

from itertools import product
from typing import Any

import candelabra_arrayapi.network as generic
import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu import activations, convolution, normalization, pooling, softmax
from candelabra_cpu.backend import TO_NUMPY
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal, special

REFERENCE = generic.kernels(np, TO_NUMPY)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    """Return normal numbers from a fixed seed."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(3, 8), min_size=1, max_size=3),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)),
    stride=st.tuples(*[st.integers(1, 3)] * 3),
    padding=st.tuples(*[st.integers(0, 3)] * 3),
    dilation=st.tuples(*[st.integers(1, 2)] * 3),
    groups=st.integers(1, 2),
    batch=st.integers(0, 3),
    extra=st.integers(0, 1),
)
def test_convolutions_agree_with_the_general_ones(
    sizes: list[int], kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int, batch: int, extra: int
) -> None:
    """conv and both adjoints equal the Array API's for any geometry, on strided inputs, with and without chunks."""
    rank = len(sizes)
    kernel, stride, padding, dilation = kernel[:rank], stride[:rank], padding[:rank], dilation[:rank]
    if any(n + 2 * p < d * (k - 1) + 1 for n, p, d, k in zip(sizes, padding, dilation, kernel, strict=True)):
        return
    geometry = (stride, padding, dilation, groups)
    x = np.moveaxis(normal(*sizes, batch, 4), (-2, -1), (0, 1))
    w, b = normal(6, 4 // groups, *kernel), normal(6)
    out = REFERENCE["conv"](x, w, b, *geometry)
    y = normal(*out.shape, seed=5)
    # The adjoint allows one output more than the number of windows: a transposed convolution's output_padding.
    shape = (*x.shape[:2], *[n + (extra if s > 1 else 0) for n, s in zip(sizes, stride, strict=True)])
    expected = (
        out,
        REFERENCE["conv_weight"](x, y, w.shape, *geometry),
        REFERENCE["conv_input"](y, w, shape, *geometry),
    )
    for chunk in (convolution.CHUNK, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution, "CHUNK", chunk)
            found = (
                convolution.conv(x, w, b, *geometry),
                convolution.conv_weight(x, y, w.shape, *geometry),
                convolution.conv_input(y, w, shape, *geometry),
            )
        for mine, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-10)
            assert mine.flags.c_contiguous


def test_convolution_is_scipys_correlation() -> None:
    """One channel without padding equals SciPy's valid correlation."""
    x, w = normal(1, 1, 9, 7), normal(1, 1, 3, 4)
    for conv in (convolution.conv, REFERENCE["conv"]):
        out = conv(x, w, None, (1, 1), (0, 0), (1, 1), 1)
        np.testing.assert_allclose(out[0, 0], signal.correlate(x[0, 0], w[0, 0], "valid"), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_rounded_once(dtype: Any) -> None:
    """A convolution and a softmax of half types equal those of a wider dtype, rounded at the end."""
    x, w = normal(2, 8, 6, 6).astype(dtype), normal(4, 8, 3, 3).astype(dtype)
    geometry = ((1, 1), (1, 1), (1, 1), 1)
    wide = convolution.conv(x.astype(np.float32), w.astype(np.float32), None, *geometry)
    np.testing.assert_array_equal(convolution.KERNELS["conv"](x, w, None, *geometry), wide.astype(dtype))
    out = softmax.KERNELS["softmax"](x, 1)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, softmax.softmax(x.astype(np.float64), 1).astype(dtype))
    values, mean, _ = normalization.KERNELS["normalize"](x, None, None, (3,), 1e-5)
    assert values.dtype == mean.dtype == dtype


@pytest.mark.parametrize("layout", ["C", "transposed", "sliced"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_along_any_dim(layout: str, dim: int) -> None:
    """Any dim and layout is correct; the result is new and contiguous."""
    x = {"C": normal(3, 4, 5), "transposed": normal(5, 4, 3).T, "sliced": normal(6, 8, 5)[::2, ::2]}[layout]
    y, g = special.softmax(x, dim), normal(*x.shape, seed=2)
    out = softmax.softmax(x, dim)
    np.testing.assert_allclose(out, y, rtol=1e-12)
    np.testing.assert_allclose(softmax.log_softmax(x, dim), np.log(y), rtol=1e-11)
    along = (g * y).sum(dim, keepdims=True)
    np.testing.assert_allclose(softmax.softmax_backward(g, y, dim), y * (g - along), rtol=1e-11, atol=1e-14)
    back = softmax.log_softmax_backward(g, np.log(y), dim)
    np.testing.assert_allclose(back, g - y * g.sum(dim, keepdims=True), rtol=1e-11, atol=1e-14)
    assert out.flags.c_contiguous
    assert not np.shares_memory(out, x)


@pytest.mark.parametrize("dims", [(1,), (0, 2), (1, 2), (2,), (0, 1, 2)])
def test_normalisation_over_any_dims(dims: tuple[int, ...]) -> None:
    """Dims may be any; weights broadcast."""
    x = normal(3, 4, 5)
    for w in (None, normal(*x.shape[3 - len(dims) :]), normal(4, 1)):
        values, mean, rstd = normalization.normalize(x, w, w, dims, 1e-5)
        z = (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + 1e-5)
        np.testing.assert_allclose(values, z if w is None else z * w + w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(mean, x.mean(dims, keepdims=True), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(rstd, 1 / np.sqrt(x.var(dims, keepdims=True) + 1e-5), rtol=1e-10)


def test_normalisation_over_a_batch_keeps_its_digits() -> None:
    """The mean over the first dim of float32 numbers far from 0 is accurate to float32."""
    x = (normal(100_000, 2) + 1000).astype(np.float32)
    _, mean, _ = normalization.KERNELS["normalize"](x, None, None, (0,), 1e-5)
    np.testing.assert_array_equal(mean, x.astype(np.float64).mean(0, keepdims=True).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex128])
def test_scattering_adds_where_indices_meet(dtype: Any) -> None:
    """Values with repeated indices are added; distinct ones are written at once; out of bounds raises."""
    x, index = np.arange(1, 7).reshape(2, 3).astype(dtype), np.array([[0, 0, 3], [1, 2, 1]])
    np.testing.assert_array_equal(pooling.scatter_planes(x, index, 4, False), [[3, 0, 0, 3], [0, 10, 5, 0]])
    apart = np.array([[0, 1, 3], [3, 2, 1]])
    np.testing.assert_array_equal(pooling.scatter_planes(x, apart, 4, True), [[1, 2, 0, 3], [0, 6, 5, 4]])
    for bad in (-1, 4):
        with pytest.raises(IndexError, match="index out of range"):
            pooling.scatter_planes(x, index * 0 + bad, 4, False)


def test_activations_of_any_rank_and_layout() -> None:
    """0-d, empty, transposed and broadcast arguments give arrays of the correct shape and values."""
    for x in (np.array(0.7), np.zeros((0, 3)), normal(4, 3).T, np.broadcast_to(normal(3), (4, 3))):
        for name, arguments in (("gelu", ("none",)), ("gelu", ("tanh",)), ("silu", ())):
            out = activations.KERNELS[name](x, *arguments)
            assert isinstance(out, np.ndarray)
            assert out.shape == x.shape
            back = activations.KERNELS[name + "_backward"](np.ones_like(x), x, *arguments)
            step = 1e-6
            kernel = activations.KERNELS[name]
            slope = (kernel(np.asarray(x + step), *arguments) - kernel(np.asarray(x - step), *arguments)) / step / 2
            np.testing.assert_allclose(back, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(activations.KERNELS["relu"](np.array([-1, 2])), [0, 2])


def test_embedding_checks_its_bounds() -> None:
    """Negative indices and those beyond the last row raise, and so does a weight that is not a matrix."""
    kernel = REFERENCE["embedding"]
    for bad in (-1, 3):
        with pytest.raises(IndexError, match="index out of range"):
            kernel(normal(3, 2), np.array([bad]), -1, False)
    with pytest.raises(ValueError, match=r"embedding\(\) expects a weight with 2 dims, got 1"):
        kernel(normal(3), np.array([0]), -1, False)


def test_sizes_that_do_not_fit_are_left_to_the_core() -> None:
    """The kernel reports the shapes; the core replaces its error by one that names the argument."""
    with pytest.raises(
        ValueError, match=r"an input of shape \(1, 2, 4, 4\) does not fit a weight of shape \(2, 3, 3, 3\) in 1 groups"
    ):
        convolution.conv(normal(1, 2, 4, 4), normal(2, 3, 3, 3), None, (1, 1), (0, 0), (1, 1), 1)


def test_kernels_leave_no_floating_warning() -> None:
    """Infinities and NaN cause no warning in any kernel (warnings are errors here)."""
    x = np.array([[np.inf, -np.inf, np.nan, 1e308, -1e308, 0.0]])
    for name, arguments in product(("softmax", "log_softmax"), ((0,), (1,))):
        softmax.KERNELS[name](x, *arguments)
    for name, rest in (("gelu", ("none",)), ("gelu", ("tanh",)), ("silu", ()), ("relu", ())):
        activations.KERNELS[name](x, *rest)
    normalization.KERNELS["normalize"](x, None, None, (1,), 1e-5)
    convolution.KERNELS["conv"](x[None], np.full((1, 1, 2), np.inf), None, (1,), (1,), (1,), 1)


@pytest.mark.parametrize("shape", [(3, 4, 16), (2, 3, 4, 5), (2, 1, 2, 4, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_the_gradient_of_normalisation(shape: tuple[int, ...], dtype: Any, norm: str) -> None:
    """The gradients of a batch norm and of a layer norm equal their definition in float64, on strided inputs."""
    dims = (0, *range(2, len(shape))) if norm == "batch" else tuple(range(1, len(shape)))
    channel = tuple(1 if d in dims else n for d, n in enumerate(shape)) if norm == "batch" else shape[1:]
    x, g = normal(*shape) + 3, normal(*shape, seed=1)
    for w in (None, normal(*channel)):
        values = [None if t is None else t.astype(dtype) for t in (g, x, w)]
        wide_g, wide_x, wide_w = [None if t is None else t.astype(np.float64) for t in values]
        mean, variance = wide_x.mean(dims, keepdims=True), wide_x.var(dims, keepdims=True)
        rstd = 1 / np.sqrt(variance + 1e-5)
        z, h = (wide_x - mean) * rstd, wide_g if wide_w is None else wide_g * wide_w
        expected = (h - h.mean(dims, keepdims=True) - z * (h * z).mean(dims, keepdims=True)) * rstd
        strided = np.ascontiguousarray(values[1].T).T
        found = normalization.normalize_backward(
            values[0], strided, mean.astype(dtype), rstd.astype(dtype), values[2], dims
        )
        assert found.dtype == dtype
        # The mean is rounded to the dtype, and x - mean is of the order of 1.
        np.testing.assert_allclose(found, expected, atol=8 * np.finfo(dtype).eps)
