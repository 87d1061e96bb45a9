"""Covariances and correlations of the rows of a matrix."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.products.matmul import matmul
from candelabra._records.overloads import overloads
from candelabra._records.promotion import to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import shape_of
from candelabra.dtypes import BOOL, FLOATING, INTEGER

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Tensor

Shape = tuple[int, ...]


def _covariance_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return the shape: a matrix over the rows of a matrix, or a number for a vector and for a matrix with one row."""
    input, name = args[0], "corrcoef" if op.name == "corrcoef" else "cov"
    shape = shape_of(input)
    if len(shape) > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {len(shape)} dimensions"
        )
    if input.dtype.category == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    return () if len(shape) < 2 or shape[0] == 1 else (shape[0], shape[0])


def _weighted_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return :func:`_covariance_shape`. Raise ``RuntimeError`` unless weights are vectors with an element per
    observation.
    """
    result = _covariance_shape(op, args)
    input, _, fweights, aweights = args
    observations = (1, *shape_of(input))[-1]
    for name, weights, category in (("fweights", fweights, INTEGER), ("aweights", aweights, FLOATING)):
        if weights is None:
            continue
        if weights.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
            )
        if weights.dtype.category != category:
            words = "integral" if category == INTEGER else "floating point"
            raise RuntimeError(
                f"cov(): expected {name} to have {words} dtype but got {name} with {weights.dtype.title} dtype"
            )
        if weights.numel() != observations:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{weights.numel()} != {observations}"
            )
    return result


def _rows(input: Tensor) -> Tensor:
    """Return the input as a matrix: a vector is one row."""
    return input if input.ndim == 2 else input.reshape((1, input.numel()))


@operator(_covariance_shape, result=to_float, out=False, public=False)
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """Return the covariance matrix of variables (rows) over observations (columns); for a vector, its variance.

    Sums are divided by the number of observations minus ``correction``. Raises ``RuntimeError`` for more than two dims,
    and for bools.
    """
    _covariance_shape(cov, (input, correction))
    x = _rows(input)
    count = x.shape[1]
    if count <= correction:
        _warn_of_correction()
    x = x - (x.sum(1) / count).unsqueeze(1)
    return (matmul(x, x.t().conj()) / max(count - correction, 0)).squeeze()


@operator(_weighted_shape, promote=unpromoted, result=to_float, data_dependent=True, out=False, public=False)
def cov_weighted(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the weighted covariance: ``fweights`` are the numbers of times that observations occur, ``aweights`` their
    weights.

    Sums are divided by the weights' sum minus ``correction``. Raises ``RuntimeError`` for weights that are negative or
    add up to zero, that have more than one dim or do not have one element per observation.
    """
    if fweights is None and aweights is None:
        return cov(input, correction=correction)
    _weighted_shape(cov_weighted, (input, correction, fweights, aweights))
    for name, value in (("fweights", fweights), ("aweights", aweights)):
        if value is not None and bool((value < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    x = _rows(input)
    weights: Any = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    weights = weights.reshape((x.shape[1],))
    total = weights.sum()
    if x.shape[1] and not bool(total):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    norm = total - correction
    if aweights is not None and correction:
        norm = total - correction * (weights * aweights.reshape(weights.shape)).sum() / total
    if not bool(norm > 0):
        _warn_of_correction()
    x = x - ((x * weights).sum(1) / total).unsqueeze(1)
    product = matmul(x, (x * weights).t().conj())
    return (product / where(norm > 0, norm, 0)).squeeze()


cov_overloads = overloads("cov", cov, cov_weighted)


def _warn_of_correction() -> None:
    warnings.warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
        UserWarning,
        stacklevel=3,
    )


@operator(_covariance_shape, result=to_float, out=False)
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation coefficients of variables (rows) over observations (columns), between -1 and 1.

    Raises ``RuntimeError`` for more than two dims, and for bools.
    """
    _covariance_shape(corrcoef, (input,))
    covariance = cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviation = covariance.diagonal().real.sqrt()
    covariance = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if not covariance.is_complex():
        return covariance.clamp(-1, 1)
    return covariance.real.clamp(-1, 1) + covariance.imag.clamp(-1, 1) * 1j
