"""Complex functions for which NumPy returns wrong special values, or loses digits near 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.blocks import blockwise
from candelabra_cpu.numpy_kernels import asarray

Kernel = Callable[..., Any]


def _expm1(z: Any) -> Any:
    # exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin²(y/2) without cancellation. exp() is right for infinities and NaN.
    x, y = z.real, z.imag
    out = np.empty_like(z)
    real, half_sine = np.expm1(x), np.sin(0.5 * y)
    versine = 2 * half_sine * half_sine  # 1 - cos(y)
    out.real = real - real * versine - versine + 0.0  # adding 0.0 turns -0 into 0, the value of exp(-0) - 1
    out.imag = np.exp(x) * np.sin(y)
    special = ~np.isfinite(out)
    if special.any():
        power = np.exp(z[special])
        power.real -= 1
        out[special] = power
    return out


def _tanh(z: Any) -> Any:
    # The Array API standard defines tanh(±inf + bi) as ±1 with a zero that has the sign of b; C uses that of sin(2b).
    out = asarray(np.tanh(z))
    infinite = np.isinf(z.real) & np.isfinite(z.imag)
    if infinite.any():
        out.imag = np.where(infinite, np.copysign(0.0, z.imag), out.imag)
    return out


FUNCTIONS: dict[str, Kernel] = {"expm1": blockwise(_expm1), "tanh": blockwise(_tanh)}


def with_complex_kernel(name: str, real_kernel: Kernel) -> Kernel:
    """Return ``real_kernel``, extended by this module's kernel for complex dtypes if there is one."""
    function = FUNCTIONS.get(name)
    if function is None:
        return real_kernel

    def kernel(x: Any) -> Any:
        return function(x) if x.dtype.kind == "c" else real_kernel(x)

    return kernel


def with_complex_kernel_inplace(name: str, real_kernel: Kernel) -> Kernel:
    """Return the in-place form of :func:`with_complex_kernel`."""
    function = FUNCTIONS.get(name)
    if function is None:
        return real_kernel

    def kernel(x: Any) -> Any:
        if x.dtype.kind != "c":
            return real_kernel(x)
        np.copyto(x, function(x))
        return x

    return kernel
