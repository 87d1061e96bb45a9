"""Derivatives of linear algebra whose rule has branches: shapes, options, singular matrices, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra_conformance.samples.linalg_choices import hermitian_part as hermitian
from candelabra_conformance.samples.linalg_choices import of_svd
from candelabra_conformance.samples.linalg_choices import positive_part as positive

L = cd.linalg


def leaf(*shape: int, dtype: Any = cd.float64, seed: int = 0) -> Any:
    """Return a matrix with distinct singular values."""
    generator = cd.Generator().manual_seed(seed)
    values = cd.randn(*shape, dtype=dtype, generator=generator)
    if len(shape) > 1:
        steps = cd.arange(1, shape[-2] + 1).to(dtype).unsqueeze(-1)
        values = values + cd.eye(*shape[-2:], dtype=dtype) * steps
    return values.requires_grad_()


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "inverse": (lambda a: L.inv(a), ((2, 3, 3),)),
    "solve of vectors": (lambda a, b: L.solve(a, b), ((2, 3, 3), (2, 3))),
    "solve from the right": (lambda a, b: L.solve(a, b, left=False), ((3, 3), (2, 4, 3))),
    "triangular from the right": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True), ((3, 3), (2, 4, 3)),
    ),
    "triangular, broadcast": (lambda a, b: L.solve_triangular(a, b, upper=True), ((2, 1, 3, 3), (4, 3, 2))),
    "upper Cholesky": (lambda a: L.cholesky(positive(a), upper=True), ((2, 3, 3),)),
    "Cholesky solve": (lambda b, a: cd.cholesky_solve(b, L.cholesky(positive(a))), ((3, 2), (3, 3))),
    "Cholesky inverse": (lambda a: cd.cholesky_inverse(L.cholesky(positive(a), upper=True), True), ((3, 3),)),
    "square QR": (lambda a: tuple(L.qr(a, "complete")), ((3, 3),)),
    "wide QR": (lambda a: tuple(L.qr(a)), ((2, 2, 4),)),
    "Q of a wide matrix": (lambda a: L.qr(a).Q, ((2, 4),)),
    "R of a wide matrix": (lambda a: L.qr(a).R, ((2, 4),)),
    "R of a tall matrix": (lambda a: L.qr(a).R, ((4, 2),)),
    "wide LU": (lambda a: tuple(L.lu(a))[1:], ((2, 4),)),
    "tall LU": (lambda a: tuple(L.lu(a))[1:], ((2, 4, 2),)),
    "LU solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b), ((3, 3), (2, 3, 2))),
    "LU solve, adjoint": (lambda a, b: L.lu_solve(*L.lu_factor(a), b, left=False, adjoint=True), ((3, 3), (2, 3))),
    "wide SVD": (lambda a: of_svd(L.svd(a, full_matrices=False)), ((2, 2, 4),)),
    "square SVD": (lambda a: of_svd(L.svd(a)), ((3, 3),)),
    "U alone": (lambda a: L.svd(a).U[..., :2].abs(), ((4, 2),)),
    "V alone": (lambda a: L.svd(a).Vh[..., :2, :].abs(), ((2, 4),)),
    "singular values": (lambda a: L.svd(a).S, ((3, 2),)),
    "eigenvalues through eigh": (lambda a: L.eigh(hermitian(a)).eigenvalues, ((3, 3),)),
    "eigenvectors of eigh": (lambda a: L.eigh(hermitian(a)).eigenvectors.abs(), ((3, 3),)),
    "eigenvalues through eig": (lambda a: L.eig(a).eigenvalues, ((3, 3),)),
    "eigenvectors of eig": (lambda a: L.eig(a).eigenvectors.abs(), ((3, 3),)),
    "sign and logarithm": (lambda a: L.slogdet(a), ((2, 3, 3),)),
    "log-determinant": (lambda a: cd.logdet(positive(a)), ((3, 3),)),
    "wide pseudo-inverse": (lambda a: L.pinv(a), ((2, 2, 3),)),
    "pseudo-inverse with a tolerance": (lambda a: L.pinv(a, 1e-4), ((3, 2),)),
    "Hermitian pseudo-inverse": (lambda a: L.pinv(hermitian(a), hermitian=True), ((3, 3),)),
    "wide least squares": (lambda a, b: L.lstsq(a, b).solution, ((2, 4), (2, 2))),
    "residuals": (lambda a, b: L.lstsq(a, b, driver="gels").residuals, ((4, 2), (4, 2))),
    "power": (lambda a: L.matrix_power(a, 3), ((3, 3),)),
    "negative power": (lambda a: L.matrix_power(a, -2), ((3, 3),)),
    "exponential, scaled": (lambda a: L.matrix_exp(a * 2) / 1e3, ((2, 2),)),
    "reflections": (lambda a, t: L.householder_product(a, t), ((4, 2), (2,))),
    "reflections applied": (lambda a, t, x: cd.ormqr(a, t, x, left=False, transpose=True), ((4, 2), (2,), (3, 4))),
    "condition by 2": (lambda a: L.cond(a), ((3, 2),)),
    "condition by nuc": (lambda a: L.cond(a, "nuc"), ((3, 3),)),
    "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), ((2, 3, 2),)),
    "spectral norm": (lambda a: L.matrix_norm(a, 2), ((3, 2),)),
    "column norm": (lambda a: L.matrix_norm(a, 1), ((3, 2),)),
    "cross product": (lambda a, b: L.cross(a, b), ((2, 3), (1, 3))),
    "inner product": (lambda a, b: L.vecdot(a, b), ((2, 3), (3,))),
    "chain": (lambda a, b, c: L.multi_dot([a, b, c]), ((3,), (3, 2), (2, 4))),
    "powers of numbers": (lambda a: L.vander(a, N=4), ((3,),)),
    "inverse tensor": (lambda a: L.tensorinv(a.reshape(2, 2, 4)), ((4, 4),)),
    "tensor system": (lambda a, b: L.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)), ((4, 4), (4,))),
    "distance": (lambda a, b: cd.dist(a, b, 3), ((2, 3), (3,))),
    "renormalised": (lambda a: cd.renorm(a, 2, 0, 1.5), ((3, 2),)),
}  # fmt: skip
CASES.update({
    f"norm of order {order}": (lambda a, order=order: L.vector_norm(a, order, 1), ((2, 3),))
    for order in (0.5, 1, 1.5, 2, 3, -1, math.inf, -math.inf)
})  # fmt: skip


@pytest.mark.parametrize("dtype", [cd.float64, cd.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_agree_with_finite_differences(name: str, dtype: Any) -> None:
    """They agree to second order."""
    function, shapes = CASES[name]
    leaves = [leaf(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_determinants_of_singular_matrices_have_the_adjugate_as_gradient(rank: int) -> None:
    """The gradient is zero if two singular values are zero, and the product of the others if one is."""
    x = cd.diag(cd.tensor([2.0, 3.0, 0.0][:rank] + [0.0] * (3 - rank), dtype=cd.float64)).requires_grad_()
    L.det(x).backward()
    expected = [0.0, 0.0, 6.0 if rank == 2 else 0.0]
    assert x.grad.diagonal().tolist() == pytest.approx(expected)
    assert not (x.grad - x.grad.diagonal().diag_embed()).abs().gt(1e-12).any().item()
    y = cd.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=cd.complex128).requires_grad_()
    assert gradcheck(L.det, (y,), fast_mode=True)


def test_losses_that_depend_on_a_phase_are_refused() -> None:
    """Complex singular vectors and eigenvectors are unique only up to a phase."""
    a = leaf(3, 3, dtype=cd.complex128)
    with pytest.raises(
        RuntimeError, match=r"svd_backward: The singular vectors in the complex case are specified up to"
    ):
        L.svd(a).U.imag.sum().backward()
    with pytest.raises(RuntimeError, match=r"linalg_eigh_backward: The eigenvectors in the complex case are specified"):
        L.eigh(hermitian(a)).eigenvectors.imag.sum().backward()
    with pytest.raises(RuntimeError, match=r"linalg_eig_backward: The eigenvectors in the complex case are specified"):
        L.eig(a).eigenvectors.imag.sum().backward()


def test_qr_without_q_has_no_derivative() -> None:
    """A complete Q with more rows than columns has no derivative either."""
    a = leaf(3, 2)
    with pytest.raises(
        RuntimeError, match=r"The derivative of linalg.qr depends on Q, which is not computed when mode"
    ):
        L.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match=r"not differentiable when mode='complete' and nrows > ncols"):
        L.qr(a, "complete").R.sum().backward()


def test_gradients_of_real_matrices_are_real() -> None:
    """The gradient is real although complex eigenvalues are used."""
    a = leaf(3, 3)
    L.eigvals(a).abs().sum().backward()
    assert a.grad.dtype is cd.float64
    a.grad = None
    L.eig(a).eigenvectors.abs().sum().backward()
    assert a.grad.dtype is cd.float64


def test_ranks_carry_no_gradient() -> None:
    """Ranks are integers."""
    assert not L.matrix_rank(leaf(3, 3)).requires_grad
