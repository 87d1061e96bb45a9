"""Functions of complex numbers whose special values, or whose digits near 0, NumPy does not have right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.blocks import blockwise
from candelabra_cpu.quiet import asarray

Kernel = Callable[..., Any]


def _expm1(z: Any) -> Any:
    # exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin²(y/2), without cancellation. Beside infinities and NaN exp() is right.
    x, y = z.real, z.imag
    out = np.empty_like(z)
    less, half = np.expm1(x), np.sin(0.5 * y)
    versine = 2 * half * half  # 1 - cos(y)
    out.real = less - less * versine - versine + 0.0  # not -0, as exp(-0) - 1
    out.imag = np.exp(x) * np.sin(y)
    odd = ~np.isfinite(out)
    if odd.any():
        power = np.exp(z[odd])
        power.real -= 1
        out[odd] = power
    return out


def _tanh(z: Any) -> Any:
    # The Array API standard has tanh(±inf + bi) = ±1 with a zero of b's sign, where C has that of sin(2b).
    out = asarray(np.tanh(z))
    infinite = np.isinf(z.real) & np.isfinite(z.imag)
    if infinite.any():
        out.imag = np.where(infinite, np.copysign(0.0, z.imag), out.imag)
    return out


FUNCTIONS: dict[str, Kernel] = {"expm1": blockwise(_expm1), "tanh": blockwise(_tanh)}


def for_complex(name: str, others: Kernel) -> Kernel:
    """The kernel of complex numbers where this module has one, ``others`` for the other dtypes."""
    function = FUNCTIONS.get(name)
    if function is None:
        return others

    def kernel(x: Any) -> Any:
        return function(x) if x.dtype.kind == "c" else others(x)

    return kernel


def for_complex_into(name: str, others: Kernel) -> Kernel:
    """The in-place form of :func:`for_complex`."""
    function = FUNCTIONS.get(name)
    if function is None:
        return others

    def kernel(x: Any) -> Any:
        if x.dtype.kind != "c":
            return others(x)
        np.copyto(x, function(x))
        return x

    return kernel
