"""Draws of counts: Poisson and binomial numbers. Sections 15 and 16 of ``docs/notes/0001-random-numbers.md``."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.filled import zeroed
from candelabra._random.counters import counters_used
from candelabra._random.drawing import generator_of
from candelabra._records.callables import public
from candelabra._records.promotion import common, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, pointwise, shape_of
from candelabra.dtypes import FLOATING, PYTHON_NAMES

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra.typing import Tensor


@by
def _rates(input: Tensor, seed: int, offset: int) -> tuple[int, ...]:
    # Values are looked at here only: after a kernel has refused them.
    if bool((input < 0).any()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return shape_of(input)


@operator(_rates, promote=unpromoted, accepts="real floating", inplace=False, out=False, public=False, random=True)
def random_poisson(input: Tensor, seed: int, offset: int) -> Tensor:
    """Poisson numbers with the rates ``input``, a real floating tensor; section 15 of the specification."""
    ...


@operator(pointwise, promote=common, accepts="real floating", inplace=False, out=False, public=False, random=True)
def random_binomial(count: Tensor, prob: Tensor, seed: int, offset: int) -> Tensor:
    """Successes in ``count`` trials of probability ``prob``: real floating tensors of one shape; section 16."""
    ...


# The numbers jump, as those of bernoulli do: a gradient of zeros.
random_poisson.vjp(input=lambda g: zeroed(g))
random_binomial.vjp(count=lambda g: zeroed(g), prob=lambda g: zeroed(g))


def _check(name: str, *tensors: Tensor) -> None:
    for t in tensors:
        if t.dtype.category != FLOATING:
            raise NotImplementedError(f"\"{name}\" not implemented for '{PYTHON_NAMES[t.dtype.name]}'")


def _words(name: str, generator: Any, shape: tuple[int, ...], like: Tensor) -> tuple[int, int]:
    return generator_of(name, generator, like._instance).take(counters_used(name, prod(shape), "float64"))


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """A Poisson number for each rate in ``input``, in its dtype. Rates of 0 give 0, NaN gives NaN.

    Raises ``RuntimeError`` for negative rates, ``NotImplementedError`` for dtypes that are not real floating. The
    gradient is zero.
    """
    _check("poisson", input)
    seed, offset = _words("poisson", generator, tuple(input.shape), input)
    return random_poisson.function(input, seed, offset)


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials succeed whose probability is ``prob``; the two broadcast, and their dtypes promote.

    No trials or probabilities of 0 and below give 0, of 1 and above ``count``, NaN gives NaN. The gradient is zero.
    """
    _check("binomial", count, prob)
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    seed, offset = _words("binomial", generator, shape, count)
    return random_binomial.function(count.expand(shape), prob.expand(shape), seed, offset)
