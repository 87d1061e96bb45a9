"""Least squares: X that minimises ‖A X - B‖. It is A⁺ B, whose derivative is that of the pseudo-inverse."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._dispatch.promote import title
from candelabra._layout import broadcast_shapes
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.ranks import pinv, pinv_back
from candelabra._operators.linalg.requirements import factored
from candelabra._records.callables import public
from candelabra._records.promotion import index, real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import finfo

if TYPE_CHECKING:
    from candelabra.typing import Tensor

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


class LeastSquares(NamedTuple):
    """The solution; the sums of squared residuals, rank, and singular values, where the driver gives them."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class Minimum(NamedTuple):
    """What LAPACK's drivers return."""

    solution: Tensor
    rank: Tensor
    singular_values: Tensor


@by
def _shapes(A: Tensor, B: Tensor, rcond: float, driver: str) -> Any:
    a, b = shape_of(A), shape_of(B)
    batch = broadcast_shapes(a[:-2], b[:-2])
    values = min(a[-2:]) if driver in ("gelsd", "gelss") else 0
    return (*batch, a[-1], b[-1]), batch, (*batch, values)


@operator(
    _shapes,
    promote=factored("torch.linalg.lstsq"),
    result=(same, index, real_part),
    public=False,
    method=False,
)
def linalg_lstsq(A: Tensor, B: Tensor, rcond: float, driver: str) -> Minimum:
    """Solutions of least length that minimise ``norm(A X - B)``, for (…, m, n) and (…, m, k)."""
    ...


def _lstsq_back(
    needs: tuple[bool, bool], A: Tensor, B: Tensor, g_solution: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    # X = P B with P = A⁺: gB = Pᴴ g, and gA is what the pseudo-inverse makes of g Bᴴ.
    P = pinv(A)
    to_a = pinv_back(g_solution @ B.mH, A, P) if needs[0] else None
    return to_a, P.mH @ g_solution if needs[1] else None


linalg_lstsq.vjp(("A", "B"), _lstsq_back)


def _checked(A: Tensor, B: Tensor, driver: str | None) -> tuple[str, bool]:
    """The driver, and whether B is a batch of vectors."""
    name = "torch.linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if A.dtype is not B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype "
                           f"{title(A.dtype)} and other's dtype {title(B.dtype)}")  # fmt: skip
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                           "other.dim()) <= 1")  # fmt: skip
    vector = A.ndim > 1 and A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape
    rows = B.shape[-1] if vector or B.ndim == 1 else B.shape[-2]
    if rows != A.shape[-2]:
        words = "other.size(-1)" if vector or B.ndim == 1 else "other.size(-2)"
        raise RuntimeError(f"{name}: input.size(-2) should match {words}")
    return driver or "gelsy", vector or B.ndim == 1


@public(namespace="linalg")
@takes_tensors("linalg_lstsq")
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None
) -> LeastSquares:
    """``(solution, residuals, rank, singular_values)`` of min ‖input X - b‖, for (…, m, n) and (…, m, k) or (…, m).

    ``driver``: ``"gelsy"`` (default; pivoted QR), ``"gels"`` (QR, full rank), ``"gelsd"``, ``"gelss"`` (singular
    values). Singular values up to ``rcond`` times the largest count as zero (default: epsilon times the longer side).
    Residuals are empty unless m > n, the rank is full, and the driver is another than ``"gelsy"``, as in PyTorch.
    """
    driver, vector = _checked(input, b, driver)
    m, n = input.shape[-2:]
    if rcond is None:
        rcond = finfo(input.dtype).eps * max(m, n)
    B = b.unsqueeze(-1) if vector else b
    solution, rank, values = linalg_lstsq(input, B, float(rcond), driver)
    none = rank.new_empty((0,), dtype=values.dtype)
    residuals = none
    if m > n and driver != "gelsy" and (driver == "gels" or not bool((rank != n).any())):
        misfit = input @ solution - B
        size = misfit.abs()
        residuals = (size * size).sum(-2)
        residuals = residuals.squeeze(-1) if vector else residuals
    if driver == "gels":
        rank = rank.new_empty((0,))
    found = LeastSquares(
        solution.squeeze(-1) if vector else solution,
        residuals,
        rank,
        values if values.shape[-1] else none,
    )
    return delivered("linalg.lstsq", found, out)
