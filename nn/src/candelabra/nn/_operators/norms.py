"""Norms of vectors, and normalization to norm 1."""

from __future__ import annotations

from candelabra.library import like_input, operator, overloads, record
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor

where = record("where")


def vector_norm(input: Tensor, p: float, dim: int, keepdim: bool) -> Tensor:
    """Return the p-norm along ``dim``; its gradient at a vector of zeros is 0."""
    found: Tensor
    # A real square needs no absolute value.
    size = input if p == 2 and not input.is_complex() else input.abs()
    if abs(p) == float("inf"):
        found = size.amax(dim, keepdim) if p > 0 else size.amin(dim, keepdim)
    elif p == 0:
        found = (size != 0).sum(dim, keepdim).to(size.dtype)
    elif p == 1:
        found = size.sum(dim, keepdim)
    else:
        # The derivative of a power at 0 may be infinite, so the power is taken of 1 there and not used.
        powers = size * size if p == 2 else where(size == 0, 0 if p > 0 else float("inf"), _nonzero(size) ** p)
        total = powers.sum(dim, keepdim)
        found = where(total == 0, 0 if p > 0 else float("inf"), _nonzero(total) ** (1 / p))
    return found


def _nonzero(x: Tensor) -> Tensor:
    """Return the values, with 0 replaced by 1."""
    made: Tensor = x.masked_fill(x == 0, 1)
    return made


@operator(like_input, public=False)
def unit_vectors(input: Tensor, p: float = 2.0, dim: Dim = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by the p-norm of its vectors along ``dim``, or by ``eps`` if that is greater.

    Raises ``RuntimeError`` for integers.
    """
    if not (input.is_floating_point() or input.is_complex()):
        name = input.dtype.title
        raise RuntimeError(f"normalize: Expected a floating point or complex tensor as input. Got {name}")
    return input / vector_norm(input, p, dim, True).clamp_min(eps)


normalize = overloads("normalize", unit_vectors, namespace="nn.functional")
