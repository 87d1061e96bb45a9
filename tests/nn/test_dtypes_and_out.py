"""nn.functional with half types, complex numbers, integers, empty batches and ``out=``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor

# -- out= -------------------------------------------------------------------------------------------------------------
WITH_OUT: dict[str, Callable[..., Any]] = {
    "gelu": lambda x, **out: F.gelu(x, **out),
    "softplus": lambda x, **out: F.softplus(x, 2.0, **out),
    "logsigmoid": lambda x, **out: F.logsigmoid(x, **out),
    "hardshrink": lambda x, **out: F.hardshrink(x, **out),
    "softshrink": lambda x, **out: F.softshrink(x, **out),
    "linear": lambda x, **out: F.linear(x, cd.ones(2, 4), **out),
    "avg_pool2d": lambda x, **out: F.avg_pool2d(x, 2, **out),
    "avg_pool3d": lambda x, **out: F.avg_pool3d(x, (1, 2, 2), **out),
}


@pytest.mark.parametrize("name", WITH_OUT)
def test_out_receives_the_result(name: str) -> None:
    """``out`` is written and returned; if a gradient would be recorded, it is an error."""
    call, x = WITH_OUT[name], tensor(normal(1, 2, 4, 4, dtype=np.float32))
    expected = call(x)
    out = cd.empty(0)
    assert call(x, out=out) is out
    assert out.tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support automatic differentiation"):
        call(x.requires_grad_(), out=cd.empty(0))


# -- root mean square normalisation -----------------------------------------------------------------------------------
def test_rms_norm_of_half_types_computes_in_float32() -> None:
    """Values whose squares overflow float16 are normalized and rounded once to the input's dtype."""
    x = tensor(np.array([300.0, -400.0], np.float16))
    out = F.rms_norm(x, [2], cd.ones(2))
    assert out.dtype is cd.float16
    np.testing.assert_array_equal(array(out), (np.array([300, -400]) / math.sqrt(125000)).astype(np.float16))


def test_rms_norm_of_complex_numbers() -> None:
    """As in PyTorch, the mean is that of squares, not of squared absolute values."""
    z = normal(2, 3) + 1j * normal(2, 3, seed=1)
    expected = z / np.sqrt((z * z).mean(-1, keepdims=True) + 2.0**-52)
    np.testing.assert_allclose(array(F.rms_norm(tensor(z), [3])), expected, rtol=1e-12)


def test_rms_norm_refuses_integers() -> None:
    """rms_norm of integers raises NotImplementedError."""
    with pytest.raises(NotImplementedError, match="\"rms_norm\" not implemented for 'Long'"):
        F.rms_norm(cd.arange(3), [3])


def test_normalizations_are_functions_of_the_top_level() -> None:
    """candelabra has layer_norm, group_norm and rms_norm, as torch has."""
    x = tensor(normal(2, 4))
    assert cd.layer_norm(x, [4]).tolist() == F.layer_norm(x, [4]).tolist()
    assert cd.group_norm(x, 2).tolist() == F.group_norm(x, 2).tolist()
    assert cd.rms_norm(x, [4]).tolist() == F.rms_norm(x, [4]).tolist()


# -- empty batches ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0)])
def test_batch_norm_of_an_empty_batch(training: bool, shape: tuple[int, ...]) -> None:
    """The result is empty, gradients are zero, and the running statistics do not change."""
    mean, var, weight = cd.zeros(3), cd.ones(3), cd.ones(3).requires_grad_()
    out = F.batch_norm(cd.empty(shape), mean, var, weight, cd.zeros(3), training)
    assert out.shape == shape
    assert (mean.tolist(), var.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert grad(out.sum(), [weight])[0].tolist() == [0.0] * 3
    assert F.batch_norm(cd.empty(shape), None, None, training=True).shape == shape


def test_batch_norm_without_a_dim_of_channels() -> None:
    """As in PyTorch, an empty vector is accepted, and a vector with elements is an error."""
    assert F.batch_norm(cd.empty(0), cd.zeros(0), cd.zeros(0)).shape == (0,)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)"):
        F.batch_norm(cd.ones(3), None, None, training=True)


# -- integers, complex numbers, and gradients that nobody takes -------------------------------------------------------
@pytest.mark.parametrize("dtype", [cd.int8, cd.int32, cd.float32])
def test_bilinear_keeps_the_dtype(dtype: cd.dtype) -> None:
    """The result of small integers has their dtype."""
    out = F.bilinear(cd.ones(3, dtype=dtype), cd.ones(4, dtype=dtype), cd.ones(5, 3, 4, dtype=dtype))
    assert out.dtype is dtype
    assert out.tolist() == [12] * 5


def test_silu_of_complex_numbers() -> None:
    """The value is ``z * sigmoid(z)``, with first and second derivatives by real and imaginary parts."""
    z = normal(5) + 1j * normal(5, seed=1)
    np.testing.assert_allclose(array(F.silu(tensor(z))), z / (1 + np.exp(-z)), rtol=1e-12)

    def of_parts(re: Any, im: Any) -> Any:
        out = F.silu(cd.complex(re, im))
        return cd.cat([out.real, out.imag])

    check_gradients(of_parts, z.real.copy(), z.imag.copy())


def test_sparse_embeddings_without_a_gradient() -> None:
    """Without recording, ``sparse=True`` changes nothing."""
    weight = tensor(normal(3, 2))
    expected = F.embedding(cd.tensor([1]), weight).tolist()
    assert F.embedding(cd.tensor([1]), weight, sparse=True).tolist() == expected
    weight.requires_grad_()
    with cd.no_grad():
        assert F.embedding(cd.tensor([1]), weight, sparse=True).tolist() == expected
