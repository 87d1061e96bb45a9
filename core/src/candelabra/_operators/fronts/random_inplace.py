"""Random fillers in place: ``x.uniform_()``, ``x.normal_()`` and their kin.

Arguments are checked before the generator moves and before anything is written. What was in the tensor does not matter
to what is there afterwards, so its old history gets a gradient of zero.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_overlap, check_writable, write
from candelabra._keys import NO_GRAD, state
from candelabra._operators.conversion.copies import copied
from candelabra._random.drawing import (
    cast_to,
    check_floating,
    check_probability,
    check_range,
    check_std,
    draw,
    draw_bernoulli,
    draw_integers,
    scaled,
)
from candelabra._records.callables import public
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, finfo, float32, float64, iinfo

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra._tensor import Tensor
    from candelabra.dtypes import dtype


def _target(input: Tensor) -> tuple[int, ...]:
    """The shape to fill, after the checks that any write makes."""
    check_writable(input._fresh())
    check_overlap(input)
    return tuple(input._payload.shape)


def _fill(input: Tensor, value: Tensor) -> Tensor:
    value = cast_to(value, input.dtype)
    if input._node is not None and not state.bits & NO_GRAD:
        copied.form("inplace")(input, value)
    else:
        write(input, value._payload)
    return input


def _wide(d: dtype) -> dtype:
    """The dtype to compute in where the target is an integer or half one."""
    return d if d in (float32, float64) else float32


@public(is_function=False)
def uniform_(input: Tensor, from_: Any = 0, to: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [from, to); of a complex tensor both parts. Rounding can reach ``to``."""
    d = input.dtype
    check_floating("check_uniform_bounds", d)
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
    if d.category == COMPLEX:
        noise = scaled(noise, high - low, complex(low, low))
    else:
        noise = scaled(noise, high - low, low)
    return _fill(input, noise)


@public(is_function=False)
def normal_(input: Tensor, mean: Any = 0, std: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers of the given mean and standard deviation; complex ones have variance ``std**2`` in all."""
    check_floating("normal", input.dtype)
    check_std(std)
    noise = draw("normal_", "normal", _target(input), input.dtype, input._instance, generator)
    return _fill(input, scaled(noise, std, mean))


@public(is_function=False)
def log_normal_(input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """``exp`` of normal numbers of the given mean and standard deviation."""
    check_floating("log_normal", input.dtype, allow_complex=False)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    wide = _wide(input.dtype)
    noise = draw("log_normal_", "normal", _target(input), wide, input._instance, generator)
    return _fill(input, scaled(noise, std, mean).exp())


def _check_continuous(distribution: str, d: dtype) -> None:
    if d.category != FLOATING:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {d.name}"
        )


@public(is_function=False)
def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Exponential numbers of rate ``lambd``."""
    _check_continuous("Exponential", input.dtype)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    noise = draw("exponential_", "exponential", _target(input), input.dtype, input._instance, generator)
    return _fill(input, noise if lambd == 1 else cast_to(noise, _wide(input.dtype)) / lambd)


@public(is_function=False)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """How many trials of probability ``p`` it takes to succeed once: 1, 2, …

    Method: ``floor(E / -log(1 - p)) + 1`` of an exponential number E of rate 1, inverting the distribution function.
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if input.dtype.category == COMPLEX or input.dtype.category == BOOL:
        raise NotImplementedError(f"\"geometric\" not implemented for '{input.dtype}'")
    noise = draw("geometric_", "exponential", _target(input), _wide(input.dtype), input._instance, generator)
    count = (noise / -math.log1p(-p)).floor() + 1
    if input.dtype.category == INTEGER:
        count = count.clamp(max=float(iinfo(input.dtype).max >> 1))  # far beyond what occurs unless p is tiny
    return _fill(input, count)


@public(is_function=False)
def cauchy_(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Cauchy numbers: ``median + sigma * tan(pi * (u - 1/2))``, u uniform."""
    _check_continuous("Cauchy", input.dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    noise = draw("cauchy_", "uniform", _target(input), _wide(input.dtype), input._instance, generator)
    return _fill(input, scaled(((noise - 0.5) * math.pi).tan(), sigma, median))


@public(is_function=False)
def random_(input: Tensor, from_: Any = None, to: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Integers: ``random_(from, to)`` in [from, to), ``random_(to)`` in [0, to), ``random_()`` in all that the dtype
    holds from 0 on (a floating dtype: up to where it holds every integer)."""
    d = input.dtype
    if d.category == COMPLEX:
        raise NotImplementedError('"random" not implemented for complex dtypes')
    low, high = (0, from_) if to is None and from_ is not None else (0 if from_ is None else from_, to)
    if high is None:
        high = (1 << d.digits) + 1 if d.category == FLOATING else 2 if d.category == BOOL else iinfo(d).max + 1
    low, high = int(low), int(high)
    check_range(low, high, d)
    return _fill(input, draw_integers("random_", low, high, _target(input), d, input._instance, generator))


@public(is_function=False)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """1 with probability ``p``, a number or a floating tensor that broadcasts to this one, else 0."""
    if input.dtype.category == COMPLEX:
        raise NotImplementedError('"bernoulli_scalar" not implemented for complex dtypes')
    if hasattr(p, "_payload"):
        check_floating("bernoulli_tensor_p", p.dtype, allow_complex=False)
    else:
        check_probability(p)
        p = float(p)
    return _fill(input, draw_bernoulli("bernoulli_", p, _target(input), input._instance, generator))
