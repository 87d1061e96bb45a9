"""Least squares: X that minimises ‖A X - B‖. It is A⁺ B, whose derivative is that of the pseudo-inverse."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg.inverses import linalg_pinv, pinv_back
from candelabra._operators.linalg.rules import floating
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import index, real_part, same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import finfo

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]
NAME = "torch.linalg.lstsq"
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


class Minimum(NamedTuple):
    """The results of LAPACK's drivers."""

    solution: Tensor
    rank: Tensor
    singular_values: Tensor


@by
def _minimum_shapes(A: Tensor, B: Tensor, rcond: float, driver: str) -> tuple[Ints, Ints, Ints]:
    a, b = shape_of(A), shape_of(B)
    batch = broadcast_shapes(a[:-2], b[:-2])
    values = min(a[-2:]) if driver in ("gelsd", "gelss") else 0
    return (*batch, a[-1], b[-1]), batch, (*batch, values)


@operator(
    _minimum_shapes,
    promote=floating(NAME),
    result=(same, index, real_part),
    public=False,
    autocast=Autocast(host="float32"),
)
def linalg_lstsq(A: Tensor, B: Tensor, rcond: float, driver: str) -> Minimum:
    """Return the solutions of least length that minimise ``norm(A X - B)``, for (…, m, n) and (…, m, k)."""
    ...


def _lstsq_back(
    needs: tuple[bool, bool], A: Tensor, B: Tensor, g_solution: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    # X = P B with P = A⁺: gB = Pᴴ g, and gA is the gradient of the pseudo-inverse for g Bᴴ.
    P = linalg_pinv(A)
    to_a = pinv_back(g_solution @ B.mH, A, P) if needs[0] else None
    return to_a, P.mH @ g_solution if needs[1] else None


linalg_lstsq.vjp(("A", "B"), _lstsq_back)


def _lstsq_along(
    A: Tensor,
    B: Tensor,
    solution: Tensor,
    rcond: float,
    driver: str,
    t_A: Tensor | None = None,
    t_B: Tensor | None = None,
) -> tuple[Tensor, None, None]:
    if t_A is None:
        assert t_B is not None  # at least one of the two tangents exists
        return linalg_lstsq(A, t_B, rcond, driver).solution, None, None
    # Golub and Pereyra: dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, for the pseudo-inverse P, of which
    # the solutions of A X = 1 have the columns. Products of many rows are the larger part of the work, so the factors
    # that do not depend on B are multiplied first if A has more rows than columns.
    m, n, X = A.shape[-2], A.shape[-1], solution
    P = linalg_lstsq(A, new_eye(A, m, m).expand((*A.shape[:-2], m, m)), rcond, driver).solution
    residual = t_A.mH @ (B - A @ X)
    if m < n:
        back = t_A.mH @ (P.mH @ X)
        along = P @ (P.mH @ residual - t_A @ X) + back - P @ (A @ back)
    else:
        slope = P @ t_A
        back = slope.mH @ X
        along = (P @ P.mH) @ residual - slope @ X + back - (P @ A) @ back
    return along if t_B is None else along + P @ t_B, None, None


linalg_lstsq.jvp(_lstsq_along)


# -- with residuals ---------------------------------------------------------------------------------------------------
class LeastSquares(NamedTuple):
    """The solution; the sums of squared residuals, rank, and singular values, if the driver computes them."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _is_vector(a: Ints, b: Ints) -> bool:
    """Return whether b has the shape of a batch of vectors."""
    return len(b) == 1 or a[:-1] == b


@by
def _least_squares_shapes(input: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> Any:
    A, B = shape_of(input), shape_of(b)
    if len(A) < 2:
        raise RuntimeError(f"{NAME}: input must have at least 2 dimensions.")
    if not B:
        raise RuntimeError(f"{NAME}: other must have at least 1 dimension.")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if input.dtype is not b.dtype:
        raise RuntimeError(
            f"{NAME}: Expected input and other to have the same dtype, but got input's dtype {input.dtype.title} and "
            f"other's dtype {b.dtype.title}"
        )
    if not 0 <= len(A) - len(B) <= 1:
        raise RuntimeError(
            f"{NAME}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    side = -1 if _is_vector(A, B) else -2
    if B[side] != A[-2]:
        raise RuntimeError(f"{NAME}: input.size(-2) should match other.size({side})")
    m, n = A[-2:]
    if m > n and driver in ("gelsd", "gelss"):  # there are residuals if all matrices have full rank
        return None
    columns = () if side == -1 else B[-1:]
    batch = broadcast_shapes(A[:-2], B[:side])
    residuals = (*batch, *columns) if m > n and driver == "gels" else (0,)
    values = (*batch, min(m, n)) if driver in ("gelsd", "gelss") and min(m, n) else (0,)
    return (*batch, n, *columns), residuals, (0,) if driver == "gels" else batch, values


@operator(
    _least_squares_shapes,
    promote=unpromoted,
    result=(same, real_part, index, real_part),
    data_dependent=True,
    public=False,
    out=True,
)
def linalg_lstsq_with_residuals(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """Return ``(solution, residuals, rank, singular_values)`` of min ‖input X - b‖, for (…, m, n) and (…, m, k) or (…,
    m).

    ``driver``: ``"gelsy"`` (default; pivoted QR), ``"gels"`` (QR, full rank), ``"gelsd"``, ``"gelss"`` (singular
    values). Singular values up to ``rcond`` times the largest are treated as zero (default: epsilon times the longer
    side). Residuals are empty unless m > n, the rank is full, and the driver is not ``"gelsy"``, as in PyTorch.
    """
    _least_squares_shapes(linalg_lstsq_with_residuals, (input, b, rcond, driver))
    driver = driver or "gelsy"
    vector = _is_vector(shape_of(input), shape_of(b))
    m, n = input.shape[-2:]
    if rcond is None:
        rcond = finfo(input.dtype).eps * max(m, n)
    B = b.unsqueeze(-1) if vector else b
    solution, rank, values = linalg_lstsq(input, B, float(rcond), driver)
    empty = values.new_empty((0,))
    residuals = empty
    if m > n and (driver == "gels" or (driver != "gelsy" and not bool((rank != n).any()))):
        size = (input @ solution - B).abs()
        residuals = (size * size).sum(-2)
        residuals = residuals.squeeze(-1) if vector else residuals
    return LeastSquares(
        solution.squeeze(-1) if vector else solution,
        residuals,
        rank.new_empty((0,)) if driver == "gels" else rank,
        values if values.shape[-1] else empty,
    )


lstsq = overloads("linalg_lstsq", linalg_lstsq_with_residuals, namespace="linalg")
