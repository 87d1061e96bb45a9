"""Random numbers of distributions whose parameters are tensors: normal, Bernoulli, multinomial, Poisson, binomial."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_device, as_integer, as_sizes, kind_of
from candelabra._codegen.fitting import is_number
from candelabra._layout import broadcast_shapes
from candelabra._operators.random.draws import random_binomial, random_multinomial, random_poisson
from candelabra._operators.random.factories import draw_continuous
from candelabra._random.drawing import (
    cast_to,
    check_probability,
    check_std,
    draw,
    draw_bernoulli,
    scaled,
)
from candelabra._random.generator import give_back, take_counters
from candelabra._records.accepts import check_dtype
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra.dtypes import FLOATING

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra.typing import Device, DType, Number, Shape, Tensor


# -- normal -----------------------------------------------------------------------------------------------------------
@public(public=False, out=True)
def normal_tensors(mean: Tensor | Number, std: Tensor | Number = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Return normal numbers with a mean and a standard deviation for each element.

    The arguments are tensors that broadcast, or a tensor and a number. The result has the dtype of the first tensor;
    the parameters get no gradient. Raises ``RuntimeError`` for a negative standard deviation.
    """
    parameters: tuple[Any, ...] = (mean, std)
    tensors = [v for v in parameters if hasattr(v, "_payload")]
    for name, value in zip(("mean", "std"), parameters, strict=True):
        if not hasattr(value, "_payload") and not is_number(value):
            raise TypeError(f"normal(): argument '{name}' must be Tensor or Number, not {kind_of(value)}")
    if not tensors:
        raise TypeError(
            "normal() expects normal(mean, std, size) or at least one tensor, got two numbers without 'size'"
        )
    for value in tensors:
        check_dtype("normal", value.dtype, "floating" if value is mean else "real floating")
    check_std(std)
    like = tensors[0]
    shape = broadcast_shapes(*[tuple(t._payload.shape) for t in tensors])
    noise = draw("normal", "normal", shape, like.dtype, like._instance, generator)
    mean, std = [cast_to(v.detach(), like.dtype) if hasattr(v, "_payload") else v for v in parameters]
    return noise * std + mean


@public(public=False, factory=True)
def normal_numbers(
    mean: float, std: float, size: Shape, *, generator: Generator | None = None, dtype: DType | None = None,
    device: Device = None,
) -> Tensor:  # fmt: skip
    """Return normal numbers of one mean and one standard deviation in shape ``size``.

    Raises ``RuntimeError`` for a negative standard deviation.
    """
    if hasattr(mean, "_payload") or hasattr(std, "_payload"):
        raise TypeError("normal() accepts 'size', 'dtype' and 'device' only if mean and std are numbers, got a tensor")
    check_std(std)
    noise = draw_continuous("normal", "normal", as_sizes((size,)), dtype, as_device(device), generator)
    return scaled(noise, std, mean)


normal = overloads("normal", normal_tensors, normal_numbers, method=False)


# -- categories -------------------------------------------------------------------------------------------------------
@public(public=False, out=True)
def bernoulli_tensor(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with the probability of each element of ``input``, else 0, in the dtype of ``input``."""
    check_dtype("bernoulli", input.dtype, "real floating")
    return cast_to(draw_bernoulli("bernoulli", input, tuple(input.shape), input._instance, generator), input.dtype)


@public(public=False, out=True)
def bernoulli_number(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with probability ``p``, else 0, in the shape and the dtype of ``input``."""
    check_probability(p)
    check_dtype("bernoulli", input.dtype, "real")
    return cast_to(draw_bernoulli("bernoulli", float(p), tuple(input.shape), input._instance, generator), input.dtype)


bernoulli = overloads("bernoulli", bernoulli_tensor, bernoulli_number)


@public(out="exact")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return ``num_samples`` indices drawn from each row of ``input``, as int64.

    The rows of ``input``, of shape (n,) or (rows, n), are weights. Their sum need not be 1.
    """
    shape = tuple(input.shape)
    num_samples = as_integer(num_samples, "num_samples")
    if len(shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if input.dtype.category != FLOATING:
        kind = input.dtype.title
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {kind}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if shape[-1] == 0 or (not replacement and num_samples > shape[-1]):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = shape[0] if len(shape) == 2 else 1
    count = rows * (num_samples if replacement else shape[-1])
    seed, offset = take_counters("multinomial", generator, input._instance, "multinomial", count)
    try:
        return random_multinomial.function(input.detach(), num_samples, replacement, seed, offset)
    except Exception:
        give_back(generator, input._instance, offset)
        raise


# -- counts -----------------------------------------------------------------------------------------------------------
@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return a Poisson number for each rate in ``input``, in its dtype. Rates of 0 give 0, NaN gives NaN.

    Raises ``RuntimeError`` for negative rates, ``NotImplementedError`` for dtypes that are not real floating. The
    gradient is zero.
    """
    check_dtype("poisson", input.dtype, "real floating")
    seed, offset = take_counters("poisson", generator, input._instance, "poisson", input.numel())
    try:
        return random_poisson.function(input, seed, offset)
    except Exception:
        give_back(generator, input._instance, offset)
        raise


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return the number of successes in ``count`` trials of probability ``prob``; the two broadcast, and their dtypes
    promote.

    The result is 0 for no trials and probabilities of at most 0, ``count`` for probabilities of at least 1, and NaN for
    NaN. The gradient is zero.
    """
    for t in (count, prob):
        check_dtype("binomial", t.dtype, "real floating")
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    seed, offset = take_counters("binomial", generator, count._instance, "binomial", prod(shape))
    try:
        return random_binomial.function(count.expand(shape), prob.expand(shape), seed, offset)
    except Exception:
        give_back(generator, count._instance, offset)
        raise
