"""Random numbers with the same bits as on every other device. Specification: ``docs/notes/0001-random-numbers.md``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import Any, Final

from candelabra.dtypes import bool_, complex64, complex128, dtype, float32, float64, int64, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import converted
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.source import number, reads, writes
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys
from candelabra_clike.templates.random_numbers import RandomKernel
from candelabra_clike.types import CTYPES

Engines = Callable[[int], Engine]
WORDS: Final = ("w0", "w1", "w2", "w3")
HALVES: Final = tuple(f"{half}_HALF({word})" for word in WORDS for half in ("LOW", "HIGH"))
"""The 32-bit words of a counter, the low half of each word first."""
PARTS: Final = {complex64: float32, complex128: float64}
"""The dtype of the parts of complex numbers; real dtypes are not listed."""
INVALID_PROBABILITY: Final = IndexOutOfBounds(
    "random_bernoulli", RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
)


def _continuous(kind: str, d: dtype, values: list[str], steps: str = "") -> RandomKernel:
    """Return the kernel of a continuous distribution; ``values`` are the expressions of the parts of elements."""
    part = CTYPES[PARTS.get(d, d)]
    stored = tuple(part.store(value) for value in values)
    return RandomKernel(f"{kind}_{d.name}", part.memory, stored, steps, parts=1 + (d in PARTS))


@lru_cache(None)
def uniform(d: dtype) -> RandomKernel:
    """Numbers in [0, 1); section 4."""
    return _continuous("uniform", d, uniform_values(PARTS.get(d, d)))


def uniform_values(d: dtype) -> list[str]:
    """Return the expressions of the uniform numbers of a counter for a real dtype."""
    if d is float64:
        return [f"uniform_f64({word})" for word in WORDS]
    convert = {"float16": "UNIFORM_F16", "bfloat16": "UNIFORM_BF16"}.get(d.name, "UNIFORM_F32")
    return [f"{convert}({half})" for half in HALVES]


@lru_cache(None)
def normal(d: dtype, exact: bool) -> RandomKernel:
    """Standard normal numbers, section 7; computed in float64 if the device has it (``exact``)."""
    wide = PARTS.get(d, d) is float64
    value = "f64" if exact or wide else "f32"
    values, steps = [], []
    for pair in range(2 if wide else 4):
        if wide:
            log, angle = f"negative_log_f64(w{2 * pair} >> 12, 52)", f"w{2 * pair + 1} & ~(u64)2047"
        elif exact:
            log, angle = f"negative_log_f64(LOW_HALF(w{pair}), 32)", f"w{pair} & ((u64)0xFFFFFFFF << 32)"
        else:
            log, angle = f"negative_log_f32(LOW_HALF(w{pair}))", f"HIGH_HALF(w{pair})"
        square = f"l{pair}" if d in PARTS else f"l{pair} + l{pair}"
        steps.append(
            f"const {value} l{pair} = {log}, r{pair} = SQRT_{value.upper()}({square});\n"
            f"const u{value[1:]} a{pair} = {angle};"
        )
        # The float64 number is rounded to float32 before it is rounded to a half type.
        rounded = "(f32)" if value == "f64" and not wide else ""
        values += [f"{rounded}(r{pair} * {name}_of_turns_{value}(a{pair}))" for name in ("cos", "sin")]
    return _continuous("normal" if value == "f64" else "normal_single", d, values, "\n".join(steps))


@lru_cache(None)
def exponential(d: dtype, exact: bool) -> RandomKernel:
    """Exponential numbers of rate 1, section 8; ``exact`` as for :func:`normal`."""
    if d is float64:
        return _continuous("exponential", d, [f"negative_log_f64({word} >> 12, 52)" for word in WORDS])
    if exact:
        return _continuous("exponential", d, [f"(f32)negative_log_f64({half}, 32)" for half in HALVES])
    return _continuous("exponential_single", d, [f"negative_log_f32({half})" for half in HALVES])


@lru_cache(None)
def integers(d: dtype, wide: bool) -> RandomKernel:
    """Bounded integers, section 5. With ``wide``, the range exceeds 2**32, and a span of 2**64 is passed as 0."""
    if wide:
        picks = [f"bounded_wide_u64({a}, {b}, span)" for a, b in (("w0", "w1"), ("w2", "w3"))]
    else:
        picks = [f"multiply_high_u64({word}, span)" for word in WORDS]
    store = CTYPES[d].store
    values = tuple(store(f"low + {pick}") for pick in picks)
    numbers = (number("low", "u64"), number("span", "u64"))
    return RandomKernel(f"integers_{'wide_' if wide else ''}{d.name}", CTYPES[d].memory, values, numbers=numbers)


@lru_cache(None)
def bernoulli() -> RandomKernel:
    """True with one probability, which is passed as a threshold for 32-bit words; section 6."""
    values = tuple(f"{half} < threshold ? 1 : 0" for half in HALVES)
    return RandomKernel("bernoulli", "u8", values, numbers=(number("threshold", "u64"),))


@lru_cache(None)
def bernoulli_each(d: dtype) -> RandomKernel:
    """True with the probabilities in an array. The kernel reports an error for a value outside [0, 1]."""
    p = CTYPES[d].load("p[p_at + {i}]")
    chosen = WORDS if d is float64 else HALVES
    less = "uniform_f64({v}) < {p}" if d is float64 else "{v} < threshold_f32({p})"
    values = tuple(
        f"check_probability_{CTYPES[d].value}({p}, errors, fault) && {less.format(v=v, p=p)}" for v in chosen
    )
    return RandomKernel(
        f"bernoulli_{d.name}", "u8", tuple(f"({value}) ? 1 : 0" for value in values),
        arrays=(reads("p", CTYPES[d].memory), writes("errors", "i64")),
        numbers=(number("p_at"), number("fault", "u32")),
    )  # fmt: skip


@lru_cache(None)
def words() -> RandomKernel:
    """The 64-bit words themselves."""
    return RandomKernel("words", "u64", WORDS)


# -- kernels ----------------------------------------------------------------------------------------------------------
def _random_uniform(engines: Engines) -> Callable[..., Any]:
    def random_uniform(shape: Shape, seed: int, offset: int, d: dtype, index: int) -> StridedArray:
        engine = engines(index)
        return NotImplemented if engine.lacks(d) else uniform(d)(engine, shape, d, seed, offset)

    return random_uniform


def _random_normal(engines: Engines) -> Callable[..., Any]:
    def random_normal(shape: Shape, seed: int, offset: int, d: dtype, index: int) -> Any:
        engine = engines(index)
        if engine.lacks(d):
            return NotImplemented
        return normal(d, engine.traits.float64)(engine, shape, d, seed, offset)

    return random_normal


def _random_exponential(engines: Engines) -> Callable[..., Any]:
    def random_exponential(shape: Shape, seed: int, offset: int, d: dtype, index: int) -> Any:
        engine = engines(index)
        if engine.lacks(d):
            return NotImplemented
        return exponential(d, engine.traits.float64)(engine, shape, d, seed, offset)

    return random_exponential


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
        return draw(engine, shape, bool_, seed, offset, p.offset, fault, buffers=(p.buffer, errors))

    return random_bernoulli


def _random_permutation(engines: Engines) -> Callable[..., Any]:
    def random_permutation(n: int, seed: int, offset: int, d: dtype, index: int) -> StridedArray:
        keys = words()(engines(index), (n,), uint64, seed, offset)
        permutation = argsort_keys(keys, 64)
        return permutation if d is int64 else cast_indices(d)(permutation)

    return random_permutation


@lru_cache(None)
def cast_indices(d: dtype) -> Elementwise:
    """Return the kernel that converts indices to another integer dtype."""
    return Elementwise.of(f"narrowed_{d.name}", lambda a: converted(a, int64, d), (int64,), d)


FACTORIES: Final = {
    "random_uniform": _random_uniform,
    "random_normal": _random_normal,
    "random_exponential": _random_exponential,
    "random_integers": _random_integers,
    "random_bernoulli": _random_bernoulli,
    "random_permutation": _random_permutation,
}
