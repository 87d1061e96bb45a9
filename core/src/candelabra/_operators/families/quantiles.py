"""Quantiles, with and without NaN."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.arguments import wrap_dim
from candelabra._dispatch.out import store
from candelabra._operators.families.order_statistics import ordered
from candelabra._operators.primitives import arithmetic, creation
from candelabra._records.callables import public
from candelabra.dtypes import float32, float64, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

INTERPOLATIONS: Final = ("linear", "lower", "higher", "midpoint", "nearest")


@public
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Any:
    """The ``q``-th quantiles along ``dim`` (of all elements when None); NaN where one is.

    ``q`` is a number in [0, 1] or a 1-d tensor of them in the input's dtype, float32 or float64: then the first dim of
    the result is theirs. Between two elements ``interpolation`` decides: ``"linear"``, ``"lower"``, ``"higher"``,
    ``"midpoint"`` or ``"nearest"``. Raises ``RuntimeError`` for other arguments and for no elements.
    """
    return store("quantile", _quantile("quantile", input, q, dim, keepdim, interpolation), out)


@public
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Any:
    """As :func:`quantile` of the elements that are not NaN; NaN where all are."""
    return store("nanquantile", _quantile("nanquantile", input, q, dim, keepdim, interpolation), out)


def _fractions(name: str, input: Tensor, q: Any) -> Tensor:
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if not hasattr(q, "_payload"):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return creation.full((), float(q), dtype=input.dtype, device=input.device)
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    fractions = _fractions(name, input, q)
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    shape = [1] * input.ndim
    if dim is None or not input.ndim:
        rows = input.reshape(-1)
    else:
        d = wrap_dim(dim, input.ndim)
        rows = input.movedim(d, -1)
        shape = [1 if i == d else s for i, s in enumerate(input.shape)]
    found = _between(rows, fractions.reshape(fractions.numel()), name == "nanquantile", interpolation)
    if keepdim:
        found = found.unsqueeze(-1).movedim(-2, 0).reshape([fractions.numel(), *shape])
    else:
        found = found.movedim(-1, 0)
    return found if fractions.ndim else found.squeeze(0)


def _between(rows: Tensor, fractions: Tensor, ignore_nan: bool, interpolation: str) -> Tensor:
    """The quantiles of each row, along the last dim."""
    last = rows.shape[-1] - 1
    absent = rows.detach().isnan()
    if ignore_nan:
        present = (last - absent.sum(-1, True)).clamp(min=0)  # of no number the first NaN
        ranks = fractions * present
    else:  # NaN stands last
        ranks = arithmetic.where.function(absent.any(-1, True), float(last), fractions * last)
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
