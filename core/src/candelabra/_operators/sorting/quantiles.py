"""Quantiles, with and without NaN."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._layout import reduced_shape
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._operators.sorting.sort import ordered
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import shape_of
from candelabra.dtypes import float32, float64, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, Number, Tensor

INTERPOLATIONS: Final = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape: the dim of ``q`` if it has one, then the remaining dims."""
    input, q, dim, keepdim, interpolation = args
    name = op.name.partition("_")[0]
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if hasattr(q, "_payload"):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    elif not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    return (*shape_of(q), *reduced_shape(shape_of(input), None if dim is None else (dim,), keepdim))


@operator(_quantile_shape, public=False, autocast=Autocast(host="float32"))
def quantile_number(
    input: Tensor, q: Number, dim: Dim | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the ``q``-th quantile along ``dim`` (of all elements if None), ``q`` in [0, 1]; NaN if any element is.

    ``interpolation`` defines the result between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``
    or ``"nearest"``. Raises ``RuntimeError`` for no elements, and for dtypes other than float32 and float64.
    """
    return _quantile(quantile_number, input, q, dim, keepdim, interpolation)


@operator(_quantile_shape, promote=unpromoted, data_dependent=True, public=False, autocast=Autocast(host="float32"))
def quantile_tensor(
    input: Tensor, q: Tensor, dim: Dim | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the quantiles for each element of ``q``, a 0-d or 1-d tensor in the input's dtype: the first dim of the
    result.

    Raises ``RuntimeError`` for an element outside [0, 1].
    """
    _check_range("quantile", q)
    return _quantile(quantile_tensor, input, q, dim, keepdim, interpolation)


@operator(_quantile_shape, public=False, autocast=Autocast(host="float32"))
def nanquantile_number(
    input: Tensor, q: Number, dim: Dim | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the :func:`quantile` of the elements that are not NaN; NaN if all are."""
    return _quantile(nanquantile_number, input, q, dim, keepdim, interpolation)


@operator(_quantile_shape, promote=unpromoted, data_dependent=True, public=False, autocast=Autocast(host="float32"))
def nanquantile_tensor(
    input: Tensor, q: Tensor, dim: Dim | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the :func:`quantile` of the elements that are not NaN; NaN if all are."""
    _check_range("nanquantile", q)
    return _quantile(nanquantile_tensor, input, q, dim, keepdim, interpolation)


quantile = overloads("quantile", quantile_number, quantile_tensor)
nanquantile = overloads("nanquantile", nanquantile_number, nanquantile_tensor)


def _check_range(name: str, q: Tensor) -> None:
    outside = ((q >= 0) & (q <= 1)).logical_not()
    raise_if_nonzero(outside, f"{name}() q values must be in the range [0, 1]", RuntimeError)


def _quantile(
    op: Operator[..., Any], input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    shape = _quantile_shape(op, (input, q, dim, keepdim, interpolation))
    rows = input.reshape(-1) if dim is None or not input.ndim else input.movedim(dim, -1)
    fractions = q.reshape(-1) if hasattr(q, "_payload") else new_full(input, (1,), float(q))
    result = _interpolated(rows, fractions, op.name.startswith("nan"), interpolation)
    return result.movedim(-1, 0).reshape(shape)


def _interpolated(rows: Tensor, fractions: Tensor, ignore_nan: bool, interpolation: str) -> Tensor:
    """Return the quantiles of each row, along the last dim."""
    last = rows.shape[-1] - 1
    missing = rows.detach().isnan()
    if ignore_nan:
        present = (last - missing.sum(-1, True)).clamp(
            min=0
        )  # the position of the last number; of the first NaN if all are
        ranks = fractions * present
    else:  # NaN is sorted last
        ranks = where(missing.any(-1, True), float(last), fractions * last)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    values = ordered(rows, rows.ndim - 1)
    below = values.gather(-1, ranks.detach().to(int64))
    if interpolation not in ("linear", "midpoint"):
        return below
    above = values.gather(-1, ranks.detach().ceil().to(int64))
    weight: Any = 0.5 if interpolation == "midpoint" else ranks - ranks.detach().floor()
    out: Tensor = below.lerp(above, weight)
    return out
