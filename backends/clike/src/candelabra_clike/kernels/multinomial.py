"""Indices drawn by weight. Specification: ``docs/notes/0001-random-numbers.md``, section 10."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from candelabra.dtypes import dtype, float32, float64, int64, uint64

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import clone, contiguous
from candelabra_clike.kernels.random import exponential, words
from candelabra_clike.kernels.sorting import keys
from candelabra_clike.language import INDEX, Value, call, cast, constant, multiply_high, select, value_type
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys

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


class WeightRows:
    """The rows of weights of a kernel with a work-item per row, and the errors of a row."""

    def __init__(self, kernel: KernelBuilder, d: dtype, *numbers: str) -> None:
        k = self.kernel = kernel
        self.type = value_type(d)
        self.array, self.at = k.reads("weights", d), k.number("weights_at")
        self.rows, self.n, *self.others = k.numbers("rows", "n", *numbers)
        self.errors = k.writes("errors", "i64")
        self.invalid, self.none_positive, self.too_few = [
            k.number(name, "u32") for name in ("invalid_weight", "no_positive_weight", "too_few_weights")
        ]

    def __getitem__(self, i: Value) -> Value:
        return self.array[self.at + self.kernel.item * self.n + i]

    def report(self, number: Value, size: Value | None = None) -> None:
        """Report an error of the row."""
        zero = constant("i64", 0)
        size = zero if size is None else cast("i64", size)
        self.kernel.run("report_error", self.errors, number, zero, zero, size)

    @contextmanager
    def valid_row(self) -> Iterator[Value]:
        """A block for a row whose weights are valid and not all 0: the exponent E with 2^(E - 1) <= largest < 2^E."""
        k = self.kernel
        with k.when(k.item < self.rows):
            largest = k.variable("largest", constant(self.type, 0))
            wrong = k.variable("wrong", constant("bool", 0))
            with k.loop("i", 0, self.n) as i:
                weight = k.let("weight", self[i])
                k.assign(wrong, wrong | ~((weight >= 0) & (weight - weight == 0)))
                k.assign(largest, select(weight > largest, weight, largest))
            with k.when(wrong):
                self.report(self.invalid)
            with k.otherwise():
                with k.when(largest == 0):
                    self.report(self.none_positive)
                with k.otherwise():
                    length = call("bit_length", call("significand", largest))
                    yield k.let("E", length + call("exponent", largest))


@built(NAME)
def cumulative_source(d: dtype, wide: bool) -> Source:
    """Return the kernel for ``below[i]``, the sum of the row's weights up to i, as integers."""
    k = KernelBuilder(f"multinomial_below_{d.name}", wide)
    below, weights = k.writes("below", "u64"), WeightRows(k, d)
    with weights.valid_row() as exponent:
        room = k.let("room", 63 - call("bit_length", weights.n) - exponent)
        total = k.variable("sum", constant("u64", 0))
        with k.loop("i", 0, weights.n) as i:
            weight = k.let("weight", weights[i])
            shifted = call("shifted_u64", call("significand", weight), call("exponent", weight) + room)
            k.assign(total, total + shifted)
            below[k.item * weights.n + i] = total
    return k.source()


@built(NAME)
def pick_source(wide: bool) -> Source:
    """Return the kernel in which a work-item finds the smallest i with ``mulhi(word, total) < below[i]`` by binary
    search.
    """
    k = KernelBuilder("multinomial_pick", wide)
    out, below, words = k.writes("out", "i64"), k.reads("below", "u64"), k.reads("words", "u64")
    rows, n, samples = k.numbers("rows", "n", "samples")
    with k.when(k.item < rows * samples):
        row = k.let("row", k.item // samples * n)
        point = k.let("point", multiply_high(words[k.item], below[row + n - 1]))
        low, high = k.variable("low", constant(INDEX, 0)), k.variable("high", n - 1)
        with k.repeat(low < high):
            middle = k.let("middle", low + (high - low) // 2)
            with k.when(point < below[row + middle]):
                k.assign(high, middle)
            with k.otherwise():
                k.assign(low, middle + 1)
        out[k.item] = cast("i64", low)
    return k.source()


@built(NAME)
def race_source(d: dtype, exact: bool, wide: bool) -> Source:
    """Return the kernel that divides exponential numbers ``times`` by weights; with ``exact``, in float64."""
    time = "f64" if exact else "f32"
    k = KernelBuilder(f"multinomial_race_{d.name}_{time}", wide)
    times, weights = k.writes("times", time), WeightRows(k, d, "samples")
    (samples,), least_share = weights.others, 2.0**-1000 if exact else 2.0**-120
    with weights.valid_row() as exponent:
        positive = k.variable("positive", constant(INDEX, 0))
        with k.loop("i", 0, weights.n) as i:
            share = k.let("share", call(f"ldexp_{time}", cast(time, weights[i]), 1 - exponent))
            at, takes_part = k.let("at", k.item * weights.n + i), k.let("takes_part", share >= least_share)
            k.assign(positive, positive + takes_part)
            times[at] = select(takes_part, times[at] / share, inf)
        with k.when(positive < samples):
            weights.report(weights.too_few, samples)
    return k.source()


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
        compiled(engine, cumulative_source, d, wide)(
            rows, cumulative.buffer, weights.buffer, weights.offset, rows, n, *error_arguments
        )
        out = engine.empty(shape, int64)
        drawn = words()(engine, shape, uint64, seed, offset)
        pick = compiled(engine, pick_source, wide)
        pick(out.size, out.buffer, cumulative.buffer, drawn.buffer, rows, n, num_samples)
        return out
    exact = engine.traits.float64
    time = float64 if exact else float32
    times = exponential(time, exact)(engine, weights.shape, time, seed, offset)
    race = compiled(engine, race_source, d, exact, wide)
    race(rows, times.buffer, weights.buffer, weights.offset, rows, n, num_samples, *error_arguments)
    order = argsort_keys(keys(time, False)(times), 8 * time.itemsize)
    return clone(order.restrided(shape, order.strides, 0))


KERNELS: Final = {NAME: random_multinomial}
