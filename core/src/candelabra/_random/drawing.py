"""Draw tensors of random numbers from a generator, after checks that run before the generator advances."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance
from candelabra._operators.conversion.dtype_and_device import cast
from candelabra._operators.creation.filled import given_shape
from candelabra._operators.random import draws
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._random.generator import give_back, take_counters
from candelabra.dtypes import BOOL, COMPLEX, INTEGER, dtype, finfo, float32, iinfo, int64

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor

_RECORDS = {
    "uniform": draws.random_uniform, "normal": draws.random_normal, "exponential": draws.random_exponential,
}  # fmt: skip


def draw(
    name: str, kind: str, shape: tuple[int, ...], d: dtype, instance: Instance, generator: Generator | None
) -> Tensor:
    """Draw numbers of a continuous kind: ``"uniform"``, ``"normal"`` or ``"exponential"``."""
    instance.keys_for(d)  # raises before the generator advances
    record: Operator[..., Any] = _RECORDS[kind]
    if min(shape, default=0) < 0:
        given_shape(record, (shape,))
    seed, offset = take_counters(name, generator, instance, kind, prod(shape), d.name)
    try:
        out: Tensor = record.function(shape, seed, offset, dtype=d, device=instance)
    except Exception:
        give_back(generator, instance, offset)
        raise
    return out


def draw_integers(
    name: str, low: int, high: int, shape: tuple[int, ...], d: dtype, instance: Instance, generator: Generator | None
) -> Tensor:
    """Draw integers in [low, high) of a dtype that can represent them. Floating ones are drawn as int64 and cast."""
    check_range(low, high, d)
    instance.keys_for(d)
    given_shape(draws.random_integers, (shape,))
    whole = d if d.category <= INTEGER else int64
    seed, offset = take_counters(name, generator, instance, "integers", prod(shape), whole.name, high - low)
    try:
        out: Tensor = draws.random_integers.function(shape, low, high, seed, offset, dtype=whole, device=instance)
    except Exception:
        give_back(generator, instance, offset)
        raise
    return cast_to(out, d)


def draw_bernoulli(
    name: str, p: Tensor | float, shape: tuple[int, ...], instance: Instance, generator: Generator | None
) -> Tensor:
    """A bool tensor, True with probability ``p``: a checked number, or a tensor that broadcasts to ``shape``."""
    kind = "float32"
    chance: Any = p
    if hasattr(chance, "_payload"):
        kind = chance.dtype.name
        chance = chance.detach()
        if chance._instance.depth > instance.depth:
            instance = chance._instance
        elif chance._instance is not instance and not instance.depth:
            chance = chance.to(instance.device)
        if tuple(chance._payload.shape) != shape:
            chance = chance.expand(shape)
    seed, offset = take_counters(name, generator, instance, "bernoulli", prod(shape), kind)
    try:
        out: Tensor = draws.random_bernoulli.function(chance, shape, seed, offset, device=instance)
    except Exception:
        give_back(generator, instance, offset)
        raise
    return out


def cast_to(x: Tensor, d: dtype) -> Tensor:
    """Return the tensor itself if it has the dtype, else a cast copy."""
    if x.dtype is d:
        return x
    out: Tensor = cast.function(x, dtype=d)
    return out


def scaled(noise: Tensor, factor: Any, shift: Any) -> Tensor:
    """``noise * factor + shift``, each step rounded to the dtype; half types compute in float32 and round once."""
    if (factor, shift) == (1, 0):
        return noise
    d = noise.dtype
    if d.is_half:
        noise = cast_to(noise, float32)
    value = noise if factor == 1 else noise * factor
    value = value if shift == 0 else value + shift
    return cast_to(value, d)


# -- checks -----------------------------------------------------------------------------------------------------------
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


def check_std(std: Any) -> None:
    """Raise RuntimeError if a standard deviation, a number or an element of a tensor, is negative or NaN."""
    if hasattr(std, "_payload"):
        wrong = (std.detach() >= 0).logical_not()
        raise_if_nonzero(wrong, "normal expects all elements of std >= 0.0", RuntimeError)
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def check_probability(p: float) -> None:
    """Raise RuntimeError if a number is not a probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
