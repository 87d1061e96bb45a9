"""Operators that fill tensors with random numbers in place: ``x.uniform_()``, ``x.normal_()`` and others.

Arguments are checked before the generator advances and before anything is written. The result does not depend on the
old content, which gets a gradient of zero.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._autograd.views import check_overlap, check_writable, write
from candelabra._codegen.arguments import as_integer
from candelabra._keys import DEFERRED, NO_GRAD, state
from candelabra._operators.conversion.copies import copied
from candelabra._random.drawing import (
    cast_to,
    check_probability,
    check_range,
    check_std,
    draw,
    draw_bernoulli,
    draw_integers,
    scaled,
)
from candelabra._records.accepts import check_dtype
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, finfo, float32, float64, iinfo

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra.dtypes import dtype
    from candelabra.typing import Tensor


def _target(input: Tensor) -> tuple[int, ...]:
    """Return the shape to fill, after the checks of in-place writes."""
    check_writable(input._fresh())
    check_overlap(input)
    return tuple(input._payload.shape)


def _fill(input: Tensor, value: Tensor) -> Tensor:
    """Write ``value`` into ``input``; autograd records it if ``input`` requires a gradient."""
    value = cast_to(value, input.dtype)
    recorded = input._node is not None and not state.bits & NO_GRAD
    deferred = (state.bits | input._keys | value._keys) & DEFERRED
    if recorded or deferred or value._instance is not input._instance:  # a draw inside vmap has a level of its own
        copied.form("inplace")(input, value)
    else:
        write(input, value._payload)
    return input


def _wide(d: dtype) -> dtype:
    """Return the dtype in which to compute; it is wider than an integer or half dtype of the target."""
    return d if d in (float32, float64) else float32


# -- continuous -------------------------------------------------------------------------------------------------------
@public(is_function=False)
def uniform_(input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [from, to), in both parts of a complex tensor. After rounding, ``to`` can occur."""
    d = input.dtype
    check_dtype("uniform", d, "floating")
    low, high = float(from_), float(to)
    if (low, high) == (0, 1):
        return _fill(input, draw("uniform_", "uniform", _target(input), d, input._instance, generator))
    real, limit = d.to_real(), finfo(d).max
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {real.c_name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{real.c_name}>::max(), but found to={high:g} "
            f"and from={low:g} which result in to-from to exceed the limit"
        )
    noise = draw("uniform_", "uniform", _target(input), d, input._instance, generator)
    return _fill(input, scaled(noise, high - low, complex(low, low) if d.category == COMPLEX else low))


@public(is_function=False)
def normal_(input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of the given mean and standard deviation; complex numbers have variance ``std**2``."""
    check_dtype("normal", input.dtype, "floating")
    check_std(std)
    noise = draw("normal_", "normal", _target(input), input.dtype, input._instance, generator)
    return _fill(input, scaled(noise, std, mean))


@public(is_function=False)
def log_normal_(input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with ``exp`` of normal numbers of the given mean and standard deviation."""
    check_dtype("log_normal", input.dtype, "real floating")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    wide = _wide(input.dtype)
    noise = draw("log_normal_", "normal", _target(input), wide, input._instance, generator)
    return _fill(input, scaled(noise, std, mean).exp())


def _check_continuous(distribution: str, d: dtype) -> None:
    """Raise PyTorch's error for dtypes that are not real floating."""
    if d.category != FLOATING:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {d.name}"
        )


@public(is_function=False)
def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of rate ``lambd``."""
    _check_continuous("Exponential", input.dtype)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    noise = draw("exponential_", "exponential", _target(input), input.dtype, input._instance, generator)
    return _fill(input, noise if lambd == 1 else cast_to(noise, _wide(input.dtype)) / lambd)


@public(is_function=False)
def cauchy_(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with Cauchy numbers: ``median + sigma * tan(pi * (u - 1/2))``, where u is uniform."""
    _check_continuous("Cauchy", input.dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    noise = draw("cauchy_", "uniform", _target(input), _wide(input.dtype), input._instance, generator)
    return _fill(input, scaled(((noise - 0.5) * math.pi).tan(), sigma, median))


# -- discrete ---------------------------------------------------------------------------------------------------------
@public(is_function=False)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials of probability ``p`` until the first success: 1, 2, …

    Method: ``floor(E / -log(1 - p)) + 1`` for an exponential number E of rate 1, which inverts the distribution
    function.
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    check_dtype("geometric", input.dtype, "real numeric")
    noise = draw("geometric_", "exponential", _target(input), _wide(input.dtype), input._instance, generator)
    count = (noise / -math.log1p(-p)).floor() + 1
    if input.dtype.category == INTEGER:
        count = count.clamp(max=float(iinfo(input.dtype).max >> 1))  # reached only for a tiny p
    return _fill(input, count)


def _default_bound(d: dtype) -> int:
    """Return the exclusive upper bound of ``random_`` by default; a floating dtype represents all integers below it."""
    return (1 << d.digits) + 1 if d.category == FLOATING else 2 if d.category == BOOL else iinfo(d).max + 1


def _fill_integers(input: Tensor, low: int, high: int | None, generator: Generator | None) -> Tensor:
    d = input.dtype
    check_dtype("random", d, "real")
    last = _default_bound(d) if high is None else high
    check_range(low, last, d)
    return _fill(input, draw_integers("random_", low, last, _target(input), d, input._instance, generator))


@public(public=False)
def random_any_(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform integers from 0 to the largest of the dtype, or up to where a floating dtype has all
    integers.
    """
    return _fill_integers(input, 0, None, generator)


@public(public=False)
def random_below_(input: Tensor, to: int, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform integers in [0, to)."""
    return _fill_integers(input, 0, as_integer(to, "to"), generator)


@public(public=False)
def random_between_(input: Tensor, from_: int, to: int | None, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform integers in [from, to), or up to the largest of the dtype if ``to`` is None."""
    last = None if to is None else as_integer(to, "to")
    return _fill_integers(input, as_integer(from_, "from"), last, generator)


random_ = overloads("random_", random_any_, random_below_, random_between_, is_function=False)


@public(public=False)
def bernoulli_tensor_(input: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with the probability of each element of ``p``, else 0; ``p`` is floating and broadcasts."""
    check_dtype("bernoulli", input.dtype, "real")
    check_dtype("bernoulli", p.dtype, "real floating")
    return _fill(input, draw_bernoulli("bernoulli_", p, _target(input), input._instance, generator))


@public(public=False)
def bernoulli_number_(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability ``p``, else 0."""
    check_dtype("bernoulli", input.dtype, "real")
    check_probability(p)
    return _fill(input, draw_bernoulli("bernoulli_", float(p), _target(input), input._instance, generator))


bernoulli_ = overloads("bernoulli_", bernoulli_tensor_, bernoulli_number_, is_function=False)
