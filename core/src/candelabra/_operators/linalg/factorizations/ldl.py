"""The factorization A = L D Lᵀ of symmetric (or Lᴴ of Hermitian) matrices that need not be positive-definite.

Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems, 1977.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._layout import broadcast_shapes
from candelabra._operators.linalg import rules
from candelabra._records.overloads import overloads
from candelabra._records.promotion import same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

NAME = "torch.linalg.ldl_factor_ex"
RULE = rules.square(NAME, rules.matrix, rules.vector, rules.scalar)


class BlockFactors(NamedTuple):
    """L and the blocks of D in one matrix, and LAPACK's pivots: negative ones mark blocks of two rows."""

    LD: Tensor
    pivots: Tensor


class BlockFactorsAndInfo(NamedTuple):
    """The fields of :class:`BlockFactors`, and 0 or the index (from 1) of a block that is zero."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@operator(RULE, promote=rules.floating(NAME), result=(same, rules.info_dtype, rules.info_dtype), public=False, out=True)
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: bool = False) -> BlockFactorsAndInfo:
    """Return :func:`candelabra.linalg.ldl_factor` with an int32 info per matrix: 0, or the index (from 1) of a zero
    block.
    """
    ...


linalg_ldl_factor_ex.no_gradient("the derivative for 'linalg_ldl_factor_ex' is not implemented")


@operator(RULE, promote=rules.floating(NAME), result=(same, rules.info_dtype, rules.info_dtype), public=False, out=True)
def linalg_ldl_factor_checked(input: Tensor, *, hermitian: bool = False, check_errors: bool) -> BlockFactorsAndInfo:
    """Raise ``LinAlgError`` if ``check_errors`` and a block of D is exactly zero."""
    factors = linalg_ldl_factor_ex(input, hermitian=hermitian)
    if check_errors:
        rules.check_info(factors.info, NAME, rules.ZERO_BLOCK)
    return factors


ldl_factor_ex = overloads("linalg_ldl_factor_ex", linalg_ldl_factor_ex, linalg_ldl_factor_checked, namespace="linalg")


@operator(
    rules.square(NAME, rules.matrix, rules.vector),
    promote=rules.floating(NAME),
    result=(same, rules.info_dtype),
    namespace="linalg",
    out=True,
)
def linalg_ldl_factor(input: Tensor, *, hermitian: bool = False) -> BlockFactors:
    """Return ``(LD, pivots)`` of symmetric (``hermitian``: Hermitian) matrices (…, n, n), of which the lower triangle
    is read.

    Raises ``LinAlgError`` if a block of D is exactly zero: :func:`candelabra.linalg.ldl_solve` would divide by it.
    """
    factors = linalg_ldl_factor_ex(input, hermitian=hermitian)
    rules.check_info(factors.info, "torch.linalg.ldl_factor", rules.ZERO_BLOCK)
    return BlockFactors(factors.LD, factors.pivots)


@by
def _solution_shape(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> tuple[int, ...]:
    a, b = shape_of(LD), shape_of(B)
    rules.check_square("torch.linalg.ldl_solve", a)
    rules.check_matrix("torch.linalg.ldl_solve", b, "B")
    if a[-1] != b[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {a[-1]} by {a[-1]} but each b "
            f"matrix is {b[-2]} by {b[-1]}"
        )
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


@operator(_solution_shape, promote=rules.floating("torch.linalg.ldl_solve"), namespace="linalg")
def linalg_ldl_solve(LD: Tensor, pivots: Index, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Return X with A X = B, where ``(LD, pivots)`` is the result of :func:`candelabra.linalg.ldl_factor` for A."""
    ...


linalg_ldl_solve.no_gradient("the derivative for 'linalg_ldl_solve' is not implemented")
