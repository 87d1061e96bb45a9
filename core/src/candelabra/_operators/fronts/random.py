"""Random tensors: new ones, and ones like another. Fillers in place stand in ``fronts/random_inplace.py``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype, as_size, as_sizes
from candelabra._device import open_device
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation import filled
from candelabra._operators.primitives import random
from candelabra._random.counters import counters_used
from candelabra._random.drawing import (
    cast_to,
    check_floating,
    check_probability,
    check_std,
    draw,
    draw_bernoulli,
    draw_integers,
    generator_of,
    limits_of,
    scaled,
)
from candelabra._records.callables import public
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, PYTHON_NAMES, get_default_dtype, int64

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra._tensor import Tensor


# -- new tensors ------------------------------------------------------------------------------------------------------
def _new(
    name: str, kind: str, kernel: str, shape: Any, generator: Any, d: Any, device: Any, requires_grad: bool
) -> Tensor:
    found = get_default_dtype() if d is None else as_dtype(d)
    check_floating(kernel, found)
    made = draw(name, kind, shape, found, open_device(device), generator)
    return _marked(made, requires_grad)


def _marked(made: Tensor, requires_grad: bool) -> Tensor:
    return made.requires_grad_() if requires_grad else made


def _shape(size: tuple[Any, ...], named: Any) -> tuple[int, ...]:
    return as_sizes(size) if named is None else as_sizes((named,))


@public(method=False, factory=True)
def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1) in the given shape, of a floating or complex dtype."""
    wanted = _shape(shape, size)
    return _new("rand", "uniform", "check_uniform_bounds", wanted, generator, dtype, device, requires_grad)


@public(method=False, factory=True)
def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Standard normal numbers in the given shape, of a floating or complex dtype (complex ones have variance 1)."""
    wanted = _shape(shape, size)
    return _new("randn", "normal", "normal", wanted, generator, dtype, device, requires_grad)


def _bounds(name: str, low: Any, high: Any, size: Any) -> tuple[int, int, Any]:
    """``(low, high, size)`` and ``(high, size)`` alike."""
    if isinstance(high, (tuple, list)) and size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    for position, (title, value) in enumerate((("low", low), ("high", high)), 1):
        if isinstance(value, float) or not (hasattr(value, "__index__") or hasattr(value, "__int__")):
            kind = type(value).__name__
            raise TypeError(f"{name}(): argument '{title}' (position {position}) must be int, not {kind}")
    return int(low), int(high), size


@public(method=False, factory=True)
def randint(
    low: Any = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high): ``randint(low, high, size)`` or ``randint(high, size)``; int64 unless told otherwise."""
    first, last, wanted = _bounds("randint", low, high, size)
    if not isinstance(wanted, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {type(wanted).__name__}")
    shape = as_sizes((wanted,))
    found = int64 if dtype is None else as_dtype(dtype)
    made = draw_integers("randint", first, last, shape, found, open_device(device), generator)
    return _marked(made, requires_grad)


@public(method=False, factory=True)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers 0 to ``n - 1`` in random order; int64 unless told otherwise."""
    found = int64 if dtype is None else as_dtype(dtype)
    if isinstance(n, float):
        raise TypeError("randperm(): argument 'n' (position 1) must be int, not float")
    count = as_size(n)
    filled.given_shape(random.random_permutation, ((count,),))
    if found.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"\"randperm\" not implemented for '{PYTHON_NAMES[found.name]}'")
    most = (1 << found.digits) + 1 if found.category == FLOATING else limits_of(found)[1] + 1
    if count > most:
        raise RuntimeError(f"n cannot be greater than {most} for {PYTHON_NAMES[found.name]} type.")
    instance = open_device(device)
    seed, offset = generator_of("randperm", generator, instance).take(counters_used("permutation", count, "int64"))
    whole = found if found.category == INTEGER else int64
    made = random.random_permutation.function(count, seed, offset, dtype=whole, device=instance)
    return _marked(cast_to(made, found), requires_grad)


@public(method=False, factory=True)
def rand_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """:func:`rand` in the shape, dtype and device of ``input``."""
    shape, d, place = tuple(input.shape), dtype or input.dtype, device or input.device
    return _new("rand_like", "uniform", "check_uniform_bounds", shape, generator, d, place, requires_grad)


@public(method=False, factory=True)
def randn_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """:func:`randn` in the shape, dtype and device of ``input``."""
    shape, d, place = tuple(input.shape), dtype or input.dtype, device or input.device
    return _new("randn_like", "normal", "normal", shape, generator, d, place, requires_grad)


@public(method=False, factory=True)
def randint_like(
    input: Tensor,
    low: Any = 0,
    high: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """:func:`randint` like ``input`` in shape, dtype and device: ``randint_like(input, high)``, ``(…, low, high)``."""
    first, last, _ = _bounds("randint_like", low, high, ())
    d, place = dtype or input.dtype, device or input.device
    made = randint(first, last, tuple(input.shape), generator=generator, dtype=d, device=place)
    return _marked(made, requires_grad)


# -- distributions ----------------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation for each: tensors that broadcast, numbers, or two numbers
    and a ``size``. The result carries no gradient to them."""
    tensors = [v for v in (mean, std) if hasattr(v, "_payload")]
    if not tensors:
        if size is None:
            raise TypeError("normal(): two numbers need a 'size'; normal(mean, std, size) or tensors were expected")
        d = get_default_dtype() if dtype is None else as_dtype(dtype)
        check_floating("normal", d)
        check_std(std)
        noise = draw("normal", "normal", as_sizes((size,)), d, open_device(device), generator)
        return _marked(scaled(noise, std, mean), requires_grad)
    for value in tensors:
        check_floating("normal", value.dtype, allow_complex=value is mean)
    check_std(std)
    like = tensors[0]
    elsewhere = device is not None and open_device(device) is not like._instance
    if size is not None or elsewhere or (dtype is not None and as_dtype(dtype) is not like.dtype):
        raise TypeError("normal(): 'size', 'dtype' and 'device' go with two numbers; a tensor says these itself")
    shape = broadcast_shapes(*(tuple(t._payload.shape) for t in tensors))
    noise = draw("normal", "normal", shape, like.dtype, like._instance, generator)
    mean, std = (v.detach() if hasattr(v, "_payload") else v for v in (mean, std))
    result: Tensor = noise * std + mean
    return result


@public(out=True)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element of ``input`` says (or ``p``, for all), else 0, in ``input``'s dtype."""
    if p is None:
        check_floating("bernoulli_tensor_p", input.dtype, allow_complex=False)
    else:
        check_probability(p)
        if input.is_complex():
            kind = PYTHON_NAMES[input.dtype.name]
            raise NotImplementedError(f"\"bernoulli_scalar\" not implemented for '{kind}'")
    chance = input if p is None else float(p)
    return cast_to(draw_bernoulli("bernoulli", chance, tuple(input.shape), input._instance, generator), input.dtype)


@public(out="exact")
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """``num_samples`` indices drawn from each row of ``input``: weights that need not sum to 1. int64."""
    shape = tuple(input.shape)
    if len(shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if input.dtype.category != FLOATING:
        kind = PYTHON_NAMES[input.dtype.name]
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {kind}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if shape[-1] == 0 or (not replacement and num_samples > shape[-1]):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = shape[0] if len(shape) == 2 else 1
    count = rows * (num_samples if replacement else shape[-1])
    source = generator_of("multinomial", generator, input._instance)
    seed, offset = source.take(counters_used("multinomial", count, "int64"))
    result: Tensor = random.random_multinomial.function(input.detach(), num_samples, bool(replacement), seed, offset)
    return result
