"""Faults of random numbers, which are specified to the bit."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks

Shape = tuple[int, ...]
DRAWS = ("random_uniform", "random_normal", "random_exponential")


@breaks("random_uniform", "random_normal", caught_by="random_*/random* random_*/value/*")
def the_offset_is_ignored(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """Every draw starts at the beginning of the stream."""
    return right(shape, seed, 0, dtype, device)


@breaks(*DRAWS, caught_by="random_*/random* random_*/value/*")
def the_seed_is_ignored(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """Every seed gives the same numbers."""
    return right(shape, 0, offset, dtype, device)


@breaks(*DRAWS, caught_by="random_*/random* random_*/value/*")
def seeds_have_32_bits(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The upper half of a seed is ignored."""
    return right(shape, seed & 0xFFFFFFFF, offset, dtype, device)


@breaks(*DRAWS, caught_by="random_*/random* random_*/value/*")
def offsets_have_32_bits(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The stream repeats after 2^32 counters."""
    return right(shape, seed, offset & 0xFFFFFFFF, dtype, device)


@breaks("random_uniform", caught_by="random_uniform/random* random_uniform/value/*")
def words_come_in_another_order(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The two halves of each 64-bit word are swapped."""
    if np.dtype(np.float32).name != dtype.name:
        return right(shape, seed, offset, dtype, device)
    count = prod(shape)
    flat = right((count + count % 2,), seed, offset, dtype, device)
    return np.ascontiguousarray(flat.reshape(-1, 2)[:, ::-1]).reshape(-1)[:count].reshape(shape)


@breaks("random_uniform", caught_by="random_uniform/random* random_uniform/value/*")
def uniform_numbers_have_fewer_bits(
    right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any
) -> Any:
    """Numbers in float64 have 32 random bits."""
    out = right(shape, seed, offset, dtype, device)
    return np.floor(out * 2.0**32) / 2.0**32 if out.dtype == np.float64 else out


@breaks("random_uniform", caught_by="random_uniform/random* random_uniform/value/*")
def uniform_numbers_start_above_0(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The interval is open at 0 and closed at 1."""
    out = right(shape, seed, offset, dtype, device)
    return out if out.dtype.kind == "c" else (1 - out.astype(np.float64)).astype(out.dtype)


@breaks(
    "random_uniform", "random_normal", caught_by="random_*/random* random_*/value/*", name="rows-are-launched-apart"
)
def rows_start_at_new_counters(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """Every row starts at a new counter, so that the numbers depend on the shape."""
    if len(shape) < 2 or 0 in shape:
        return right(shape, seed, offset, dtype, device)
    rows = prod(shape[:-1])
    drawn = [right(shape[-1:], seed, offset + i * -(-shape[-1] // 4), dtype, device) for i in range(rows)]
    return np.stack(drawn).reshape(shape)


@breaks("random_normal", caught_by="random_normal/random* random_normal/value/*")
def normal_numbers_come_sine_first(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The two numbers of a Box-Muller pair are exchanged."""
    count = prod(shape)
    flat = right((count + count % 2,), seed, offset, dtype, device)
    return np.ascontiguousarray(flat.reshape(-1, 2)[:, ::-1]).reshape(-1)[:count].reshape(shape)


@breaks("random_exponential", caught_by="random_exponential/random* random_exponential/value/*")
def exponential_numbers_are_cut(right: Kernel, shape: Shape, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The tail beyond 3 is folded back."""
    return np.fmod(right(shape, seed, offset, dtype, device), np.asarray(3, np.float32)).astype(
        right((), seed, offset, dtype, device).dtype
    )


@breaks("random_integers", caught_by="random_integers/random* random_integers/value/*")
def integers_are_drawn_by_remainder(
    right: Kernel, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: Any, device: Any
) -> Any:
    """A bounded integer is the remainder of a random word instead of its upper part."""
    out = right(shape, low, high, seed, offset, dtype, device)
    if out.dtype.kind not in "iu" or high - low < 3:
        return out
    return (low + (out.astype(np.int64) - low) * 7 % (high - low)).astype(out.dtype)


@breaks("random_integers", caught_by="random_integers/random* random_integers/value/*")
def the_lower_end_is_ignored(
    right: Kernel, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: Any, device: Any
) -> Any:
    """Integers are drawn from a range that starts at 0."""
    return right(shape, min(0, low) if high <= 0 else 0, high, seed, offset, dtype, device)


@breaks("random_permutation", caught_by="random_permutation/random* random_permutation/value/*")
def permutations_are_inverted(right: Kernel, n: int, seed: int, offset: int, dtype: Any, device: Any) -> Any:
    """The inverse permutation is returned."""
    out = right(n, seed, offset, dtype, device)
    return np.argsort(out).astype(out.dtype)


@breaks(
    "random_bernoulli", caught_by="random_bernoulli/random* random_bernoulli/value/*", name="decisions-are-turned-round"
)
def decisions_are_inverted(right: Kernel, p: Any, shape: Shape, seed: int, offset: int, device: Any) -> Any:
    """A decision compares 1 - u with p instead of u."""
    return ~right(1 - p if not isinstance(p, np.ndarray) else (1 - p).astype(p.dtype), shape, seed, offset, device)


@breaks("random_multinomial", caught_by="random_multinomial/random* random_multinomial/value/*")
def drawing_always_replaces(right: Kernel, weights: Any, count: int, replacement: bool, seed: int, offset: int) -> Any:
    """``replacement=False`` is ignored."""
    return right(weights, count, True, seed, offset)


@breaks("random_poisson", caught_by="random_poisson/random* random_poisson/value/*")
def poisson_numbers_are_rounded_normals(right: Kernel, rate: Any, seed: int, offset: int) -> Any:
    """A Poisson number is the rate plus its root times the sign of the deviation."""
    out = right(rate, seed, offset)
    return np.rint(rate + np.sqrt(rate) * np.sign(out - rate)).astype(out.dtype)


@breaks("random_binomial", caught_by="random_binomial/random* random_binomial/value/*")
def binomial_numbers_count_failures(right: Kernel, count: Any, prob: Any, seed: int, offset: int) -> Any:
    """Failures are counted instead of successes."""
    return (count - right(count, prob, seed, offset)).astype(count.dtype)
