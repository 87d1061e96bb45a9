"""What linear algebra asks of its arguments, and what is said when a factorization breaks down, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.promote import title
from candelabra._layout import broadcast_shapes
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING, dtype, int32
from candelabra.errors import LinAlgError

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Ints = tuple[int, ...]


def info(d: dtype) -> dtype:
    """The dtype of what LAPACK reports: pivots and infos."""
    return int32


def factored(name: str, low: bool = False) -> Callable[[dtype], dtype]:
    """The promotion of a factorization: floating or complex numbers, of 32 bits and more unless ``low``."""

    def floating(d: dtype) -> dtype:
        if d.category < FLOATING:
            raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {title(d)}")
        if not low and d.name in ("float16", "bfloat16"):
            raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {title(d)}")
        return d

    return floating


def check_floating(name: str, d: dtype) -> None:
    """RuntimeError for integers and bools."""
    factored(name, low=True)(d)


def check_matrix(name: str, shape: Ints, argument: str = "A") -> None:
    """At least two dims."""
    if len(shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(name: str, shape: Ints) -> None:
    """At least two dims, the last two equal."""
    check_matrix(name, shape)
    if shape[-1] != shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} "
                           "matrices")  # fmt: skip


def _family(check: Callable[[str, Ints], None]) -> Callable[..., Any]:
    def of(name: str, *results: Callable[[Ints], Ints]) -> Callable[..., Any]:
        def rule(A: Tensor, *_: Any) -> Any:
            shape = shape_of(A)
            check(name, shape)
            shapes = tuple(result(shape) for result in results)
            return shapes if len(shapes) > 1 else shapes[0]

        return by(rule)

    return of


square = _family(check_square)
"""The rule of shape of a function of square matrices; ``results`` say the shapes that come of the input's."""
matrices = _family(check_matrix)
"""As :func:`square` for matrices of any size."""


def whole(shape: Ints) -> Ints:
    """The matrix's own shape."""
    return shape


def batch(shape: Ints) -> Ints:
    """One number per matrix."""
    return shape[:-2]


def least(shape: Ints) -> Ints:
    """As many numbers per matrix as its smaller side."""
    return (*shape[:-2], min(shape[-2:]))


def check_fit(name: str, a: Ints, b: Ints, left: bool) -> Ints:
    """That A X = B (or X A = B) makes sense; the shape of X."""
    check_square(name, a)
    check_matrix(name, b, "B")
    if a[-1] != b[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} ({a[-2]}x{a[-1]} and "
                           f"{b[-2]}x{b[-1]})")  # fmt: skip
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


def check_info(name: str, info: Tensor, breakdown: Callable[[int], str]) -> None:
    """LinAlgError where an info is not 0; of a batch the first. ``breakdown`` puts an info into words."""
    if not bool(info.any()):
        return
    infos = info.reshape((info.numel(),)).tolist()
    position = next(i for i, code in enumerate(infos) if code)
    element = f"(Batch element {position}): " if info.ndim else ""
    raise LinAlgError(f"{name}: {element}{breakdown(infos[position])}")


def singular_inverse(code: int) -> str:
    """Why there is no inverse."""
    return (f"The diagonal element {code} is zero, the inversion could not be completed because the input matrix is "
            "singular.")  # fmt: skip


def singular_system(code: int) -> str:
    """Why there is no solution."""
    return "The solver failed because the input matrix is singular."


def not_positive(code: int) -> str:
    """Why there is no Cholesky factor."""
    return ("The factorization could not be completed because the input is not positive-definite (the leading minor of "
            f"order {code} is not positive-definite).")  # fmt: skip


def zero_pivot(code: int) -> str:
    """Why an LU factorization is of no use to a solver."""
    return (
        f"U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
        "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )
