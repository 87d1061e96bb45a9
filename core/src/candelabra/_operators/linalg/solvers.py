"""Linear systems.

With A X = B:  dX = A⁻¹ (dB - dA X),  so gB = A⁻ᴴ g and gA = -gB Xᴴ.
"""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import wrap_dim
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg import rules
from candelabra._operators.shapes.joining import cat
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.typing import Tensor

Ints = tuple[int, ...]


class Solution(NamedTuple):
    """The solutions, and per system 0 or the index (from 1) of the pivot that is zero."""

    result: Tensor
    info: Tensor


@by
def _matrix_solution(A: Tensor, B: Tensor) -> tuple[Ints, Ints]:
    shape = rules.check_system("linalg.solve", shape_of(A), shape_of(B))
    return shape, shape[:-2]


@operator(_matrix_solution, promote=rules.floating("linalg.solve"), result=(same, rules.info_dtype), public=False)
def linalg_solve_ex(A: Tensor, B: Tensor) -> Solution:
    """Return X with A X = B for matrices (…, n, n) and (…, n, k), by LU factorization, and the index (from 1) of a zero
    pivot.
    """
    ...


def _solve_back(
    needs: tuple[bool, bool], A: Tensor, result: Tensor, g_result: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    to_b = linalg_solve_ex(A.mH, g_result).result
    return -(to_b @ result.mH) if needs[0] else None, to_b if needs[1] else None


linalg_solve_ex.vjp(("A", "B"), _solve_back)


def _solve_along(A: Tensor, result: Tensor, t_A: Tensor | None = None, t_B: Tensor | None = None) -> Any:
    # A X = B, so A dX = dB - dA X.
    change: Any = t_B if t_A is None else -(t_A @ result) if t_B is None else t_B - t_A @ result
    return linalg_solve_ex(A, change).result, None


linalg_solve_ex.jvp(_solve_along)


def _is_vector(a: Ints, b: Ints) -> bool:
    """Return whether B is a batch of vectors, by PyTorch's rule: one dim, or A's shape without its last."""
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


@by
def _system_solution(A: Tensor, B: Tensor, left: bool, *_: Any) -> tuple[Ints, Ints]:
    a, b = shape_of(A), shape_of(B)
    rules.check_square("linalg.solve", a)
    if not _is_vector(a, b):
        shape = rules.check_system("linalg.solve", a, b, left)
        return shape, shape[:-2]
    if not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    shape = rules.check_system("linalg.solve", a, (*b, 1))
    return shape[:-1], shape[:-2]


def _solved(A: Tensor, B: Tensor, left: bool) -> Solution:
    _system_solution(None, (A, B, left))
    if _is_vector(shape_of(A), shape_of(B)):
        solution = linalg_solve_ex(A, B.unsqueeze(-1))
        return Solution(solution.result.squeeze(-1), solution.info)
    if left:
        return linalg_solve_ex(A, B)
    solution = linalg_solve_ex(A.mT, B.mT)
    return Solution(solution.result.mT, solution.info)


@operator(
    _system_solution, promote=rules.floating("linalg.solve"), result=(same, rules.info_dtype), public=False, out=True
)
def linalg_solve_ex_system(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Solution:
    """Return :func:`candelabra.linalg.solve` with an int32 info per system: 0, or the index (from 1) of a zero pivot.

    Raises ``LinAlgError`` for a singular matrix if ``check_errors``.
    """
    solution = _solved(A, B, left)
    if check_errors:
        rules.check_info(solution.info, "torch.linalg.solve_ex", rules.SINGULAR_SYSTEM)
    return solution


solve_ex = overloads("linalg_solve_ex", linalg_solve_ex_system, namespace="linalg")


@operator(
    by(lambda *args: _system_solution(None, args)[0]),
    promote=rules.floating("linalg.solve"),
    namespace="linalg",
    autocast=Autocast(host="float32"),
)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A X = B (X A = B with ``left=False``) for A (…, n, n) and B (…, n, k), (…, n) or (n).

    Raises ``LinAlgError`` if a matrix is singular.
    """
    solution = _solved(A, B, left)
    rules.check_info(solution.info, "torch.linalg.solve", rules.SINGULAR_SYSTEM)
    return solution.result


# -- triangular systems -----------------------------------------------------------------------------------------------
TRIANGULAR = rules.floating("linalg.solve_triangular")
BLOCK = 128
"""Triangles of more rows are multiplied block by block."""


@by
def _triangular_shape(A: Tensor, B: Tensor, *_: Any) -> Ints:
    return rules.check_system("linalg.solve_triangular", shape_of(A), shape_of(B))


@operator(_triangular_shape, promote=TRIANGULAR, public=False)
def triangular_solution(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """Return X with A X = B, where only one triangle of A is read; a zero on the diagonal raises no error.

    The body is for devices without a kernel: it passes only the triangle to a general solver.
    """
    _triangular_shape(triangular_solution, (A, B))  # errors of the solver would name another function
    triangle = A.triu(int(unitriangular)) if upper else A.tril(-int(unitriangular))
    if unitriangular:
        triangle = triangle + new_eye(A, A.shape[-1], A.shape[-1])
    return linalg_solve_ex(triangle, B).result


def _triangular_back(
    needs: tuple[bool, bool], A: Tensor, out: Tensor, g: Tensor, upper: bool, unitriangular: bool
) -> tuple[Tensor | None, Tensor | None]:
    # The gradient of a general system, restricted to the triangle of A that was read.
    to_b = triangular_solution(A.mH, g, not upper, unitriangular)
    if not needs[0]:
        return None, to_b
    to_a = -(to_b @ out.mH)
    return to_a.triu(int(unitriangular)) if upper else to_a.tril(-int(unitriangular)), to_b if needs[1] else None


triangular_solution.vjp(("A", "B"), _triangular_back)


def _triangular_along(
    A: Tensor, out: Tensor, upper: bool, unitriangular: bool, t_A: Tensor | None = None, t_B: Tensor | None = None
) -> Tensor:
    change: Any = t_B
    if t_A is not None:
        part = _triangle_times(t_A, out, upper, int(unitriangular))
        change = -part if t_B is None else t_B - part
    found: Tensor = triangular_solution(A, change, upper, unitriangular)
    return found


def _triangle_times(A: Tensor, x: Tensor, upper: bool, offset: int) -> Tensor:
    """Return ``A.triu(offset) @ x``, or ``A.tril(-offset) @ x``. Large triangles are halved: a quarter of A is zero."""
    n = A.shape[-1]
    if n <= BLOCK:
        return (A.triu(offset) if upper else A.tril(-offset)) @ x
    half, rest = n // 2, n - n // 2
    top, bottom = A.narrow(-2, 0, half), A.narrow(-2, half, rest)
    x_top, x_bottom = x.narrow(-2, 0, half), x.narrow(-2, half, rest)
    first = _triangle_times(top.narrow(-1, 0, half), x_top, upper, offset)
    second = _triangle_times(bottom.narrow(-1, half, rest), x_bottom, upper, offset)
    if upper:
        return cat([first + top.narrow(-1, half, rest) @ x_bottom, second], -2)
    return cat([first, bottom.narrow(-1, 0, half) @ x_top + second], -2)


triangular_solution.jvp(_triangular_along)


@by
def _triangular_solution_shape(A: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> Ints:
    TRIANGULAR(A.dtype)
    return rules.check_system("linalg.solve_triangular", shape_of(A), shape_of(B), left)


@operator(_triangular_solution_shape, promote=unpromoted, namespace="linalg")
def linalg_solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X with A X = B (X A = B with ``left=False``) for triangular A (…, n, n) and B (…, n, k).

    Only the triangle that ``upper`` names is read; if ``unitriangular``, its diagonal is treated as ones.
    """
    _triangular_solution_shape(linalg_solve_triangular, (A, B, upper, left, unitriangular))
    if left:
        return triangular_solution(A, B, upper, unitriangular)
    return triangular_solution(A.mT, B.mT, not upper, unitriangular).mT


class TriangularSolution(NamedTuple):
    """The solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@by
def _older_shapes(b: Tensor, A: Tensor, *_: Any) -> tuple[Ints, Ints]:
    for name, shape in (("b", shape_of(b)), ("A", shape_of(A))):
        if len(shape) < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {len(shape)} "
                "dimensions instead"
            )
    solved = rules.check_system("triangular_solve", shape_of(A), shape_of(b))
    return solved, (*solved[:-2], *shape_of(A)[-2:])


@operator(_older_shapes, promote=rules.floating("triangular_solve"), out=True, autocast=Autocast(host="float32"))
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolution:
    """Return ``(X, copy of A)`` with A X = b (Aᵀ X = b if ``transpose``): the older form of
    ``linalg.solve_triangular``.
    """
    _, shape = _older_shapes(triangular_solve, (b, A))
    solution = triangular_solution(A.mT if transpose else A, b, upper is not transpose, unitriangular)
    return TriangularSolution(solution, A.expand(shape).clone())


# -- tensors as matrices ----------------------------------------------------------------------------------------------
def _moved_to_end(shape: Ints, dims: Sequence[int] | None) -> Ints:
    """Return the permutation that moves some dims to the end."""
    moved = [wrap_dim(d, len(shape)) for d in dims or ()]
    return (*(d for d in range(len(shape)) if d not in moved), *moved)


@by
def _tensorsolve_shape(A: Tensor, B: Tensor, dims: Sequence[int] | None) -> Ints:
    a, rank = shape_of(A), len(shape_of(B))
    shape = tuple([a[d] for d in _moved_to_end(a, dims)])
    m, n = prod(shape[:rank]), prod(shape[rank:])
    if m != n:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {n} != {m}"
        )
    return shape[rank:]


@operator(
    _tensorsolve_shape, promote=rules.floating("linalg.solve"), namespace="linalg", autocast=Autocast(host="float32")
)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return X with ``tensordot(A, X, X.ndim) == B``; ``dims`` of A are moved to its end first.

    Raises ``LinAlgError`` if A, seen as a matrix, is singular.
    """
    shape = _tensorsolve_shape(linalg_tensorsolve, (A, B, dims))
    n = prod(shape)
    matrix = A.permute(_moved_to_end(shape_of(A), dims)).reshape((n, n))
    return linalg_solve(matrix, B.reshape((n,))).reshape(shape)
