"""Shape and dtype rules that functions of matrices share, and the errors of factorizations that fail.

All texts are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.arguments import kind_of
from candelabra._layout import broadcast_shapes
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING, dtype, int32
from candelabra.errors import LinAlgError

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Ints = tuple[int, ...]

SINGULAR_MATRIX: Final = (
    "The diagonal element {code} is zero, the inversion could not be completed because the input matrix is singular."
)
SINGULAR_SYSTEM: Final = "The solver failed because the input matrix is singular."
NOT_POSITIVE_DEFINITE: Final = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{code} is not positive-definite)."
)
ZERO_PIVOT: Final = (
    "U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
    "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)
ZERO_BLOCK: Final = "D[{code},{code}] is exactly zero, ldl_solve would divide by it."


def check_info(info: Tensor, name: str, reason: str) -> None:
    """Raise ``LinAlgError`` for the first info of a batch that is not 0; ``reason`` is one of the texts above."""
    raise_if_nonzero(info, f"{name}: {{element}}{reason}", LinAlgError)


def check_tensor(name: str, A: Any) -> None:
    """Raise ``TypeError`` if the first argument of a function that is not an operator is not a tensor."""
    if not hasattr(A, "_payload"):
        raise TypeError(f"{name}(): argument 'A' (position 1) must be Tensor, not {kind_of(A)}")


# -- dtypes -----------------------------------------------------------------------------------------------------------
def info_dtype(d: dtype) -> dtype:
    """Return the dtype of LAPACK's pivots and infos."""
    return int32


def floating(name: str, *, half: bool = False) -> Callable[[dtype], dtype]:
    """Return the promotion of a function of floating and complex tensors, of at least 32 bits unless ``half``."""

    def promote(d: dtype) -> dtype:
        if d.category < FLOATING:
            raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {d.title}")
        if not half and d.is_half:
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {d.title}")
        return d

    return promote


# -- shapes -----------------------------------------------------------------------------------------------------------
def check_matrix(name: str, shape: Ints, argument: str = "A") -> None:
    """Raise ``RuntimeError`` for fewer than two dims."""
    if len(shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(name: str, shape: Ints) -> None:
    """Raise ``RuntimeError`` for fewer than two dims, and for matrices that are not square."""
    check_matrix(name, shape)
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )


def check_system(name: str, a: Ints, b: Ints, left: bool = True) -> Ints:
    """Return the shape of X with A X = B, or X A = B. Raise ``RuntimeError`` for incompatible shapes."""
    check_square(name, a)
    check_matrix(name, b, "B")
    if a[-1] != b[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


def _rule(check: Callable[[str, Ints], None]) -> Callable[..., Any]:
    def of(name: str, *results: Callable[[Ints], Ints]) -> Callable[..., Any]:
        def rule(A: Tensor, *_: Any) -> Any:
            shape = shape_of(A)
            check(name, shape)
            shapes = tuple(result(shape) for result in results)
            return shapes if len(shapes) > 1 else shapes[0]

        return by(rule)

    return of


square = _rule(check_square)
"""The rule of a function of square matrices: ``square("linalg.eig", vector, matrix)``. The functions below give the
shape of each result from the shape of the matrices."""
matrices = _rule(check_matrix)
"""As :func:`square`, for matrices of any size."""


def matrix(shape: Ints) -> Ints:
    """Return the shape of a matrix of the same size for each matrix."""
    return shape


def vector(shape: Ints) -> Ints:
    """Return the shape of a vector for each square matrix, with a number per row."""
    return shape[:-1]


def scalar(shape: Ints) -> Ints:
    """Return the shape of a number for each matrix."""
    return shape[:-2]


def diagonal(shape: Ints) -> Ints:
    """Return the shape of the diagonal of each matrix."""
    return (*shape[:-2], min(shape[-2:]))
