"""NVRTC with each of its bindings, without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from candelabra_cuda import nvrtc
from candelabra_cuda.nvrtc import CompilationError, CudaBindings, CupyBindings

PROGRAM = 'extern "C" __global__ void one(unsigned* out) { out[0] = 1; }'


@pytest.fixture(autouse=True)
def reset_binding() -> Iterator[None]:
    """Reset the choice of the binding before and after each test."""
    nvrtc.load.cache_clear()
    yield
    nvrtc.load.cache_clear()


@pytest.fixture(params=[CudaBindings, CupyBindings])
def binding(request: pytest.FixtureRequest) -> Any:
    """Yield each binding."""
    return request.param()


def test_a_program_becomes_machine_code(binding: Any) -> None:
    """The machine code is an ELF file with the kernel's name, and equal with both bindings."""
    code = binding.compile("one", PROGRAM, ["--gpu-architecture=sm_90"])
    assert code[:4] == b"\x7fELF"
    assert b"one" in code
    assert code == CudaBindings().compile("one", PROGRAM, ["--gpu-architecture=sm_90"])


def test_both_bindings_find_the_same_library(binding: Any) -> None:
    """The version is that of NVRTC, not of the binding."""
    assert binding.version() == CudaBindings().version() >= (12, 0)


def test_a_program_that_does_not_compile_says_why(binding: Any) -> None:
    """The error has the compiler's message."""
    with pytest.raises(CompilationError, match=r'broken: .*identifier "nonsense" is undefined'):
        binding.compile("broken", "__global__ void f() { nonsense; }", ["--gpu-architecture=sm_90"])


def test_an_unknown_option_says_so(binding: Any) -> None:
    """An unknown compute capability is an error with NVRTC's message."""
    with pytest.raises(CompilationError, match=r"old: .*gpu-architecture"):
        binding.compile("old", "__global__ void f() {}", ["--gpu-architecture=sm_10"])


def test_a_compiler_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of NVRTC itself has its name and that of the function."""
    made = CudaBindings()
    failure = made._nvrtc.nvrtcResult.NVRTC_ERROR_OUT_OF_MEMORY
    monkeypatch.setattr(made._nvrtc, "nvrtcGetCUBINSize", lambda handle: (failure, 0))
    with pytest.raises(CompilationError, match="nvrtcGetCUBINSize failed: NVRTC_ERROR_OUT_OF_MEMORY"):
        made.compile("f", "__global__ void f() {}", ["--gpu-architecture=sm_90"])


def test_without_the_bindings_of_cuda_those_of_cupy_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy is installed with the device's backend, so no further package is required."""
    assert nvrtc.load().name == "cuda.bindings"
    nvrtc.load.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert nvrtc.load().name == "CuPy"


def test_a_binding_that_finds_no_library_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bindings for another major version than the installed CUDA can be imported, and fail at their first call."""

    def fails(self: CudaBindings) -> tuple[int, int]:
        raise RuntimeError("libnvrtc.so.12 was not found")

    monkeypatch.setattr(CudaBindings, "version", fails)
    assert nvrtc.load().name == "CuPy"


def test_without_any_binding_each_ones_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", None)
    words = r"NVRTC cannot be loaded \(through cuda.bindings: .*; through CuPy: .*\): pip install 'candelabra\[cuda\]'"
    with pytest.raises(CompilationError, match=words):
        nvrtc.load()
