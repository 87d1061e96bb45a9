"""Lengths of vectors, and vectors of length 1, as in ``torch.nn.functional``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra.dtypes import PYTHON_NAMES
from candelabra.library import record, store

if TYPE_CHECKING:
    from candelabra import Tensor

where = record("where")


def length(input: Tensor, p: float, dim: int, keepdim: bool) -> Tensor:
    """The p-norm along ``dim``; its gradient at a vector of zeros is 0."""
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
        # A power has no slope to speak of at 0: so it is taken of 1 there, and left out.
        powers = size * size if p == 2 else where(size == 0, 0 if p > 0 else float("inf"), _above(size) ** p)
        total = powers.sum(dim, keepdim)
        found = where(total == 0, 0 if p > 0 else float("inf"), _above(total) ** (1 / p))
    return found


def _above(x: Tensor) -> Tensor:
    """The values, and 1 in the place of 0."""
    made: Tensor = x.masked_fill(x == 0, 1)
    return made


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input`` divided by the p-norm of its vectors along ``dim``, but by no less than ``eps``.

    ``RuntimeError`` for integers.
    """
    if not (input.is_floating_point() or input.is_complex()):
        name = PYTHON_NAMES[input.dtype.name]
        raise RuntimeError(f"normalize: Expected a floating point or complex tensor as input. Got {name}")
    made: Tensor = store("normalize", input / length(input, p, dim, True).clamp_min(eps), out)
    return made
