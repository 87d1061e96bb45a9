"""Dropout of elements, with the numbers that a generator would draw."""

from __future__ import annotations

from candelabra.dtypes import float32
from candelabra.library import by, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor

cast, new_uniform = record("cast"), record("new_uniform")


class Dropped(NamedTuple):
    """The values, and the factor of each: 0 where it was dropped, ``1 / (1 - p)`` elsewhere."""

    values: Tensor
    factors: Tensor


@operator(
    by(lambda input, *_: (shape_of(input), shape_of(input))),
    result=(same, same),
    accepts="floating",
    method=False,
    public=False,
    out=False,
)
def dropout(input: Tensor, p: float, seed: int, offset: int) -> Dropped:
    """Set elements to 0 with probability ``p`` and divide the others by ``1 - p``.

    An element is dropped where the uniform float32 number of the draw (see ``random_uniform``) is below ``p``. The
    factors have no gradient. Srivastava and others, Dropout: a simple way to prevent neural networks from overfitting,
    2014.
    """
    kept = new_uniform.canonical(input, seed, offset, dtype=float32) >= p
    factors = cast(kept, dtype=input.dtype) * (0.0 if p == 1 else 1.0 / (1.0 - p))
    return Dropped(input * factors, factors)


dropout.vjp(input=lambda g_values, factors: g_values * factors)
