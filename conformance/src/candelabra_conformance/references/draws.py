"""Functions and methods that draw random numbers: the specification's draws from the start of the seed, then scaled.

Each step of the scaling is rounded to the dtype; half precision computes in float32 and rounds once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from candelabra.dtypes import FLOATING, INTEGER, dtype, float32, float64, iinfo, int64

from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.references.factories import held, shape_of
from candelabra_conformance.references.registry import REFERENCES, reference
from candelabra_conformance.samples.sample import SEED

Array = np.ndarray[Any, Any]
EXACT = {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 53}
"""The largest number up to which a floating dtype represents every integer."""


def seed_and_offset(generator: Any) -> tuple[int, int]:
    """Return the seed and the offset from which a call draws, of the generator or of the default generator."""
    return (SEED, 0) if generator is None else (generator.initial_seed(), generator.get_offset())


def drawn(kind: str, shape: tuple[int, ...], d: dtype, generator: Any) -> Array:
    """Draw an array of a continuous distribution."""
    return np.asarray(REFERENCES[f"random_{kind}"](shape, *seed_and_offset(generator), d, None))


def scaled(noise: Array, factor: Any, shift: Any) -> Array:
    """Return ``noise * factor + shift``."""
    held = noise.dtype
    wide = noise.astype(np.float32) if held.itemsize == 2 else noise
    return np.asarray((wide * wide.dtype.type(factor) + wide.dtype.type(shift)).astype(held))


def integers(shape: tuple[int, ...], low: int, high: int, d: dtype, generator: Any) -> Array:
    """Draw integers; floating ones are drawn as int64 and cast."""
    whole = d if d.category <= INTEGER else int64
    drawn = REFERENCES["random_integers"](shape, low, high, *seed_and_offset(generator), whole, None)
    return np.asarray(drawn).astype(host_dtype(d))


def wide(x: Array) -> dtype:
    """Return the dtype to draw in if the target is an integer or in half precision."""
    d = device_dtype(x.dtype)
    return d if d in (float32, float64) else float32


# -- new tensors ------------------------------------------------------------------------------------------------------
@reference("rand", as_given=True)
def rand(*size: Any, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Draw uniform numbers."""
    return drawn("uniform", shape_of(size), dtype or float32, generator)


@reference("randn", as_given=True)
def randn(*size: Any, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Draw normal numbers."""
    return drawn("normal", shape_of(size), dtype or float32, generator)


@reference("rand_like", as_given=True)
def rand_like(x: Array, generator: Any = None) -> Array:
    """Draw uniform numbers."""
    return drawn("uniform", x.shape, device_dtype(x.dtype), generator)


@reference("randn_like", as_given=True)
def randn_like(x: Array, generator: Any = None) -> Array:
    """Draw normal numbers."""
    return drawn("normal", x.shape, device_dtype(x.dtype), generator)


@reference("randint_below", as_given=True)
def randint_below(high: int, size: Any, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Draw integers from 0."""
    return integers(tuple(size), 0, high, dtype or int64, generator)


@reference("randint_between", as_given=True)
def randint_between(low: int, high: int, size: Any, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Draw integers from ``low``."""
    return integers(tuple(size), low, high, dtype or int64, generator)


@reference("randint_like_below", as_given=True)
def randint_like_below(x: Array, high: int) -> Array:
    """Draw integers from 0."""
    return integers(x.shape, 0, high, device_dtype(x.dtype), None)


@reference("randint_like_between", as_given=True)
def randint_like_between(x: Array, low: int, high: int) -> Array:
    """Draw integers from ``low``."""
    return integers(x.shape, low, high, device_dtype(x.dtype), None)


@reference("randperm", as_given=True)
def randperm(n: int, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Draw a permutation as int64."""
    order = REFERENCES["random_permutation"](n, *seed_and_offset(generator), int64, None)
    return np.asarray(order).astype(held(dtype, int64))


# -- distributions ----------------------------------------------------------------------------------------------------
@reference("normal_tensors", as_given=True)
def normal_tensors(mean: Any, std: Any, generator: Any = None) -> Array:
    """Return noise times deviation plus mean, in the dtype of the tensors."""
    like = mean if isinstance(mean, np.ndarray) else std
    noise = drawn("normal", np.broadcast_shapes(np.shape(mean), np.shape(std)), device_dtype(like.dtype), generator)
    return np.asarray(((noise * std).astype(like.dtype) + mean).astype(like.dtype))


@reference("normal_numbers", as_given=True)
def normal_numbers(mean: float, std: float, size: Any, dtype: dtype | None = None, generator: Any = None) -> Array:
    """Return noise times deviation plus mean."""
    return scaled(drawn("normal", tuple(size), dtype or float32, generator), std, mean)


@reference("bernoulli_tensor", as_given=True)
def bernoulli_tensor(x: Array, generator: Any = None) -> Array:
    """Return 1 if a uniform number is below the probability, otherwise 0."""
    return np.asarray(REFERENCES["random_bernoulli"](x, x.shape, *seed_and_offset(generator), None)).astype(x.dtype)


@reference("bernoulli_number", as_given=True)
def bernoulli_number(x: Array, p: float, generator: Any = None) -> Array:
    """Return 1 if a uniform number is below the probability, otherwise 0."""
    return np.asarray(REFERENCES["random_bernoulli"](p, x.shape, *seed_and_offset(generator), None)).astype(x.dtype)


@reference("multinomial", as_given=True)
def multinomial(x: Array, num_samples: int, replacement: bool = False, generator: Any = None) -> Array:
    """Draw indices of weights."""
    return np.asarray(REFERENCES["random_multinomial"](x, num_samples, replacement, *seed_and_offset(generator)))


@reference("poisson", as_given=True)
def poisson(x: Array, generator: Any = None) -> Array:
    """Draw by section 15 of the specification."""
    return np.asarray(REFERENCES["random_poisson"](x, *seed_and_offset(generator))).astype(x.dtype)


@reference("binomial", as_given=True)
def binomial(count: Array, prob: Array, generator: Any = None) -> Array:
    """Draw by section 16 of the specification."""
    pair = np.broadcast_arrays(count, prob)
    return np.asarray(REFERENCES["random_binomial"](*pair, *seed_and_offset(generator))).astype(count.dtype)


# -- in place ---------------------------------------------------------------------------------------------------------
@reference("Tensor.uniform_", as_given=True)
def uniform_(x: Array, low: float = 0, high: float = 1, generator: Any = None) -> Array:
    """Draw and scale uniform numbers; for a complex tensor, both components."""
    noise = drawn("uniform", x.shape, device_dtype(x.dtype), generator)
    return scaled(noise, high - low, complex(low, low) if x.dtype.kind == "c" else low)


@reference("Tensor.normal_", as_given=True)
def normal_(x: Array, mean: float = 0, std: float = 1, generator: Any = None) -> Array:
    """Draw and scale normal numbers."""
    return scaled(drawn("normal", x.shape, device_dtype(x.dtype), generator), std, mean)


@reference("Tensor.log_normal_", as_given=True)
def log_normal_(x: Array, mean: float = 1, std: float = 2, generator: Any = None) -> Array:
    """Return ``exp`` of normal numbers."""
    return np.exp(scaled(drawn("normal", x.shape, wide(x), generator), std, mean)).astype(x.dtype)


@reference("Tensor.exponential_", as_given=True)
def exponential_(x: Array, lambd: float = 1, generator: Any = None) -> Array:
    """Return exponential numbers of rate 1, divided by the rate."""
    noise = drawn("exponential", x.shape, device_dtype(x.dtype), generator)
    return noise if lambd == 1 else (noise.astype(host_dtype(wide(x))) / lambd).astype(x.dtype)


@reference("Tensor.geometric_", as_given=True)
def geometric_(x: Array, p: float, generator: Any = None) -> Array:
    """Return the integer quotient of an exponential number and that of one trial, plus one."""
    noise = drawn("exponential", x.shape, wide(x), generator)
    return np.asarray(np.floor(noise / noise.dtype.type(-math.log1p(-p))) + 1).astype(x.dtype)


@reference("Tensor.cauchy_", as_given=True)
def cauchy_(x: Array, median: float = 0, sigma: float = 1, generator: Any = None) -> Array:
    """Return the scaled tangent of a uniform angle."""
    noise = drawn("uniform", x.shape, wide(x), generator)
    return scaled(np.tan((noise - noise.dtype.type(0.5)) * noise.dtype.type(math.pi)), sigma, median).astype(x.dtype)


@reference("random_any_", as_given=True)
def random_any_(x: Array, generator: Any = None) -> Array:
    """Draw integers from 0 to the largest."""
    return random_between_(x, 0, None, generator)


@reference("random_below_", as_given=True)
def random_below_(x: Array, to: int, generator: Any = None) -> Array:
    """Draw integers from 0 to below ``to``."""
    return random_between_(x, 0, to, generator)


@reference("random_between_", as_given=True)
def random_between_(x: Array, from_: int, to: int | None, generator: Any = None) -> Array:
    """Draw integers from ``from_`` to below ``to``, or to the largest."""
    d = device_dtype(x.dtype)
    most = 2 if d.name == "bool" else EXACT[d.name] + 1 if d.category == FLOATING else iinfo(d).max + 1
    return integers(x.shape, from_, most if to is None else to, d, generator)


@reference("bernoulli_tensor_", as_given=True)
def bernoulli_tensor_(x: Array, p: Array, generator: Any = None) -> Array:
    """Return 1 if a uniform number is below the probability, otherwise 0."""
    chance = np.broadcast_to(p, x.shape)
    return np.asarray(REFERENCES["random_bernoulli"](chance, x.shape, *seed_and_offset(generator), None)).astype(
        x.dtype
    )


@reference("bernoulli_number_", as_given=True)
def bernoulli_number_(x: Array, p: float = 0.5, generator: Any = None) -> Array:
    """Return 1 if a uniform number is below the probability, otherwise 0."""
    return np.asarray(REFERENCES["random_bernoulli"](p, x.shape, *seed_and_offset(generator), None)).astype(x.dtype)
