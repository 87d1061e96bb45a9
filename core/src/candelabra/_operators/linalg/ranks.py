"""Ranks of matrices, and the tolerance up to which a singular value is treated as zero."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.eigenvalues import linalg_eigvalsh
from candelabra._operators.linalg.factorizations.svd import linalg_svdvals
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import index, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import finfo

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor

Ints = tuple[int, ...]


def check_tolerances(name: str, **tolerances: Any) -> None:
    """Raise ``RuntimeError`` for complex tensors."""
    for word, value in tolerances.items():
        if hasattr(value, "_payload") and value.is_complex():
            raise RuntimeError(f"{name}: {word} tensor of complex type is not supported. Got {value.dtype.title}")


def as_tolerance(A: Tensor, value: Tensor | Number | None) -> Tensor | None:
    """Return a tolerance as a tensor on the device of A."""
    if value is None or hasattr(value, "_payload"):
        return value  # type: ignore[return-value]
    return new_full(A, (), value, dtype=A.dtype.to_real())


def tolerance(A: Tensor, largest: Tensor, atol: Tensor | None, rtol: Tensor | None) -> Tensor:
    """Return the bound up to which singular values are treated as zero: ``max(atol, rtol * largest)``.

    By default ``rtol`` is the dtype's epsilon times the longer side, and 0 where an ``atol`` above 0 is given.
    """
    if rtol is None:
        default = finfo(A.dtype).eps * max(A.shape[-2:])
        bound = largest * default
        return bound if atol is None else where(atol > 0, atol, bound)
    bound = largest * rtol
    return bound if atol is None else bound.maximum(atol)


@by
def _rank_shape(input: Tensor, tol: Any, hermitian: bool, atol: Any, rtol: Any) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    check_tolerances("torch.linalg.matrix_rank", atol=atol if tol is None else tol, rtol=rtol)
    return shape[:-2]


@operator(_rank_shape, promote=unpromoted, result=index, namespace="linalg", autocast=Autocast(host="float32"))
def linalg_matrix_rank(
    input: Tensor,
    tol: Tensor | Number | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | Number | None = None,
    rtol: Tensor | Number | None = None,
) -> Tensor:
    """Return the number of singular values (``hermitian``: of eigenvalues) that exceed ``max(atol, rtol * largest)``,
    in int64.

    Tolerances are numbers, or tensors that broadcast to the batch. The default ``rtol`` is the dtype's epsilon times
    the longer side. ``tol`` is the older name of ``atol`` with an ``rtol`` of 0.
    """
    _rank_shape(linalg_matrix_rank, (input, tol, hermitian, atol, rtol))
    if tol is not None:
        atol, rtol = tol, 0.0
    input = input.detach()
    values = linalg_eigvalsh(input).abs() if hermitian else linalg_svdvals(input)
    if not values.shape[-1]:
        return values.sum(-1).long()
    bound = tolerance(input, values.amax(-1), as_tolerance(input, atol), as_tolerance(input, rtol))
    return (values > bound.unsqueeze(-1)).sum(-1)
