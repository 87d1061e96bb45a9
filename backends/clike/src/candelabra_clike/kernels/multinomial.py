"""Indices drawn by weight. Specification: ``docs/notes/0001-random-numbers.md``, section 10."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from candelabra.dtypes import dtype, float32, float64, int64, uint64

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import clone, contiguous
from candelabra_clike.kernels.random import exponential, words
from candelabra_clike.kernels.sorting import keys
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys
from candelabra_clike.types import CTYPES

NAME: Final = "random_multinomial"
INVALID_WEIGHT: Final = IndexOutOfBounds(
    NAME, RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0"
)  # fmt: skip
NO_POSITIVE_WEIGHT: Final = IndexOutOfBounds(
    NAME, RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)"
)
TOO_FEW_WEIGHTS: Final = IndexOutOfBounds(
    NAME, RuntimeError,
    "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample {size})",
)  # fmt: skip
ERROR_PARAMETERS: Final = (
    writes("errors", "i64"), number("invalid_weight", "u32"), number("no_positive_weight", "u32"),
    number("too_few_weights", "u32"),
)  # fmt: skip


def _largest_weight(d: dtype) -> str:
    """Return statements that compute the largest weight of a row and E with 2^(E - 1) <= largest < 2^E, and report
    errors.
    """
    value = CTYPES[d].value
    return (
        "const INDEX row = GLOBAL_ID;\nif (row >= rows) return;\n"
        f"{value} largest = 0;\nu32 wrong = 0;\n"
        "for (INDEX i = 0; i < n; ++i) {\n"
        f"const {value} weight = {CTYPES[d].load('weights[weights_at + row * n + i]')};\n"
        "wrong |= weight >= 0 && weight - weight == 0 ? 0 : 1;\nlargest = weight > largest ? weight : largest;\n}\n"
        "if (wrong) { report_error(errors, invalid_weight, 0, 0, 0); return; }\n"
        "if (largest == 0) { report_error(errors, no_positive_weight, 0, 0, 0); return; }\n"
        f"const i32 E = bit_length(significand_{value}(largest)) + exponent_{value}(largest);\n"
    )


def cumulative_source(d: dtype, wide: bool) -> Source:
    """Return the kernel for ``below[i]``, the sum of the row's weights up to i, as integers."""
    value = CTYPES[d].value
    body = (
        f"{_largest_weight(d)}const i32 room = 63 - bit_length(n) - E;\nu64 sum = 0;\n"
        "for (INDEX i = 0; i < n; ++i) {\n"
        f"const {value} weight = {CTYPES[d].load('weights[weights_at + row * n + i]')};\n"
        f"sum += shifted_u64(significand_{value}(weight), exponent_{value}(weight) + room);\n"
        "below[row * n + i] = sum;\n}"
    )
    head = (
        writes("below", "u64"), reads("weights", CTYPES[d].memory), number("weights_at"), number("rows"), number("n"),
        *ERROR_PARAMETERS,
    )  # fmt: skip
    return Source(f"multinomial_below_{d.name}", head, body, wide=wide)


def pick_source(wide: bool) -> Source:
    """Return the kernel in which a work-item finds the smallest i with ``mulhi(word, total) < below[i]`` by binary
    search.
    """
    body = """const INDEX sample = GLOBAL_ID;
if (sample >= rows * samples) return;
const INDEX row = sample / samples * n;
const u64 point = MULTIPLY_HIGH(words[sample], below[row + n - 1]);
INDEX low = 0, high = n - 1;
while (low < high) {
const INDEX middle = low + (high - low) / 2;
if (point < below[row + middle]) high = middle; else low = middle + 1;
}
out[sample] = (i64)low;"""
    head = (
        writes("out", "i64"), reads("below", "u64"), reads("words", "u64"), number("rows"), number("n"),
        number("samples"),
    )  # fmt: skip
    return Source("multinomial_pick", head, body, wide=wide)


def race_source(d: dtype, exact: bool, wide: bool) -> Source:
    """Return the kernel that divides exponential numbers ``times`` by weights; with ``exact``, in float64."""
    load, time = CTYPES[d].load("weights[weights_at + row * n + i]"), "f64" if exact else "f32"
    value = CTYPES[d].value
    least, never = ("0x1p-1000", "BITS_F64((u64)0x7FF << 52)") if exact else ("0x1p-120f", "BITS_F32(0x7F800000u)")
    body = (
        f"{_largest_weight(d)}INDEX positive = 0;\nfor (INDEX i = 0; i < n; ++i) {{\n"
        f"const {value} weight = {load};\nconst {time} share = ldexp_{time}(({time})weight, 1 - E);\n"
        f"positive += share >= {least} ? 1 : 0;\n"
        f"times[row * n + i] = share >= {least} ? DIVIDE_{time.upper()}(times[row * n + i], share) : {never};\n}}\n"
        "if (positive < samples) report_error(errors, too_few_weights, 0, 0, samples);"
    )
    head = (
        writes("times", time), reads("weights", CTYPES[d].memory), number("weights_at"), number("rows"), number("n"),
        number("samples"), *ERROR_PARAMETERS,
    )  # fmt: skip
    return Source(f"multinomial_race_{d.name}_{time}", head, body, wide=wide)


SOURCES: Final[dict[str, Callable[..., Source]]] = {
    "below": cumulative_source,
    "pick": pick_source,
    "race": race_source,
}


@lru_cache(None)
def compiled(engine: Engine, name: str, *form: Any) -> Launch:
    """Return a compiled kernel of this module."""
    return engine.compile(SOURCES[name](*form))


def random_multinomial(
    weights: StridedArray, num_samples: int, replacement: bool, seed: int, offset: int
) -> StridedArray:
    """Indices drawn from each row of weights, of shape (n,) or (rows, n)."""
    engine, d, n = weights.engine, weights.dtype, weights.shape[-1]
    shape = (*weights.shape[:-1], num_samples)
    weights = contiguous(weights)
    rows = weights.size // n
    if not rows:
        return engine.empty(shape, int64)
    wide = max(weights.offset + weights.size, rows * num_samples) >= WIDE
    errors = engine.errors
    error_arguments = (errors.buffer(), *map(errors.number, (INVALID_WEIGHT, NO_POSITIVE_WEIGHT, TOO_FEW_WEIGHTS)))
    if replacement:
        cumulative = engine.empty(weights.shape, uint64)
        compiled(engine, "below", d, wide)(
            rows, cumulative.buffer, weights.buffer, weights.offset, rows, n, *error_arguments
        )
        out = engine.empty(shape, int64)
        drawn = words()(engine, shape, uint64, seed, offset)
        pick = compiled(engine, "pick", wide)
        pick(out.size, out.buffer, cumulative.buffer, drawn.buffer, rows, n, num_samples)
        return out
    exact = engine.traits.float64
    time = float64 if exact else float32
    times = exponential(time, exact)(engine, weights.shape, time, seed, offset)
    race = compiled(engine, "race", d, exact, wide)
    race(rows, times.buffer, weights.buffer, weights.offset, rows, n, num_samples, *error_arguments)
    order = argsort_keys(keys(time, False)(times), 8 * time.itemsize)
    return clone(order.restrided(shape, order.strides, 0))


KERNELS: Final = {NAME: random_multinomial}
