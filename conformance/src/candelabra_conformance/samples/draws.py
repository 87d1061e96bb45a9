"""Samples of functions and methods that draw random numbers: distributions, parameters and generators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples.factories import chosen
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import ZERO_DIM, ZERO_SIZE, Fresh, Sample, sample

GENERATOR = Fresh("cd.Generator(device).manual_seed(7)")
"""A generator that the caller passes."""


# -- new tensors ------------------------------------------------------------------------------------------------------
@inputs("rand", "randn")
def continuous(t: Maker) -> Iterator[Sample]:
    """Yield separate sizes and sequences, with the default generator and another."""
    if t.is_floating or t.is_complex:
        yield sample(2, 3, **chosen(t))
        yield sample((7,), dtype=t.dtype, generator=GENERATOR)
        yield sample((), dtype=t.dtype, kind=ZERO_DIM)
        yield sample(0, dtype=t.dtype, kind=ZERO_SIZE)


@mistakes("rand", "randn")
def not_continuous(t: Maker) -> Iterator[Sample]:
    """Yield integer dtypes and invalid sizes."""
    yield sample(2, dtype=t.of("int64").dtype, note="integers")
    yield sample(2, -1, note="negative")
    yield sample(2, generator=3, note="no generator")


@inputs("rand_like", "randn_like")
def continuous_like(t: Maker) -> Iterator[Sample]:
    """Yield tensors whose shape and dtype are used."""
    if t.is_floating or t.is_complex:
        yield sample(t(2, 3))
        yield sample(t(7), generator=GENERATOR)
        yield sample(t(), kind=ZERO_DIM)


@inputs("randint_below", "randint_between")
def whole_numbers(t: Maker) -> Iterator[Sample]:
    """Yield ranges that start at 0 and at other numbers, also in floating dtypes."""
    if t.is_complex or t.is_bool:
        return
    kind = {} if t.dtype.name == "int64" else {"dtype": t.dtype}
    least = () if t.operator == "randint_below" else (3,)
    yield sample(*least, 10, (2, 3), **kind)
    yield sample(*least, 100, (7,), **kind)
    yield sample(*least, 5, (4,), generator=GENERATOR, **kind)
    yield sample(*least, 4, (), kind=ZERO_DIM, **kind)


@mistakes("randint_below", "randint_between")
def no_whole_numbers(t: Maker) -> Iterator[Sample]:
    """Yield an empty range, a floating limit, and a number as the size."""
    below = t.operator == "randint_below"
    yield sample(*((0,) if below else (5, 5)), (2,), note="empty")
    yield sample(*((0.5,) if below else (0.5, 3)), (2,), note="a fraction")
    yield sample(*((3,) if below else (3, 5)), 2, note="no size")


@inputs("randint_like_below", "randint_like_between")
def whole_numbers_like(t: Maker) -> Iterator[Sample]:
    """Yield tensors whose shape and dtype are used."""
    if t.is_complex or t.is_bool:
        return
    least = () if t.operator == "randint_like_below" else (3,)
    yield sample(t(2, 3), *least, 10)
    yield sample(t(7), *least, 100)
    yield sample(t(), *least, 5, kind=ZERO_DIM)


@mistakes("randint_like_below", "randint_like_between")
def no_whole_numbers_like(t: Maker) -> Iterator[Sample]:
    """Yield an empty range, and a floating limit."""
    yield sample(t(3), *((0,) if t.operator == "randint_like_below" else (5, 5)), note="empty")
    yield sample(t(3), *((2.5,) if t.operator == "randint_like_below" else (2.5, 5)), note="a fraction")


@inputs("randperm")
def orders(t: Maker) -> Iterator[Sample]:
    """Yield permutations of none, one and some."""
    if t.is_complex or t.is_bool:
        return
    kind = {} if t.dtype.name == "int64" else {"dtype": t.dtype}
    yield sample(9, **kind)
    yield sample(17, generator=GENERATOR, **kind)
    yield sample(0, kind=ZERO_SIZE, **kind)


@mistakes("randperm")
def no_order(t: Maker) -> Iterator[Sample]:
    """Yield counts that are negative, not integers, or too large for the dtype."""
    yield sample(-1, note="negative")
    yield sample(2.5, note="a fraction")
    yield sample(300, dtype=t.of("uint8").dtype, note="more than the dtype holds")


# -- distributions ----------------------------------------------------------------------------------------------------
@inputs("normal_tensors")
def normal_numbers_for_each(t: Maker) -> Iterator[Sample]:
    """Yield means and deviations for each element, and for all."""
    if t.is_floating:
        yield sample(t(2, 3), t(3, low=0.1, high=2.0), gradient=False)
        yield sample(t(4), 0.5, generator=GENERATOR, gradient=False)
        yield sample(1.5, t(4, low=0.1, high=2.0), gradient=False)


@mistakes("normal_tensors")
def no_deviations(t: Maker) -> Iterator[Sample]:
    """Yield negative deviations, and numbers without a size."""
    yield sample(t(3), -1.0, note="negative")
    yield sample(0.0, t.array([1.0, -1.0]), note="one is negative")
    yield sample(0.0, 1.0, note="no size")


@inputs("normal_numbers")
def normal_numbers(t: Maker) -> Iterator[Sample]:
    """Yield one mean and one deviation for all elements."""
    if t.is_floating or t.is_complex:
        yield sample(1.0, 2.0, (2, 3), **chosen(t))
        yield sample(0.0, 0.5, (7,), dtype=t.dtype, generator=GENERATOR)
        yield sample(0.0, 1.0, (), dtype=t.dtype, kind=ZERO_DIM)


@mistakes("normal_numbers")
def no_deviation(t: Maker) -> Iterator[Sample]:
    """Yield a negative deviation, a size together with tensors, and integer dtypes."""
    yield sample(0.0, -1.0, (2,), note="negative")
    yield sample(t(3), 1.0, (3,), note="a tensor and a size")
    yield sample(0.0, 1.0, (3,), dtype=t.of("int64").dtype, note="integers")


@inputs("bernoulli_tensor")
def decisions_for_each(t: Maker) -> Iterator[Sample]:
    """Yield a probability for each element."""
    if t.is_floating:
        yield sample(t(2, 3, low=0.05, high=0.95), gradient=False)
        yield sample(t(7, low=0.05, high=0.95), generator=GENERATOR, gradient=False)
        yield sample(t.array(0.5), kind=ZERO_DIM, gradient=False)


@mistakes("bernoulli_tensor")
def no_probabilities(t: Maker) -> Iterator[Sample]:
    """Yield probabilities that are not floating or not between 0 and 1."""
    yield sample(t.array([0.5, 1.5]), note="above 1")
    yield sample(t.of("int64")(3), note="integers")


@inputs("bernoulli_number")
def decisions(t: Maker) -> Iterator[Sample]:
    """Yield one probability for all elements."""
    if not t.is_complex:
        yield sample(t(2, 3), 0.3, gradient=False)
        yield sample(t(4), p=0.7, generator=GENERATOR, gradient=False)


@mistakes("bernoulli_number")
def no_probability(t: Maker) -> Iterator[Sample]:
    """Yield probabilities that are not between 0 and 1."""
    yield sample(t(3), 1.5, note="above 1")
    yield sample(t(3), -0.5, note="below 0")


@inputs("multinomial")
def categories(t: Maker) -> Iterator[Sample]:
    """Yield one row of weights and several, with replacement and without."""
    if t.is_floating:
        yield sample(t(5, low=0.1, high=2.0), 3, gradient=False)
        yield sample(t(2, 4, low=0.1, high=2.0), 6, True, generator=GENERATOR, gradient=False)
        yield sample(t(2, 4, low=0.1, high=2.0), num_samples=4, replacement=False, gradient=False)


@mistakes("multinomial")
def no_categories(t: Maker) -> Iterator[Sample]:
    """Yield no draws, more draws than weights, and tensors with other ranks."""
    yield sample(t(5), 0, note="none")
    yield sample(t(5), 6, note="more than there are")
    yield sample(t(2, 2, 2), 1, note="three dims")


@inputs("poisson")
def counts(t: Maker) -> Iterator[Sample]:
    """Yield small rates, large rates, and the rate 0."""
    if t.is_floating:
        yield sample(t(2, 3, low=0.5, high=20.0), gradient=False)
        yield sample(t.array([0.0, 3.0, 50.0]), GENERATOR, gradient=False)


@mistakes("poisson")
def no_rates(t: Maker) -> Iterator[Sample]:
    """Yield rates that are not real floating numbers."""
    yield sample(t.of("int64")(3), note="integers")


@inputs("binomial")
def successes(t: Maker) -> Iterator[Sample]:
    """Yield counts and probabilities that broadcast."""
    if t.is_floating:
        yield sample(t.array([[5.0], [20.0]]), t(3, low=0.1, high=0.9), gradient=False)
        yield sample(t.array([7.0, 0.0]), t.array([0.5, 0.5]), GENERATOR, gradient=False)


@mistakes("binomial")
def no_trials(t: Maker) -> Iterator[Sample]:
    """Yield counts that are not real floating numbers."""
    yield sample(t.of("int64")(3), t.of("float32")(3), note="integers")


# -- in place ---------------------------------------------------------------------------------------------------------
def filled(t: Maker, *arguments: Any, **keywords: Any) -> Iterator[Sample]:
    """Yield tensors of some shapes, with the default arguments, with these arguments, and with another generator."""
    yield sample(t(2, 3), gradient=False)
    yield sample(t(4), *arguments, gradient=False, **keywords)
    yield sample(t(5), generator=GENERATOR, gradient=False)
    yield sample(t(), kind=ZERO_DIM, gradient=False)


@inputs("Tensor.uniform_", "Tensor.normal_")
def continuous_in_place(t: Maker) -> Iterator[Sample]:
    """Yield the standard distribution, and a scaled one."""
    if t.is_floating or t.is_complex:
        yield from filled(t, 1.0, 3.0)


@inputs("Tensor.log_normal_", "Tensor.cauchy_")
def scaled_in_place(t: Maker) -> Iterator[Sample]:
    """Yield the default parameters, and others."""
    if t.is_floating:
        yield from filled(t, 0.5, 0.25)


@inputs("Tensor.exponential_")
def exponential_in_place(t: Maker) -> Iterator[Sample]:
    """Yield the rate 1, and another."""
    if t.is_floating:
        yield from filled(t, 2.5)


@inputs("Tensor.geometric_")
def trials_in_place(t: Maker) -> Iterator[Sample]:
    """Yield integer and floating dtypes."""
    if not (t.is_bool or t.is_complex):
        yield sample(t(2, 3), 0.3, gradient=False)
        yield sample(t(4), p=0.7, generator=GENERATOR, gradient=False)


@inputs("random_any_", "random_below_", "random_between_")
def integers_in_place(t: Maker) -> Iterator[Sample]:
    """Yield the full range of the dtype, an upper limit, and two limits."""
    if t.is_complex or (t.is_bool and t.operator == "random_between_"):
        return
    limits = {"random_any_": (), "random_below_": (2,), "random_between_": (3, 90)}[t.operator]
    yield sample(t(2, 3), *limits, gradient=False)
    yield sample(t(4), *limits, generator=GENERATOR, gradient=False)
    if t.operator == "random_between_":
        yield sample(t(4), 3, None, gradient=False)


@inputs("bernoulli_tensor_")
def decisions_for_each_in_place(t: Maker) -> Iterator[Sample]:
    """Yield a probability for each element."""
    if not t.is_complex:
        yield sample(t(2, 3), t.of("float32")(3, low=0.1, high=0.9), gradient=False)
        yield sample(t(4), t.of("float32")(4, low=0.1, high=0.9), generator=GENERATOR, gradient=False)


@inputs("bernoulli_number_")
def decisions_in_place(t: Maker) -> Iterator[Sample]:
    """Yield one probability for all elements."""
    if not t.is_complex:
        yield sample(t(2, 3), gradient=False)
        yield sample(t(4), 0.2, generator=GENERATOR, gradient=False)


@mistakes("Tensor.uniform_", "Tensor.normal_", "Tensor.log_normal_", "Tensor.exponential_", "Tensor.cauchy_")
def no_parameters(t: Maker) -> Iterator[Sample]:
    """Yield deviations and rates that are not positive, and integer dtypes."""
    name = t.operator.removeprefix("Tensor.")
    bad = {"uniform_": (3.0, 1.0), "normal_": (0.0, -1.0), "exponential_": (-1.0,)}.get(name, (0.0, -1.0))
    yield sample(t(3), *bad, note="no such parameters")
    yield sample(t.of("int64")(3), note="integers")


@mistakes("Tensor.geometric_", "bernoulli_number_")
def no_chance(t: Maker) -> Iterator[Sample]:
    """Yield probabilities that are not between 0 and 1."""
    yield sample(t(3), 1.5, note="above 1")
    yield sample(t(3), -0.5, note="below 0")


@mistakes("bernoulli_tensor_")
def no_chances(t: Maker) -> Iterator[Sample]:
    """Yield probabilities that are not floating or not between 0 and 1."""
    yield sample(t(2), t.of("float32").array([0.5, 1.5]), note="above 1")
    yield sample(t(2), t.of("int64")(2), note="integers")


@mistakes("random_below_", "random_between_")
def no_integers(t: Maker) -> Iterator[Sample]:
    """Yield an empty range, and floating limits."""
    yield sample(t(3), *((0,) if t.operator == "random_below_" else (5, 5)), note="empty")
    yield sample(t(3), *((2.5,) if t.operator == "random_below_" else (2.5, 5)), note="a fraction")
