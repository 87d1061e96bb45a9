"""Random draws: pure functions of a seed and an offset, so that a device needs no state of its own.

``seed`` and ``offset`` are plain integers below 2**64. How many counters a draw reads is the core's business
(``candelabra._random.counters``); the bits of each value are
specified in ``docs/notes/0001-random-numbers.md``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import given_shape
from candelabra._records.promotion import boolean, index, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Shape, Tensor


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_uniform(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Uniform numbers in [0, 1), of a floating or complex dtype; section 4 of the specification."""
    ...


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_normal(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Standard normal numbers, of a floating or complex dtype; section 7 of the specification."""
    ...


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_exponential(shape: Shape, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """Exponential numbers of rate 1, of a floating dtype; section 8 of the specification."""
    ...


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_integers(
    shape: Shape, low: int, high: int, seed: int, offset: int, *, dtype: DType, device: Device
) -> Tensor:
    """Uniform integers in [low, high), which ``dtype``, an integer dtype or bool, can hold; section 5."""
    ...


@by
def _one_dim(n: int, *_: object) -> tuple[int, ...]:
    return (n,)


@operator(_one_dim, promote=unpromoted, method=False, out=False, public=False, random=True)
def random_permutation(n: int, seed: int, offset: int, *, dtype: DType, device: Device) -> Tensor:
    """The numbers 0 to ``n - 1`` in random order, as an integer dtype that holds them; section 9."""
    ...


@by
def _decided(p: Any, shape: tuple[int, ...], *_: object) -> tuple[int, ...]:
    # Values are looked at here only: after a kernel has refused them.
    if hasattr(p, "_payload") and not bool(((p >= 0) & (p <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return shape


@operator(_decided, promote=unpromoted, result=boolean, method=False, out=False, public=False, random=True)
def random_bernoulli(p: Tensor | Number, shape: Shape, seed: int, offset: int, *, device: Device) -> Tensor:
    """True with probability ``p``, a number or a real floating tensor of the same shape and device; section 6."""
    ...


@by
def _sampled(input: Tensor, num_samples: int, replacement: bool, *_: object) -> tuple[int, ...]:
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
    return (*shape_of(input)[:-1], num_samples)


@operator(_sampled, promote=unpromoted, result=index, method=False, out=False, public=False, random=True)
def random_multinomial(input: Tensor, num_samples: int, replacement: bool, seed: int, offset: int) -> Tensor:
    """Indices drawn from each row of weights, of shape (n,) or (rows, n); section 10 of the specification."""
    ...


for _draw in (
    random_uniform, random_normal, random_exponential, random_integers, random_permutation, random_bernoulli,
    random_multinomial,
):  # fmt: skip
    _draw.no_gradient("random numbers do not depend on any tensor's value smoothly")
