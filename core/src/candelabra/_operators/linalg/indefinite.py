"""The factorization A = L D Lᵀ of symmetric (or Lᴴ of Hermitian) matrices that need not be positive-definite.

Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems, 1977.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import broadcast_shapes
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import (
    batch,
    check_info,
    check_matrix,
    check_square,
    factored,
    info,
    square,
    whole,
)
from candelabra._records.callables import public
from candelabra._records.promotion import same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

NAME = "torch.linalg.ldl_factor_ex"


class BlockFactors(NamedTuple):
    """L and the blocks of D in one matrix, and LAPACK's pivots: negative ones mark blocks of two rows."""

    LD: Tensor
    pivots: Tensor


class BlockFactorsAndInfo(NamedTuple):
    """As :class:`BlockFactors`, with 0 or the place of a block that is zero."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@operator(
    square(NAME, whole, lambda shape: shape[:-1], batch),
    promote=factored(NAME),
    result=(same, info, info),
    public=False,
    method=False,
)
def linalg_ldl_factor_ex(input: Tensor, hermitian: bool) -> BlockFactorsAndInfo:
    """The factorization as LAPACK leaves it, of the lower triangle."""
    ...


linalg_ldl_factor_ex.no_gradient("the derivative for 'linalg_ldl_factor_ex' is not implemented")


@by
def _solution_shape(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> tuple[int, ...]:
    a, b = shape_of(LD), shape_of(B)
    check_square("torch.linalg.ldl_solve", a)
    check_matrix("torch.linalg.ldl_solve", b, "B")
    if a[-1] != b[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {a[-1]} by {a[-1]} but each b "
            f"matrix is {b[-2]} by {b[-1]}"
        )
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


@operator(_solution_shape, promote=factored("torch.linalg.ldl_solve"), namespace="linalg")
def linalg_ldl_solve(LD: Tensor, pivots: Index, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, where ``(LD, pivots)`` is what :func:`ldl_factor` made of A."""
    ...


linalg_ldl_solve.no_gradient("the derivative for 'linalg_ldl_solve' is not implemented")


@public(namespace="linalg")
@takes_tensors("linalg_ldl_factor_ex")
def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> BlockFactorsAndInfo:
    """As :func:`ldl_factor`, with an int32 info per matrix: 0, or which block of D is zero."""
    found = linalg_ldl_factor_ex(input, hermitian)
    if check_errors:
        check_info(NAME, found.info, _zero_block)
    return delivered("linalg.ldl_factor_ex", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_ldl_factor")
def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> BlockFactors:
    """``(LD, pivots)`` of symmetric (``hermitian``: Hermitian) matrices (…, n, n), of which the lower triangle is read.

    ``LinAlgError`` where a block of D is exactly zero: :func:`ldl_solve` would divide by it.
    """
    found = linalg_ldl_factor_ex(input, hermitian)
    check_info("torch.linalg.ldl_factor", found.info, _zero_block)
    return delivered("linalg.ldl_factor", BlockFactors(found.LD, found.pivots), out)


def _zero_block(code: int) -> str:
    return f"D[{code},{code}] is exactly zero, ldl_solve would divide by it."
