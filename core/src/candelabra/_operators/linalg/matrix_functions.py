"""Powers and exponentials of matrices."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._dispatch.levels import without_levels
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.inverses import linalg_inv
from candelabra._operators.linalg.rules import check_square, floating, matrix, square
from candelabra._operators.shapes.joining import cat
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


# -- powers -----------------------------------------------------------------------------------------------------------
@by
def _power_shape(A: Tensor, n: int) -> tuple[int, ...]:
    check_square("linalg.matrix_power", shape_of(A))
    return shape_of(A)


@operator(_power_shape, namespace="linalg")
def linalg_matrix_power(A: Tensor, n: int) -> Tensor:
    """Raise square matrices to an integer power by repeated squaring; negative powers are those of the inverse.

    Raises ``LinAlgError`` for a negative power of a singular matrix.
    """
    _power_shape(linalg_matrix_power, (A, n))
    exponent = abs(n.__index__())
    if exponent == 0:
        return new_eye(A, A.shape[-1], A.shape[-1]).expand(A.shape).clone()
    base = A if n > 0 else linalg_inv(A)
    result: Tensor | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result @ base
        exponent >>= 1
        if exponent:
            base = base @ base
    assert result is not None  # the exponent was not 0
    return result.clone() if result is A else result


@operator(_power_shape)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Raise square matrices to an integer power; see ``linalg.matrix_power``."""
    return linalg_matrix_power(input, n)


# -- the exponential --------------------------------------------------------------------------------------------------
TAYLOR = 18
"""The degree of the polynomial."""
NEAR = {"float32": 3.01, "complex64": 3.01, "float64": 1.09, "complex128": 1.09}
"""The norm below which the error of the polynomial is less than the epsilon of a dtype: each squaring doubles rounding
errors, so there are as few as possible. Bader, Blanes and Casas, Computing the matrix exponential with an optimized
Taylor polynomial, 2019, table 2.
"""


@operator(
    square("linalg.matrix_exp", matrix),
    promote=floating("linalg.matrix_exp", half=True),
    namespace="linalg",
    method="matrix_exp",
    aliases=("matrix_exp",),
    data_dependent=True,
)
def linalg_matrix_exp(input: Tensor) -> Tensor:
    """``1 + A + A²/2! + …`` for square matrices, by scaling and squaring: A is halved repeatedly, and the sum of the
    series is squared as often.
    """
    check_square("linalg.matrix_exp", shape_of(input))
    n = input.shape[-1]
    if not input.numel():
        return input.clone()
    if input.dtype.is_half:  # squaring doubles the rounding errors, and half types overflow early
        return linalg_matrix_exp(input.float()).to(input.dtype)
    size = input.abs().sum(-2).amax(-1)
    halvings = (size / NEAR[input.dtype.name]).log2().ceil().clamp_min(0)
    halvings = halvings.masked_fill(halvings.isfinite().logical_not(), 0)  # the result is not finite for any number
    squarings = int(without_levels(halvings).amax().item())  # those of the matrix with the largest norm
    x = input if not squarings else input * (-halvings).exp2().unsqueeze(-1).unsqueeze(-1)
    out = _polynomial(x, new_eye(x, n, n))
    for step in range(squarings):
        out = where((halvings > step).unsqueeze(-1).unsqueeze(-1), out @ out, out)
    return out


def _polynomial(x: Tensor, one: Tensor) -> Tensor:
    """Return the Taylor polynomial by Paterson and Stockmeyer's scheme: seven products for degree 18."""
    powers = [one, x]
    while len(powers) < 5:
        powers.append(powers[-1] @ x)
    fourth = powers[4]
    out: Tensor | None = None
    for start in range(TAYLOR - TAYLOR % 4, -1, -4):
        terms = [powers[j] * (1 / math.factorial(start + j)) for j in range(4) if start + j <= TAYLOR]
        block = terms[0]
        for term in terms[1:]:
            block = block + term
        out = block if out is None else out @ fourth + block
    assert out is not None  # the range is not empty
    return out


def _matrix_exp_back(g: Tensor, input: Tensor) -> Tensor:
    # exp of the block matrix (Aᴴ g; 0 Aᴴ) has the adjoint of the derivative, applied to g, in its upper right corner
    # (Najfeld and Havel, Derivatives of the matrix exponential and their computation, 1995).
    n = input.shape[-1]
    adjoint = input.mH
    above = cat([adjoint, g], -1)
    below = cat([zeroed(g), adjoint], -1)
    return linalg_matrix_exp(cat([above, below], -2)).narrow(-2, 0, n).narrow(-1, n, n)


linalg_matrix_exp.vjp(input=_matrix_exp_back)
