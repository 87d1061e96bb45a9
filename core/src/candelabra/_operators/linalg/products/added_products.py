"""Fused products and sums, ``beta * input + alpha * product``: ``addmm``, ``addmv``, ``addr``, ``baddbmm``, ``addbmm``.

They define derivatives, so that no intermediate tensor is saved and a device may implement each with one kernel.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_writable, rebind
from candelabra._keys import AUTOGRAD
from candelabra._layout import expanded_shape
from candelabra._operators.elementwise.arithmetic import addcmul
from candelabra._operators.linalg.products.matmul import (
    batch_product_shape,
    check_same_dtype,
    matmul,
    matrix_product_shape,
    matrix_vector_shape,
)
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, category_of_scalar

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Number, Tensor


def scaled(x: Tensor, factor: Number) -> Tensor:
    """Return ``x * factor``, or ``x`` itself if the factor is 1."""
    return x if factor == 1 and type(factor) is not bool else x * factor


def unscaled(g: Tensor, factor: Number) -> Tensor:
    """Return the adjoint of :func:`scaled`."""
    return g if factor == 1 else g * factor.conjugate()


def _factors(input: Tensor, *factors: Number) -> tuple[Number, ...]:
    """Return ``beta`` and ``alpha`` as numbers of the tensor's kind; for integer dtypes they are truncated, as in
    PyTorch.
    """
    category = input.dtype.category
    for name, factor in zip(("beta", "alpha"), factors):
        if isinstance(factor, complex) and category < COMPLEX:
            raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")
    return tuple(int(f.real) for f in factors) if category < FLOATING else factors


def _added(shape: Callable[..., tuple[int, ...]]) -> Callable[..., Any]:
    """Return the rule of a fused form: ``shape(input, a, b)`` is that of the product, to which ``input`` must
    broadcast.
    """

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
        input, a, b, beta, alpha = args
        product_shape = shape(input, a, b)
        check_same_dtype(input, a)
        _factors(input, beta, alpha)
        return _broadcast_to(input, product_shape)

    return rule


def _broadcast_to(input: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``shape``. Raise ``RuntimeError`` unless ``input`` broadcasts to it."""
    return expanded_shape(shape_of(input), shape)


def combined(input: Tensor, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return ``beta * input + alpha * product``. If beta is 0, ``input`` is ignored, so that its NaN is not
    propagated.
    """
    check_same_dtype(input, product)
    _broadcast_to(input, shape_of(product))
    product = scaled(product, alpha)
    return product if beta == 0 else scaled(input, beta) + product


def _along(
    op: Operator[..., Any], primals: tuple[Tensor, Tensor, Tensor], tangents: tuple[Tensor | None, ...], beta: Number,
    alpha: Number, out: Tensor,
) -> Any:  # fmt: skip
    """Return the tangent of a fused form: each product of a tangent is added to the terms before it."""
    input, a, b = primals
    t_input, t_a, t_b = tangents
    total = None if t_input is None or beta == 0 else t_input
    if t_a is None and t_b is None:
        return None if total is None else scaled(total, beta).expand(out.shape)
    if t_a is not None:
        total = op.canonical(input if total is None else total, t_a, b, 0 if total is None else beta, alpha)
        beta = 1
    if t_b is not None:
        total = op.canonical(input if total is None else total, a, t_b, 0 if total is None else beta, alpha)
    return total


@operator(
    _added(lambda _, a, b: matrix_product_shape(a, b)),
    promote=unpromoted,
    accepts="numeric",
    inplace=True,
    autocast="lower",
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts to (n, m), and is ignored if beta is 0."""
    matrix_product_shape(mat1, mat2)
    return combined(input, matmul(mat1, mat2), *_factors(input, beta, alpha))


addmm.vjp(
    input=lambda g, beta: unscaled(g, beta),
    mat1=lambda g, mat2, alpha: unscaled(matmul(g, mat2.mH), alpha),
    mat2=lambda g, mat1, alpha: unscaled(matmul(mat1.mH, g), alpha),
)
addmm.jvp(
    lambda input, mat1, mat2, beta, alpha, out, t_input=None, t_mat1=None, t_mat2=None: _along(
        addmm, (input, mat1, mat2), (t_input, t_mat1, t_mat2), beta, alpha, out
    )
)


@operator(_added(matrix_vector_shape), promote=unpromoted, accepts="numeric", inplace=True, autocast=Autocast("lower"))
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; ``input`` broadcasts to (n), and is ignored if beta is 0."""
    matrix_vector_shape(input, mat, vec)
    return combined(input, matmul(mat, vec), *_factors(input, beta, alpha))


addmv.vjp(
    input=lambda g, beta: unscaled(g, beta),
    mat=lambda g, vec, alpha: unscaled(g.unsqueeze(1) * vec.conj(), alpha),
    vec=lambda g, mat, alpha: unscaled(matmul(mat.mH, g), alpha),
)
addmv.jvp(
    lambda input, mat, vec, beta, alpha, out, t_input=None, t_mat=None, t_vec=None: _along(
        addmv, (input, mat, vec), (t_input, t_mat, t_vec), beta, alpha, out
    )
)


@by
def _addr_shape(input: Tensor, vec1: Tensor, vec2: Tensor, *_: Any) -> tuple[int, ...]:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if len(shape_of(vector)) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {len(shape_of(vector))}-D")
    return _broadcast_to(input, (*shape_of(vec1), *shape_of(vec2)))


@operator(_addr_shape, inplace=True, autocast=Autocast("lower"))
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; for bools the disjunction of conjunctions.

    ``input`` broadcasts to (n, m), and is ignored if beta is 0. Dtypes promote.
    """
    _addr_shape(addr, (input, vec1, vec2))
    kind = input.dtype.category
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if kind < FLOATING and category_of_scalar(factor) >= FLOATING:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        if kind > BOOL and isinstance(factor, bool):
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if kind == BOOL:
        beta, alpha = bool(beta), bool(alpha)
    else:
        beta, alpha = _factors(input, beta, alpha)
        if beta != 0:  # one pass
            return addcmul(scaled(input, beta), scaled(vec1, alpha).unsqueeze(1), vec2)
    return combined(input, vec1.unsqueeze(1) * vec2, beta, alpha)


addr.vjp(
    input=lambda g, beta: unscaled(g, beta),
    vec1=lambda g, vec2, alpha: unscaled(matmul(g, vec2.conj()), alpha),
    vec2=lambda g, vec1, alpha: unscaled(matmul(g.t(), vec1.conj()), alpha),
)
addr.jvp(
    lambda input, vec1, vec2, beta, alpha, out, t_input=None, t_vec1=None, t_vec2=None: _along(
        addr, (input, vec1, vec2), (t_input, t_vec1, t_vec2), beta, alpha, out
    )
)


@operator(
    _added(lambda _, a, b: batch_product_shape(a, b)),
    promote=unpromoted,
    accepts="numeric",
    inplace=True,
    autocast="lower",
)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``, batch by batch; ``input`` broadcasts, and is ignored if beta is
    0.
    """
    batch_product_shape(batch1, batch2)
    return combined(input, matmul(batch1, batch2), *_factors(input, beta, alpha))


baddbmm.vjp(
    input=lambda g, beta: unscaled(g, beta),
    batch1=lambda g, batch2, alpha: unscaled(matmul(g, batch2.mH), alpha),
    batch2=lambda g, batch1, alpha: unscaled(matmul(batch1.mH, g), alpha),
)
baddbmm.jvp(
    lambda input, batch1, batch2, beta, alpha, out, t_input=None, t_batch1=None, t_batch2=None: _along(
        baddbmm, (input, batch1, batch2), (t_input, t_batch1, t_batch2), beta, alpha, out
    )
)


@operator(
    _added(lambda _, a, b: batch_product_shape(a, b)[1:]), promote=unpromoted, accepts="numeric", autocast="lower"
)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """``beta * input + alpha * sum(batch1[i] @ batch2[i])``; ``input`` broadcasts, and is ignored if beta is 0."""
    count, n, m = batch_product_shape(batch1, batch2)
    # The sum over batches is one product of the concatenated matrices.
    inside = count * shape_of(batch1)[2]
    wide = batch1.transpose(0, 1).reshape((n, inside))
    return combined(input, matmul(wide, batch2.reshape((inside, m))), *_factors(input, beta, alpha))


addbmm.vjp(
    input=lambda g, beta: unscaled(g, beta),
    batch1=lambda g, batch2, alpha: unscaled(matmul(g, batch2.mH), alpha),
    batch2=lambda g, batch1, alpha: unscaled(matmul(batch1.mH, g), alpha),
)
addbmm.jvp(
    lambda input, batch1, batch2, beta, alpha, out, t_input=None, t_batch1=None, t_batch2=None: _along(
        addbmm, (input, batch1, batch2), (t_input, t_batch1, t_batch2), beta, alpha, out
    )
)


@public(is_function=False, uses="memory")
def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Compute :func:`addbmm` in place. Unlike other in-place forms, it changes the shape of a tensor that broadcasts.

    Raises ``RuntimeError`` if the shape would change and the tensor is a view, or a leaf that requires grad.
    """
    _, *shape = batch_product_shape(batch1, batch2)
    if shape_of(input) != tuple(shape):
        check_writable(input)
        result: Tensor = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
        rebind(input, result)
        input._node = result._node
        input._keys |= result._keys & AUTOGRAD
        return input
    return addbmm.form("inplace")(input, batch1, batch2, beta=beta, alpha=alpha)
