"""Covariances and correlations of the rows of a matrix, and the matrix of powers."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.products.matmul import matmul
from candelabra._operators.primitives.creation import full
from candelabra._operators.primitives.joining import cat
from candelabra._records.callables import public
from candelabra._records.rules import shape_of
from candelabra.dtypes import BOOL, FLOATING, INTEGER, PYTHON_NAMES, int64, promote_types

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _check_weights(name: str, weights: Tensor, observations: int) -> None:
    shape, d = shape_of(weights), weights.dtype
    if len(shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {len(shape)} dimensions"
        )
    wanted, words = (INTEGER, "integral") if name == "fweights" else (FLOATING, "floating point")
    if d.category != wanted:
        raise RuntimeError(
            f"cov(): expected {name} to have {words} dtype but got {name} with {PYTHON_NAMES[d.name]} dtype"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {observations}"
        )
    if observations and weights.detach().amin().item() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public
@takes_tensors("cov")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables (rows) over observations (columns); of a vector, its variance.

    ``fweights``, integers, say how often each observation occurs, ``aweights`` how much it counts. Sums are divided by
    the observations less ``correction``. ``RuntimeError`` for more than two dims, bools and weights that do not fit.
    """
    rank = len(shape_of(input))
    if rank > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
        )
    if input.dtype.category == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if rank == 2 else input.reshape((1, -1)) if input.numel() else input.reshape((1, 0))
    count = shape_of(x)[1]
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            _check_weights(name, given, count)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is not None:
        weights = weights.reshape((count,))
    total, norm = _normalizer(count, weights, aweights, correction)
    mean = (x if weights is None else x * weights).sum(1) / total
    x = x - mean.unsqueeze(1)
    product = matmul(x, (x if weights is None else x * weights).t().conj())
    return (product / norm).squeeze()


def _normalizer(count: int, weights: Tensor | None, aweights: Tensor | None, correction: int) -> tuple[Any, Any]:
    """The sum of the weights, and what sums of products are divided by: numbers, or 0-d tensors."""
    total: Any = count if weights is None else weights.sum()
    if weights is not None and count and total.item() == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    norm = total - correction
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights.reshape((count,))).sum() / total
    if float(norm) <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=3,
        )
        norm = norm * 0
    return total, norm


@public
@takes_tensors("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables (rows) over observations (columns), between -1 and 1.

    ``RuntimeError`` for more than two dims.
    """
    rank = len(shape_of(input))
    if rank > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
        )
    found = cov(input)
    if not shape_of(found):
        return found / found
    deviation = found.diagonal()
    deviation = (deviation.real if found.is_complex() else deviation).sqrt()
    found = found / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if not found.is_complex():
        return found.clamp(-1, 1)
    from candelabra._operators.fronts.comparison import complex

    return complex(found.real.clamp(-1, 1), found.imag.clamp(-1, 1))


@public(method=False)
@takes_tensors("vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: its powers from N - 1 down to 0 as columns, or up where ``increasing``.

    ``N`` is the vector's size unless given; integers give int64. ``RuntimeError`` for other than a vector, and for a
    negative ``N``.
    """
    if len(shape_of(x)) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    columns = shape_of(x)[0] if N is None else N
    if columns < 0:
        raise RuntimeError("N must be non-negative.")
    x = x.to(promote_types(x.dtype, int64))
    ones: Tensor = full((shape_of(x)[0], 1), 1, dtype=x.dtype, device=x.device)
    if columns == 0:
        return ones.narrow(1, 0, 0)
    powers = x.unsqueeze(1).expand(-1, columns - 1).cumprod(1) if columns > 1 else None
    made: Tensor = ones if powers is None else cat((ones, powers), 1)
    return made if increasing else made.flip(1)
