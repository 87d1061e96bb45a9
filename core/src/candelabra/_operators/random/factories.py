"""New tensors of random numbers: in a given shape, and like another tensor."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_device, as_dtype, as_integer, as_size, as_sizes
from candelabra._operators.creation.filled import given_shape
from candelabra._operators.random import draws
from candelabra._random.drawing import cast_to, draw, draw_integers, limits_of
from candelabra._random.generator import give_back, take_counters
from candelabra._records.accepts import check_dtype
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra.dtypes import FLOATING, INTEGER, dtype, get_default_dtype, int64

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._random.generator import Generator
    from candelabra.typing import Device, DType, Shape, Tensor


def draw_continuous(
    name: str, distribution: str, shape: tuple[int, ...], dtype: Any, instance: Instance, generator: Generator | None
) -> Tensor:
    """Return uniform or normal numbers in a shape, in the default dtype if ``dtype`` is None."""
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    check_dtype(distribution, d, "floating")
    return draw(name, distribution, shape, d, instance, generator)


def instance_for(input: Tensor, device: Device) -> Instance:
    """Return the given device, or that of ``input`` if it is None."""
    return input._instance if device is None else as_device(device)


# -- continuous -------------------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def rand(*size: Shape, generator: Generator | None = None, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return uniform numbers in [0, 1) in the given shape, of a floating or complex dtype."""
    return draw_continuous("rand", "uniform", size, dtype, as_device(device), generator)  # type: ignore[arg-type]


@public(method=False, factory=True)
def randn(
    *size: Shape, generator: Generator | None = None, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return standard normal numbers in the given shape, of a floating or complex dtype.

    Complex numbers have variance 1: 1/2 each in the real and the imaginary part.
    """
    return draw_continuous("randn", "normal", size, dtype, as_device(device), generator)  # type: ignore[arg-type]


@public(method=False, factory=True)
def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: Device = None, generator: Generator | None = None
) -> Tensor:
    """Return :func:`rand` in the shape of ``input``, by default in its dtype and on its device."""
    shape = tuple(input._payload.shape)
    return draw_continuous("rand_like", "uniform", shape, dtype or input.dtype, instance_for(input, device), generator)


@public(method=False, factory=True)
def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: Device = None, generator: Generator | None = None
) -> Tensor:
    """Return :func:`randn` in the shape of ``input``, by default in its dtype and on its device."""
    shape = tuple(input._payload.shape)
    return draw_continuous("randn_like", "normal", shape, dtype or input.dtype, instance_for(input, device), generator)


# -- integers ---------------------------------------------------------------------------------------------------------
def _size(size: Any) -> tuple[int, ...]:
    """Return the shape that a sequence defines. Raise ``TypeError`` for a number."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return as_sizes((size,))


def _integers(
    name: str, low: Any, high: Any, shape: tuple[int, ...], d: dtype, instance: Instance, generator: Generator | None
) -> Tensor:
    first, last = as_integer(low, "low"), as_integer(high, "high")
    return draw_integers(name, first, last, shape, d, instance, generator)


@public(public=False, factory=True)
def randint_below(
    high: int, size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = None,
    device: Device = None,
) -> Tensor:  # fmt: skip
    """Return uniform integers in [0, high) in the given shape, by default in int64."""
    d = int64 if dtype is None else as_dtype(dtype)
    return _integers("randint", 0, high, _size(size), d, as_device(device), generator)


@public(public=False, factory=True)
def randint_between(
    low: int, high: int, size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = None,
    device: Device = None,
) -> Tensor:  # fmt: skip
    """Return uniform integers in [low, high) in the given shape, by default in int64."""
    d = int64 if dtype is None else as_dtype(dtype)
    return _integers("randint", low, high, _size(size), d, as_device(device), generator)


@public(public=False, factory=True)
def randint_like_below(
    input: Tensor, high: int, *, dtype: DType | None = None, device: Device = None, generator: Generator | None = None
) -> Tensor:
    """Return uniform integers in [0, high) in the shape of ``input``, and in its dtype and on its device unless others
    are given.
    """
    return randint_like_between(input, 0, high, dtype=dtype, device=device, generator=generator)


@public(public=False, factory=True)
def randint_like_between(
    input: Tensor, low: int, high: int, *, dtype: DType | None = None, device: Device = None,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Return uniform integers in [low, high) in the shape of ``input``, and in its dtype and on its device unless
    others are given.
    """
    d = input.dtype if dtype is None else as_dtype(dtype)
    return _integers("randint_like", low, high, tuple(input._payload.shape), d, instance_for(input, device), generator)


randint = overloads("randint", randint_below, randint_between, method=False)
randint_like = overloads("randint_like", randint_like_below, randint_like_between, method=False)


@public(method=False, factory=True)
def randperm(
    n: int, *, generator: Generator | None = None, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return the integers 0 to ``n - 1`` in random order, by default in int64.

    Raises ``RuntimeError`` for a negative ``n`` and for numbers outside the dtype's range.
    """
    d = int64 if dtype is None else as_dtype(dtype)
    if isinstance(n, float):
        raise TypeError("randperm(): argument 'n' (position 1) must be int, not float")
    count = as_size(n)
    given_shape(draws.random_permutation, ((count,),))
    check_dtype("randperm", d, "real numeric")
    largest = (1 << d.digits) + 1 if d.category == FLOATING else limits_of(d)[1] + 1
    if count > largest:
        raise RuntimeError(f"n cannot be greater than {largest} for {d.title} type.")
    instance = as_device(device)
    seed, offset = take_counters("randperm", generator, instance, "permutation", count)
    whole = d if d.category == INTEGER else int64
    try:
        order = draws.random_permutation.function(count, seed, offset, dtype=whole, device=instance)
    except Exception:
        give_back(generator, instance, offset)
        raise
    return cast_to(order, d)
