"""Random numbers with the same bits as on every other device. Specification: ``docs/notes/0001-random-numbers.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from math import ceil
from operator import and_
from typing import Any, Final

from candelabra.dtypes import (
    FLOATING,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int64,
    uint64,
)

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.language import Value, call, cast, constant, sqrt, value_type
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.templates.elementwise.elementwise import cast_kernel
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys
from candelabra_clike.templates.indexing.index_arrays import IndexErrors
from candelabra_clike.templates.random_numbers import HALVES, WORDS, Indices, RandomKernel, Values

Engines = Callable[[int], Engine]
PARTS: Final = {complex64: float32, complex128: float64}
"""The dtype of the parts of complex numbers; real dtypes are not listed."""
DIGITS: Final = {float16: 11, bfloat16: 8, float32: 24}
"""The binary digits of uniform numbers that are computed from 32 bits."""
INVALID_PROBABILITY: Final = IndexOutOfBounds(
    "random_bernoulli", RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
)


def _continuous(kind: str, d: dtype, per: int, values: Callable[[KernelBuilder], Sequence[Value]]) -> RandomKernel:
    """Return the kernel of a continuous distribution, without further parameters; ``values`` are those of parts."""
    return RandomKernel(
        f"{kind}_{d.name}", PARTS.get(d, d), per, lambda k: lambda indices: values(k), parts=1 + (d in PARTS)
    )


@lru_cache(None)
def uniform(d: dtype) -> RandomKernel:
    """Numbers in [0, 1); section 4."""
    values = uniform_values(PARTS.get(d, d))
    return _continuous("uniform", d, len(values), lambda k: values)


def uniform_values(d: dtype) -> list[Value]:
    """Return the uniform numbers of a counter for a real dtype."""
    if d is float64:
        return [call("uniform_f64", word) for word in WORDS]
    digits = DIGITS[d]
    # The integers are below 2^24, so their signed conversion, which more devices vectorise, gives the same number.
    return [cast("f32", cast("i32", half >> 32 - digits)) * 2.0**-digits for half in HALVES]


@lru_cache(None)
def normal(d: dtype, exact: bool) -> RandomKernel:
    """Standard normal numbers, section 7; computed in float64 if the device has it (``exact``)."""
    wide = PARTS.get(d, d) is float64
    value = "f64" if exact or wide else "f32"

    def values(k: KernelBuilder) -> Iterator[Value]:
        for pair in range(2 if wide else 4):
            log, angle = (WORDS if wide else HALVES)[2 * pair : 2 * pair + 2]
            if wide:
                log, angle = call("negative_log_f64", log >> 12, 52), angle & ~2047 % 2**64
            elif exact:
                log, angle = call("negative_log_f64", log, 32), WORDS[pair] & 0xFFFFFFFF << 32
            else:
                log = call("negative_log_f32", log)
            log = k.let(f"l{pair}", log)
            radius = k.let(f"r{pair}", sqrt(log if d in PARTS else log + log))
            angle = k.let(f"a{pair}", angle)
            for name in ("cos", "sin"):
                made = radius * call(f"{name}_of_turns_{value}", angle)
                # The float64 number is rounded to float32 before it is rounded to a half type.
                yield made if wide else cast("f32", made)

    return _continuous("normal" if value == "f64" else "normal_single", d, 4 if wide else 8, lambda k: [*values(k)])


@lru_cache(None)
def exponential(d: dtype, exact: bool) -> RandomKernel:
    """Exponential numbers of rate 1, section 8; ``exact`` as for :func:`normal`."""
    if d is float64:
        values = [call("negative_log_f64", word >> 12, 52) for word in WORDS]
    elif exact:
        values = [cast("f32", call("negative_log_f64", half, 32)) for half in HALVES]
    else:
        values = [call("negative_log_f32", half) for half in HALVES]
    single = "" if d is float64 or exact else "_single"
    return _continuous(f"exponential{single}", d, len(values), lambda k: values)


@lru_cache(None)
def integers(d: dtype, wide: bool) -> RandomKernel:
    """Bounded integers, section 5. With ``wide``, the range exceeds 2**32, and a span of 2**64 is passed as 0."""
    type = value_type(d)

    def parameters(k: KernelBuilder) -> Values:
        low, span = k.number("low", "u64"), k.number("span", "u64")
        picks = [call("multiply_high_u64", word, span) for word in WORDS]
        if wide:
            picks = [call("bounded_wide_u64", *pair, span) for pair in (WORDS[:2], WORDS[2:])]
        return lambda indices: [low + pick != 0 if type == "bool" else cast(type, low + pick) for pick in picks]

    return RandomKernel(f"integers_{'wide_' * wide}{d.name}", d, 2 if wide else 4, parameters)


@lru_cache(None)
def bernoulli() -> RandomKernel:
    """True with one probability, which is passed as a threshold for 32-bit words; section 6."""

    def parameters(k: KernelBuilder) -> Values:
        threshold = k.number("threshold", "u64")
        return lambda indices: [half < threshold for half in HALVES]

    return RandomKernel("bernoulli", "u8", len(HALVES), parameters)


@lru_cache(None)
def bernoulli_each(d: dtype) -> RandomKernel:
    """True with the probabilities in an array. The kernel reports an error for a value outside [0, 1]."""
    numbers = WORDS if d is float64 else HALVES

    def parameters(k: KernelBuilder) -> Values:
        p, p_at, errors = k.reads("p", d), k.number("p_at"), IndexErrors(k)

        def values(indices: Indices) -> list[Value]:
            chances = [k.let(f"p{j}", p[p_at + i]) for j, i in enumerate(indices)]
            valid = [(chance >= 0) & (chance <= 1) for chance in chances]
            with k.when(~reduce(and_, valid)):
                k.run("report_error", errors.errors, errors.ticket, *[constant("i64", 0)] * 3)
            if d is float64:
                return [call("uniform_f64", word) < chance for word, chance in zip(WORDS, chances)]
            return [half < call("threshold_f32", chance) for half, chance in zip(HALVES, chances)]

        return values

    return RandomKernel(f"bernoulli_{d.name}", "u8", len(numbers), parameters)


@lru_cache(None)
def words() -> RandomKernel:
    """The 64-bit words themselves."""
    return RandomKernel("words", "u64", len(WORDS), lambda k: lambda indices: WORDS)


# -- kernels ----------------------------------------------------------------------------------------------------------
def _continuous_numbers(kernel: Callable[[dtype, bool], RandomKernel]) -> Callable[[Engines], Callable[..., Any]]:
    """Return the factory of a continuous distribution, whose kernel depends on whether the device has float64."""

    def factory(engines: Engines) -> Callable[..., Any]:
        def random(shape: Shape, seed: int, offset: int, d: dtype, index: int) -> Any:
            engine = engines(index)
            if engine.lacks(d):
                return NotImplemented
            return kernel(d, engine.traits.float64)(engine, shape, d, seed, offset)

        return random

    return factory


def _random_integers(engines: Engines) -> Callable[..., Any]:
    def random_integers(
        shape: Shape, low: int, high: int, seed: int, offset: int, d: dtype, index: int
    ) -> StridedArray:
        span, word = high - low, 1 << 64
        return integers(d, span > 1 << 32)(engines(index), shape, d, seed, offset, low % word, span % word)

    return random_integers


def _random_bernoulli(engines: Engines) -> Callable[..., Any]:
    def random_bernoulli(p: Any, shape: Shape, seed: int, offset: int, index: int) -> StridedArray:
        if type(p) is not StridedArray:
            threshold = min(max(ceil(p * 2**32), 0), 1 << 32) if p == p else 0
            return bernoulli()(engines(index), shape, bool_, seed, offset, threshold)
        p, engine = contiguous(p), p.engine
        errors, fault = engine.errors.buffer(), engine.errors.number(INVALID_PROBABILITY)
        draw = bernoulli_each(p.dtype)
        return draw(engine, shape, bool_, seed, offset, p.buffer, p.offset, errors, fault)

    return random_bernoulli


def _random_permutation(engines: Engines) -> Callable[..., Any]:
    def random_permutation(n: int, seed: int, offset: int, d: dtype, index: int) -> StridedArray:
        keys = words()(engines(index), (n,), uint64, seed, offset)
        permutation = argsort_keys(keys, 64)
        return permutation if d is int64 else cast_kernel(int64, d)(permutation)

    return random_permutation


@lru_cache(None)
def log_gamma(d: dtype) -> RandomKernel:
    """Logarithms of gamma numbers: quantiles of uniform numbers, section 17. Each has its own concentration.

    The quantile has 9 digits, so float64 is left to the reference device.
    """

    def parameters(k: KernelBuilder) -> Values:
        a, a_at = k.reads("a", d), k.number("a_at")

        def quantile(word: Value, i: Value) -> Value:
            concentration = cast("f64", a[a_at + i])
            return cast("f32", call("log_gamma_quantile_f64", concentration, call("probability_f64", word)))

        return lambda indices: [quantile(word, i) for word, i in zip(WORDS, indices, strict=True)]

    return RandomKernel(f"log_gamma_{d.name}", d, len(WORDS), parameters)


def random_log_gamma(concentration: StridedArray, seed: int, offset: int) -> Any:
    """The kernel of ``random_log_gamma``."""
    engine, d = concentration.engine, concentration.dtype
    if engine.lacks(float64):
        return NotImplemented
    a = contiguous(concentration)
    return log_gamma(d)(engine, a.shape, d, seed, offset, a.buffer, a.offset)


KERNELS: Final = {
    "random_log_gamma": DtypeSpecialized(
        lambda d: random_log_gamma if d.category == FLOATING and d is not float64 else None
    )
}
FACTORIES: Final = {
    "random_uniform": _continuous_numbers(lambda d, exact: uniform(d)),
    "random_normal": _continuous_numbers(normal),
    "random_exponential": _continuous_numbers(exponential),
    "random_integers": _random_integers,
    "random_bernoulli": _random_bernoulli,
    "random_permutation": _random_permutation,
}
