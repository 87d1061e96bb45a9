"""The kernels of CUDA: common operators use kernels in C and cuBLAS, the others use CuPy's libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from candelabra.dtypes import BY_NAME, bfloat16, float16, float32, int64
from candelabra.library import OPERATORS
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.blas import CUBLAS_TYPES, CublasMatmul
from candelabra_cuda.kernels import KernelWithFallback

LIBRARIES = ("linalg_", "fft_", "bitwise_")
"""Operators of cuSOLVER and cuFFT; and bits of floats, which are an error."""
HOST = {
    "igamma", "igammac", "linalg_geqrf", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lstsq",
    "linalg_lu_factor_ex", "random_binomial", "random_log_gamma", "random_poisson", "special_airy_ai",
    "special_airy_ai_slope",
}  # fmt: skip
"""Operators without kernel and body: they run on the host with a warning, and docs/cuda.md lists them."""
COMMON = [
    "add", "mul", "sub", "div", "neg", "exp", "log", "tanh", "sigmoid", "gelu", "relu", "softmax",
    "log_softmax", "normalize", "normalize_backward", "sum", "mean", "amax", "argmax", "cumsum", "sort", "conv",
    "conv_input", "conv_weight", "max_pool", "index_select", "gather", "scatter_add", "index_put", "where",
    "cat", "clone", "random_uniform", "random_normal",
]  # fmt: skip
"""The operators of training."""


@pytest.fixture(scope="module")
def table(doubles: Any) -> Mapping[str, Any]:
    """Return the kernels of a device of the double."""
    return CudaBackend(doubles.double()).kernels()


def served(kernel: Any, dtype: Any) -> str:
    """Return who serves a dtype: ``own``, ``cuBLAS``, ``CuPy``, or ``""`` if there is no kernel."""
    if isinstance(kernel, CublasMatmul):
        return "cuBLAS" if dtype.name in CUBLAS_TYPES else served_by_choice(kernel, dtype)
    return served_by_choice(kernel, dtype)


def served_by_choice(kernel: Any, dtype: Any) -> str:
    """Return the same for kernels that are not cuBLAS's."""
    choose = getattr(kernel, "for_dtype", None)
    chosen = kernel if choose is None else choose(dtype)
    if chosen is None:
        return ""
    other = kernel._fallback if isinstance(kernel, KernelWithFallback) else None if choose else kernel
    return "CuPy" if chosen is other and hasattr(chosen, "__wrapped__") else "own"


@pytest.mark.parametrize("dtype", [float32, float16, bfloat16])
def test_the_operators_of_training_have_kernels_of_our_own(table: Mapping[str, Any], dtype: Any) -> None:
    """No operator of a training step uses CuPy or the host."""
    missing = [name for name in COMMON if name in OPERATORS and served(table.get(name), dtype) != "own"]
    assert missing == []
    assert served(table["matmul"], dtype) == "cuBLAS"


def test_attention_multiplies_by_cublas(table: Mapping[str, Any]) -> None:
    """The kernel is clike's with cuBLAS's products."""
    for name in ("attention", "attention_backward"):
        for dtype in (float32, bfloat16):
            assert served(table[name], dtype) == "own"
            assert table[name].for_dtype(dtype).args[0].__module__ == CublasMatmul.__module__


def test_cupy_serves_what_its_libraries_do(table: Mapping[str, Any]) -> None:
    """In float32 it serves no other operator."""
    by_cupy = [name for name, kernel in table.items() if served(kernel, float32) == "CuPy"]
    assert [name for name in by_cupy if not name.startswith(LIBRARIES)] == []


def test_what_runs_on_the_host_is_known(table: Mapping[str, Any]) -> None:
    """An operator without a kernel that is not a view is on the list."""
    nobody = {
        name
        for name in sorted(OPERATORS)
        if not (name in table and served(table[name], float32)) and OPERATORS[name].body is None
        and not OPERATORS[name].view
    }  # fmt: skip
    assert nobody - HOST == set()


def test_products_of_half_types_are_accumulated_in_float32() -> None:
    """The compute type of cuBLAS is CUBLAS_COMPUTE_32F (68), alpha and beta are float32."""
    for name in ("float16", "bfloat16", "float32"):
        assert (CUBLAS_TYPES[name].compute, CUBLAS_TYPES[name].scale.__name__) == (68, "float32")


def test_products_of_integers_are_kernels_of_our_own(table: Mapping[str, Any]) -> None:
    """cuBLAS does not support integers."""
    assert served(table["matmul"], int64) == "own"
    assert set(CUBLAS_TYPES) <= set(BY_NAME)
