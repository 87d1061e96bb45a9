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
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.language import Value, call, cast
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.templates.random_numbers import WORDS, RandomKernel, Values


@lru_cache(None)
def log_gamma(d: dtype) -> RandomKernel:
    """Return the kernel of a dtype; each number has its own concentration."""

    def parameters(k: KernelBuilder) -> Values:
        a, a_at = k.reads("a", d), k.number("a_at")

        def quantile(word: Value, i: Value) -> Value:
            concentration = cast("f64", a[a_at + i])
            return cast("f32", call("log_gamma_quantile_f64", concentration, call("probability_f64", word)))

        return lambda indices: [quantile(word, i) for word, i in zip(WORDS, indices, strict=True)]

    return RandomKernel(f"log_gamma_{d.name}", d, len(WORDS), parameters)


def _log_gamma_for(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING or d is float64:
        return None

    def random_log_gamma(concentration: StridedArray, seed: int, offset: int) -> Any:
        engine = concentration.engine
        if engine.lacks(float64):
            return NotImplemented
        a = contiguous(concentration)
        return log_gamma(d)(engine, a.shape, d, seed, offset, a.buffer, a.offset)

    return random_log_gamma


KERNELS: dict[str, Any] = {"random_log_gamma": DtypeSpecialized(_log_gamma_for)}
