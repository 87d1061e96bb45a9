"""Products of matrices and vectors: :func:`candelabra.matmul`, and the products for a fixed number of dims."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.shapes.permuting import transpose
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


# -- the matrix product -----------------------------------------------------------------------------------------------
@by
def _matmul_shape(input: Tensor, other: Tensor) -> tuple[int, ...]:
    a, b = shape_of(input), shape_of(other)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if left[-1] != right[-2]:
        if len(a) == 1 and len(b) == 1:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of "
                f"elements, but got {a[0]} and {b[0]} elements respectively"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})"
        )
    batch = broadcast_shapes(left[:-2], right[:-2])
    return (*batch, *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ()))


@operator(_matmul_shape, aliases=("linalg.matmul",), autocast="lower")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product over the last two dims, batch dims broadcast; 1-d arguments are row and column
    vectors.

    The products may be added in any order. An element that is a sum of n products has an error of at most
    ``n * u * sum(abs(a) * abs(b))``, where u is the unit roundoff of the dtype, 2**-24 for float32: that of a
    sequential sum (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 3.1). Half types are multiplied
    and added in float32 and rounded once. Integers wrap around.
    """
    ...


def _matmul_input(g: Tensor, input_spec: Any, other: Tensor) -> Tensor:
    rank, other_rank = len(input_spec.shape), len(other._payload.shape)
    other = other.conj()
    if other_rank == 1:  # (…, n, k) @ (k)
        return g * other if rank == 1 else g.unsqueeze(-1) * other
    right = transpose.canonical(other, other_rank - 2, other_rank - 1)
    if rank == 1:
        return _sum_to_rank(matmul(g.unsqueeze(-2), right).squeeze(-2), 1)
    return matmul.canonical(g, right)


def _matmul_other(g: Tensor, input: Tensor, other_spec: Any) -> Tensor:
    rank, other_rank = len(input._payload.shape), len(other_spec.shape)
    input = input.conj()
    if rank == 1:  # (k) @ (…, k, m)
        if other_rank == 1:
            return g * input
        return input.unsqueeze(-1) * g.unsqueeze(-2)
    if other_rank == 1:
        return _sum_to_rank((input * g.unsqueeze(-1)), 1)
    return matmul.canonical(transpose.canonical(input, rank - 2, rank - 1), g)


def _sum_to_rank(x: Tensor, rank: int) -> Tensor:
    lead = len(x.shape) - rank
    return x.sum(tuple(range(lead))) if lead else x


matmul.vjp(input=_matmul_input, other=_matmul_other)


# -- checks of products for a fixed number of dims ---------------------------------------------------------------------
C_NAMES = {
    "Float": "float", "Double": "double", "Int": "int", "Long": "long", "Short": "short", "Byte": "unsigned char",
    "Char": "signed char", "Half": "c10::Half", "BFloat16": "c10::BFloat16", "Bool": "bool",
    "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


def check_same_dtype(first: Tensor, second: Tensor) -> None:
    """Raise ``RuntimeError`` for different dtypes: like PyTorch's, matrix products do not promote."""
    if first.dtype is not second.dtype:
        a, b = (t.dtype.title for t in (first, second))
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {C_NAMES.get(a, a)} != {C_NAMES.get(b, b)}"
        )


def matrix_product_shape(mat1: Tensor, mat2: Tensor, first: str = "mat1") -> tuple[int, int]:
    """Return the shape of ``mat1 @ mat2``; both must be matrices with matching sizes."""
    a, b = shape_of(mat1), shape_of(mat2)
    for name, shape in ((first, a), ("mat2", b)):
        if len(shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(shape)}-D tensor")
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")
    check_same_dtype(mat1, mat2)
    return a[0], b[1]


def batch_product_shape(batch1: Tensor, batch2: Tensor) -> tuple[int, int, int]:
    """Return the shape of ``batch1 @ batch2``; both must be batches of matrices with matching sizes."""
    a, b = shape_of(batch1), shape_of(batch2)
    for name, shape in (("batch1", a), ("batch2", b)):
        if len(shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor, got {len(shape)}-D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: "
            f"[{b[0]}, {b[1]}]."
        )
    check_same_dtype(batch1, batch2)
    return a[0], a[1], b[2]


def matrix_vector_shape(input: Any, mat: Tensor, vec: Tensor) -> tuple[int]:
    """Return the shape of ``mat @ vec``; errors show the shape of ``input`` (``mv``: of the result)."""
    a, b = shape_of(mat), shape_of(vec)
    rank = 1 if input is None else len(shape_of(input))
    if len(a) != 2 or len(b) != 1 or rank > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {rank}, {len(a)}, {len(b)}")
    size = a[0] if input is None or not rank else shape_of(input)[0]
    if a[1] != b[0] or size not in (a[0], 1):
        raise RuntimeError(f"size mismatch, got input ({size}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    check_same_dtype(mat, vec)
    return (a[0],)


# -- products ---------------------------------------------------------------------------------------------------------
@operator(
    by(lambda input, mat2: matrix_product_shape(input, mat2, "self")),
    promote=unpromoted,
    accepts="numeric",
    autocast="lower",
)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of an (n, k) and a (k, m) matrix, of one dtype. Raises ``RuntimeError`` if they do not fit."""
    matrix_product_shape(input, mat2, "self")
    return matmul(input, mat2)


@operator(by(batch_product_shape), promote=unpromoted, accepts="numeric", autocast="lower")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices, (b, n, k) and (b, k, m), of one dtype; nothing broadcasts."""
    batch_product_shape(input, mat2)
    return matmul(input, mat2)


@operator(
    by(lambda input, vec: matrix_vector_shape(None, input, vec)),
    promote=unpromoted,
    accepts="numeric",
    autocast=Autocast("lower", "preserved"),
)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of an (n, k) matrix and a vector of k elements, of one dtype."""
    matrix_vector_shape(None, input, vec)
    return matmul(input, vec)


def _vectors(name: str, input: Tensor, other: Tensor) -> tuple[int, ...]:
    a, b = shape_of(input), shape_of(other)
    if len(a) != 1 or len(b) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if input.dtype is not other.dtype:
        first, second = (t.dtype.title for t in (input, other))
        raise RuntimeError(f"{name} : expected both vectors to have same dtype, but found {first} and {second}")
    if a != b:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of "
            f"elements, but got {a[0]} and {b[0]} elements respectively"
        )
    return ()


@operator(
    by(lambda *args: _vectors("dot", *args)),
    promote=unpromoted,
    accepts="numeric",
    autocast=Autocast("widest", "preserved"),
)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the sum of the products of two vectors' elements; neither is conjugated, unlike in :func:`vdot`."""
    _vectors("dot", input, tensor)
    return matmul(input, tensor)


@operator(
    by(lambda *args: _vectors("dot", *args)),
    promote=unpromoted,
    accepts="numeric",
    autocast=Autocast("widest", "preserved"),
)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the dot product of two vectors, the first one conjugated."""
    _vectors("dot", input, other)
    return matmul(input.conj(), other)


@by
def _outer_shape(input: Tensor, vec2: Tensor) -> tuple[int, int]:
    for name, vector in (("self", input), ("vec2", vec2)):
        if len(shape_of(vector)) != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {len(shape_of(vector))}-D")
    return shape_of(input)[0], shape_of(vec2)[0]


@operator(_outer_shape, aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return every product of elements of two vectors: ``out[i, j] = input[i] * vec2[j]``."""
    _outer_shape(outer, (input, vec2))
    return input.unsqueeze(1) * vec2


@by
def _inner_shape(input: Tensor, other: Tensor) -> tuple[int, ...]:
    a, b = shape_of(input), shape_of(other)
    if not a or not b:
        return a or b
    if a[-1] != b[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a)} and {list(b)}"
        )
    return a[:-1] + b[:-1]


@operator(_inner_shape, accepts="numeric")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the dot products of all vectors along the last dims, or the product if either is a 0-d tensor.

    The shape is ``input.shape[:-1] + other.shape[:-1]``.
    """
    shape = _inner_shape(inner, (input, other))
    a, b = shape_of(input), shape_of(other)
    if not a or not b:
        return input * other
    rows, columns = (x.reshape((prod(shape_of(x)[:-1]), a[-1])) for x in (input, other))
    return matmul(rows, columns.t()).reshape(shape)
