"""Draw tensors of random numbers from a generator, after checks that run before the generator advances."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance
from candelabra._operators.primitives import creation, random
from candelabra._random import generator as generators
from candelabra._random.counters import counters_used
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, dtype, finfo, float32, iinfo, int64

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor

_RECORDS = {
    "uniform": random.random_uniform, "normal": random.random_normal, "exponential": random.random_exponential,
}  # fmt: skip


def generator_of(name: str, generator: Any, instance: Instance) -> Generator:
    """Return the given generator, or by default that of the device."""
    if generator is None:
        return generators.default_generator(instance)
    if not isinstance(generator, generators.Generator):
        raise TypeError(f"{name}(): argument 'generator' must be Generator, not {type(generator).__name__}")
    return generator


def draw(name: str, kind: str, shape: tuple[int, ...], d: dtype, instance: Instance, generator: Any) -> Tensor:
    """Draw numbers of a continuous kind: ``"uniform"``, ``"normal"`` or ``"exponential"``."""
    instance.keys_for(d)  # raises before the generator advances
    record: Operator[..., Any] = _RECORDS[kind]
    if min(shape, default=0) < 0:
        creation.given_shape(record, (shape,))
    seed, offset = generator_of(name, generator, instance).take(counters_used(kind, prod(shape), d.name))
    out: Tensor = record.function(shape, seed, offset, dtype=d, device=instance)
    return out


def draw_integers(
    name: str, low: int, high: int, shape: tuple[int, ...], d: dtype, instance: Instance, generator: Any
) -> Tensor:
    """Draw integers in [low, high) of a dtype that can represent them. Floating ones are drawn as int64 and cast."""
    check_range(low, high, d)
    instance.keys_for(d)
    creation.given_shape(random.random_integers, (shape,))
    whole = d if d.category <= INTEGER else int64
    counters = counters_used("integers", prod(shape), whole.name, high - low)
    seed, offset = generator_of(name, generator, instance).take(counters)
    out: Tensor = random.random_integers.function(shape, low, high, seed, offset, dtype=whole, device=instance)
    return cast_to(out, d)


def cast_to(x: Tensor, d: dtype) -> Tensor:
    """Return the tensor itself if it has the dtype, else a cast copy."""
    if x.dtype is d:
        return x
    out: Tensor = creation.cast.function(x, dtype=d)
    return out


def check_range(low: int, high: int, d: dtype) -> None:
    """Raise RuntimeError if [low, high) is empty or contains numbers that ``d`` cannot represent."""
    if d.category == COMPLEX:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, most = limits_of(d)
    if not least <= low <= most:
        raise RuntimeError(f"from is out of bounds for {d.c_name}")
    if not least <= high - 1 <= most:
        raise RuntimeError(f"to - 1 is out of bounds for {d.c_name}")


def limits_of(d: dtype) -> tuple[int, int]:
    """Return the smallest and the largest integer that may be drawn as ``d``."""
    if d.category == BOOL:
        return 0, 1
    if d.category == INTEGER:
        limits = iinfo(d)
        return limits.min, limits.max
    # A floating dtype has a larger range than int64, in which its integers are drawn.
    top = min(int(finfo(d).max), (1 << 63) - 1)
    return -top - 1 if top == (1 << 63) - 1 else -top, top


def draw_bernoulli(name: str, p: Any, shape: tuple[int, ...], instance: Instance, generator: Any) -> Tensor:
    """Draw a bool tensor, True with probability ``p``: a checked number, or a tensor that broadcasts to ``shape``."""
    kind = "float32"
    if hasattr(p, "_payload"):
        kind = p.dtype.name
        p = p.detach() if p._instance is instance else p.detach().to(instance.device)
        if tuple(p._payload.shape) != shape:
            p = p.expand(shape)
    seed, offset = generator_of(name, generator, instance).take(counters_used("bernoulli", prod(shape), kind))
    out: Tensor = random.random_bernoulli.function(p, shape, seed, offset, device=instance)
    return out


def check_floating(kernel: str, d: dtype, allow_complex: bool = True) -> None:
    """Raise NotImplementedError (a RuntimeError) for a dtype without values of a continuous distribution."""
    if d.category < FLOATING or (d.category == COMPLEX and not allow_complex):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{d.title}'")


def check_std(std: Any) -> None:
    """Raise RuntimeError if a standard deviation, a number or a tensor, is negative or NaN."""
    if hasattr(std, "_payload"):
        if not bool((std >= 0).all()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def scaled(noise: Tensor, factor: Any, shift: Any) -> Tensor:
    """Return ``noise * factor + shift``, rounded to the dtype after each step; half types round once, from float32."""
    if (factor, shift) == (1, 0):
        return noise
    d = noise.dtype
    if d.is_half:
        noise = cast_to(noise, float32)
    value = noise if factor == 1 else noise * factor
    value = value if shift == 0 else value + shift
    return cast_to(value, d)


def check_probability(p: Any) -> None:
    """Raise RuntimeError if a number is not a probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
