"""The draws for which devices have kernels: pure functions of a seed and an offset, so that a device has no state.

``seed`` and ``offset`` are plain integers below 2**64. ``candelabra._random.counters`` computes how many counters a
draw reads. ``docs/notes/0001-random-numbers.md`` specifies the bits of each value, in the sections cited below.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import given_shape, zeroed
from candelabra._records.promotion import boolean, index, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, pointwise, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Shape, Tensor

Ints = tuple[int, ...]


# -- new tensors ------------------------------------------------------------------------------------------------------
@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_uniform(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Return uniform numbers in [0, 1), of a floating or complex dtype; section 4."""
    ...


@operator(like_input, promote=unpromoted, method=False, out=False, public=False, random=True)
def new_uniform(input: Tensor, seed: int, offset: int, *, dtype: DType) -> Tensor:
    """Return :func:`random_uniform` in the shape of ``input`` and on its device."""
    return random_uniform.canonical(shape_of(input), seed, offset, dtype=dtype, device=input._instance)


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_normal(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Return standard normal numbers, of a floating or complex dtype; section 7."""
    ...


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_exponential(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Return exponential numbers of rate 1, of a floating dtype; section 8."""
    ...


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_integers(
    shape: Shape, low: int, high: int, seed: int, offset: int, *, dtype: DType, device: Device
) -> Tensor:
    """Return uniform integers in [low, high), within the range of ``dtype``, an integer dtype or bool; section 5."""
    ...


@operator(by(lambda n, *_: (n,)), promote=unpromoted, method=False, out=False, public=False, random=True)
def random_permutation(n: int, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Return the numbers 0 to ``n - 1`` in random order, in an integer dtype with a sufficient range; section 9."""
    ...


# -- by probabilities, weights and rates ------------------------------------------------------------------------------
def _check_probabilities(p: Any, *_: object) -> None:
    if hasattr(p, "_payload") and not bool(((p >= 0) & (p <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


@operator(
    by(lambda p, shape, *_: given_shape(None, (shape,))), check=_check_probabilities, promote=unpromoted,
    result=boolean, method=False, out=False, public=False, random=True,
)  # fmt: skip
def random_bernoulli(p: Tensor | Number, shape: Shape, seed: int, offset: int, *, device: Device) -> Tensor:
    """Return True with probability ``p``, a number or a real floating tensor of the same shape and device; section
    6.
    """
    ...


def _check_weights(input: Tensor, num_samples: int, replacement: bool, *_: object) -> None:
    if not bool((input.isfinite() & (input >= 0)).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    positive = (input > 0).sum(-1)
    if bool((positive == 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and bool((positive < num_samples).any()):
        raise RuntimeError(
            "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample "
            f"{num_samples})"
        )


@by
def _sampled(input: Tensor, num_samples: int, *_: object) -> Ints:
    return (*shape_of(input)[:-1], num_samples)


@operator(
    _sampled, check=_check_weights, promote=unpromoted, result=index, method=False, out=False, public=False, random=True
)
def random_multinomial(input: Tensor, num_samples: int, replacement: bool, seed: int, offset: int) -> Tensor:
    """Return indices drawn from each row of weights, of shape (n,) or (rows, n); section 10."""
    ...


for _draw in (
    random_uniform, new_uniform, random_normal, random_exponential, random_integers, random_permutation,
    random_bernoulli, random_multinomial,
):  # fmt: skip
    _draw.no_gradient("random numbers are not a differentiable function of any tensor")


def _check_rates(input: Tensor, *_: object) -> None:
    if bool((input < 0).any()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")


@operator(
    like_input, check=_check_rates, promote=unpromoted, accepts="real floating", method=False, out=False, public=False,
    random=True,
)  # fmt: skip
def random_poisson(input: Tensor, seed: int, offset: int) -> Tensor:
    """Return Poisson numbers with the rates ``input``, a real floating tensor; section 15."""
    ...


@operator(pointwise, accepts="real floating", inplace=False, method=False, out=False, public=False, random=True)
def random_binomial(count: Tensor, prob: Tensor, seed: int, offset: int) -> Tensor:
    """Return the number of successes in ``count`` trials of probability ``prob``: real floating tensors of one shape;
    section 16.
    """
    ...


# The numbers are a step function of the rates: their derivative is 0.
random_poisson.vjp(input=lambda g: zeroed(g))
random_poisson.jvp(lambda t_input: None)
random_binomial.vjp(count=lambda g: zeroed(g), prob=lambda g: zeroed(g))
