"""Logarithms of gamma numbers: quantiles of uniform numbers, section 17 of ``docs/notes/0001-random-numbers.md``.

The quantile has 9 digits, so float64 is left to the reference device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import FLOATING, dtype, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.random import WORDS
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.source import number, reads
from candelabra_clike.templates.random_numbers import RandomKernel
from candelabra_clike.types import CTYPES


@lru_cache(None)
def log_gamma(d: dtype) -> RandomKernel:
    """Return the kernel of a dtype; each number has its own concentration."""
    c = CTYPES[d]
    a = c.load("a[a_at + {i}]")
    values = tuple(
        c.store(f"(f32)log_gamma_quantile_f64((f64)({a}), probability_f64({word}))").replace("{word}", word)
        for word in WORDS
    )
    return RandomKernel(
        f"log_gamma_{d.name}", c.memory, values, arrays=(reads("a", c.memory),), numbers=(number("a_at"),)
    )


def _log_gamma_for(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING or d is float64:
        return None

    def random_log_gamma(concentration: StridedArray, seed: int, offset: int) -> Any:
        engine = concentration.engine
        if engine.lacks(float64):
            return NotImplemented
        a = contiguous(concentration)
        return log_gamma(d)(engine, a.shape, d, seed, offset, a.offset, buffers=(a.buffer,))

    return random_log_gamma


KERNELS: dict[str, Any] = {"random_log_gamma": DtypeSpecialized(_log_gamma_for)}
