"""Factorizations of candelabra.linalg: their products, shapes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.lookup import public_names
from candelabra.linalg import LinAlgError

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 1, 4, 3), (0, 3, 3), (2, 0, 3), (2, 3, 0), (0, 0)]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """Return normal numbers, with imaginary parts in a complex dtype."""
    values = rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def spd(rng: np.random.Generator, n: int, dtype: str = "float64", batch: tuple[int, ...] = ()) -> Any:
    """Return Hermitian positive-definite matrices."""
    a = random(rng, (*batch, n, n), dtype)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(n, dtype=dtype)


def close(actual: Any, expected: Any) -> None:
    """Assert that shape and dtype are equal, and values within a few hundred epsilons."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    assert actual.dtype.name == expected.dtype.name
    eps = np.finfo(expected.dtype).eps
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=300 * eps, atol=300 * eps)


def triangular(x: Any, upper: bool) -> bool:
    """Return whether the other triangle is exactly zero."""
    return not (x.tril(-1) if upper else x.triu(1)).any().item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_multiplies_back_with_orthonormal_columns(
    shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    """Every mode is correct for tall, wide, square, batched and empty matrices."""
    a = random(rng, shape, dtype)
    m, n = shape[-2:]
    for mode, columns in (("reduced", min(m, n)), ("complete", m)):
        Q, R = cd.linalg.qr(cd.tensor(a), mode)
        assert tuple(Q.shape) == (*shape[:-1], columns)
        assert tuple(R.shape) == (*shape[:-2], columns, n)
        close(Q @ R, a)
        close(Q.mH @ Q, np.broadcast_to(np.eye(columns, dtype=dtype), (*shape[:-2], columns, columns)))
        assert triangular(R, True)
    empty, R = cd.linalg.qr(cd.tensor(a), mode="r")
    assert tuple(empty.shape) == (0,)
    close(R.abs(), np.abs(np.linalg.qr(a, "reduced").R))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_multiplies_back(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """P is a permutation, L a unit lower and U an upper triangle; lu_factor and lu_unpack agree."""
    a = random(rng, shape, dtype)
    A = cd.tensor(a)
    P, L, U = cd.linalg.lu(A)
    m, n = shape[-2:]
    k = min(m, n)
    assert tuple(P.shape) == (*shape[:-2], m, m)
    assert tuple(L.shape) == (*shape[:-2], m, k)
    assert tuple(U.shape) == (*shape[:-2], k, n)
    close(P @ L @ U, a)
    close(P @ P.mT, np.broadcast_to(np.eye(m, dtype=dtype), P.shape))
    assert triangular(L, False)
    assert triangular(U, True)
    packed = cd.linalg.lu_factor_ex(A)
    assert packed.pivots.dtype is cd.int32
    assert packed.info.dtype is cd.int32
    for one, other in zip(cd.lu_unpack(packed.LU, packed.pivots), (P, L, U), strict=True):
        assert cd.equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_multiplies_back(shape: tuple[int, ...], full: bool, dtype: str, rng: np.random.Generator) -> None:
    """Vectors are orthonormal and values descend; svdvals returns the values only."""
    a = random(rng, shape, dtype)
    U, S, Vh = cd.linalg.svd(cd.tensor(a), full_matrices=full)
    k = min(shape[-2:])
    assert tuple(U.shape)[-1] == (shape[-2] if full else k)
    assert tuple(Vh.shape)[-2] == (shape[-1] if full else k)
    close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
    close(U.mH @ U, np.broadcast_to(np.eye(U.shape[-1], dtype=dtype), (*shape[:-2], U.shape[-1], U.shape[-1])))
    close(S, np.linalg.svd(a, compute_uv=False))
    close(cd.linalg.svdvals(cd.tensor(a)), np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (0,)])
def test_eigh_reads_one_triangle(batch: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """Values ascend and vectors are orthonormal; the other triangle is ignored."""
    a = spd(rng, 4, dtype, batch)
    for uplo, half in (("L", np.tril), ("U", np.triu), ("l", np.tril)):
        values, vectors = cd.linalg.eigh(cd.tensor(half(a)), uplo)
        close((vectors * values.unsqueeze(-2)) @ vectors.mH / 10, a / 10)
        close(values, np.linalg.eigvalsh(a))
        close(cd.linalg.eigvalsh(cd.tensor(half(a)), uplo), np.linalg.eigvalsh(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (0, 3, 3), (2, 0, 0)])
def test_eig_is_complex_and_multiplies_back(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """A V = V diag(L) holds for real matrices too; eigvals returns L only."""
    a = random(rng, shape, dtype)
    values, vectors = cd.linalg.eig(cd.tensor(a))
    wide = np.result_type(dtype, np.complex64)
    assert values.dtype.name == vectors.dtype.name == wide.name
    close(cd.tensor(a.astype(wide)) @ vectors, (vectors * values.unsqueeze(-2)).numpy())
    close(cd.linalg.eigvals(cd.tensor(a)).abs().sum(-1), np.abs(values.numpy()).sum(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_the_triangle_that_it_returns(upper: bool, dtype: str, rng: np.random.Generator) -> None:
    """L Lᴴ, or Uᴴ U, is the matrix; its other triangle is ignored."""
    a = spd(rng, 4, dtype, (2,))
    half = cd.tensor(np.triu(a) if upper else np.tril(a))
    L = cd.linalg.cholesky(half, upper=upper)
    assert triangular(L, upper)
    close(L.mH @ L if upper else L @ L.mH, a)
    assert cd.equal(cd.cholesky(half, upper), L)
    assert cd.equal(half.cholesky(upper=upper), L)


def test_cholesky_says_which_minor_is_not_positive() -> None:
    """cholesky_ex returns an info, cholesky raises an error that names the matrix of the batch."""
    good, bad = cd.eye(2), cd.tensor([[1.0, 2.0], [2.0, 1.0]])
    both = cd.stack([good, bad])
    L, info = cd.linalg.cholesky_ex(both)
    assert info.tolist() == [0, 2]
    assert info.dtype is cd.int32
    assert cd.equal(L[0], good)
    words = r"The factorization could not be completed because the input is not positive-definite \(the leading minor"
    with pytest.raises(LinAlgError, match=rf"^linalg.cholesky: {words} of order 2 is not positive-definite\)"):
        cd.linalg.cholesky(bad)
    with pytest.raises(LinAlgError, match=rf"^linalg.cholesky: \(Batch element 1\): {words}"):
        cd.linalg.cholesky(both)
    with pytest.raises(LinAlgError, match=rf"^linalg.cholesky_ex: {words}"):
        cd.linalg.cholesky_ex(bad, check_errors=True)
    with pytest.raises(LinAlgError, match=rf"^cholesky: {words}"):
        cd.cholesky(bad)
    assert issubclass(LinAlgError, RuntimeError)


def test_lu_factor_refuses_a_zero_pivot_and_lu_does_not() -> None:
    """A singular matrix has a factorization; a solver would divide by zero."""
    zero = cd.zeros(2, 2)
    assert cd.linalg.lu_factor_ex(zero).info.item() == 1
    assert cd.equal(cd.linalg.lu(zero).U, zero)
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lu_factor: U\[1,1\] is zero and using it on lu_solve would"):
        cd.linalg.lu_factor(zero)
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lu_factor_ex: \(Batch element 1\): U\[1,1\] is zero"):
        cd.linalg.lu_factor_ex(cd.stack([cd.eye(2), zero]), check_errors=True)
    with pytest.raises(NotImplementedError, match=r"LU without pivoting is not implemented on the CPU"):
        cd.linalg.lu(zero, pivot=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 4, 2), (2, 3, 0)])
def test_householder_reflections_multiply_to_q(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """geqrf returns R and reflections; their product is Q, and ormqr multiplies by it from either side."""
    a = random(rng, shape, dtype)
    m, n = shape[-2:]
    packed, tau = cd.geqrf(cd.tensor(a))
    Q = cd.linalg.householder_product(packed, tau)
    close(Q @ packed.triu()[..., :n, :], a)
    assert cd.equal(packed.orgqr(tau), Q)
    square = cd.ormqr(packed, tau, cd.eye(m, dtype=packed.dtype).expand(*shape[:-2], m, m))
    close(square[..., :n], Q.numpy())
    x = cd.tensor(random(rng, (*shape[:-2], m, 3), dtype))
    close(cd.ormqr(packed, tau, x), (square @ x).numpy())
    close(cd.ormqr(packed, tau, x, transpose=True), (square.mH @ x).numpy())
    close(packed.ormqr(tau, x.mT, left=False), (x.mT @ square).numpy())
    close(cd.ormqr(packed, tau, x.mT, left=False, transpose=True), (x.mT @ square.mH).numpy())
    if n:  # If a gradient is required, the reflections are applied one by one.
        tracked = packed.detach().requires_grad_()
        close(cd.linalg.householder_product(tracked, tau), Q.numpy())
        for left in (True, False):
            other = x if left else x.mT
            close(cd.ormqr(tracked, tau, other, left, True), cd.ormqr(packed, tau, other, left, True).numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_solves_symmetric_systems(hermitian: bool, dtype: str, rng: np.random.Generator) -> None:
    """Indefinite systems work too; pivots are LAPACK's, the factor's upper triangle is zero."""
    a = random(rng, (2, 5, 5), dtype)
    other = np.swapaxes(a, -1, -2)
    a = a + (other.conj() if hermitian else other)
    LD, pivots = cd.linalg.ldl_factor(cd.tensor(a), hermitian=hermitian)
    assert pivots.dtype is cd.int32
    assert triangular(LD, False)
    b = random(rng, (2, 5, 2), dtype)
    x = cd.linalg.ldl_solve(LD, pivots, cd.tensor(b), hermitian=hermitian)
    np.testing.assert_allclose(a @ x.numpy(), b, rtol=2e-3 if dtype in ("float32", "complex64") else 1e-9, atol=2e-4)
    assert cd.linalg.ldl_factor_ex(cd.tensor(a)).info.tolist() == [0, 0]


def test_ldl_refuses_what_does_not_fit() -> None:
    """A zero block, non-square matrices, and right sides of another height are errors."""
    with pytest.raises(LinAlgError, match=r"torch.linalg.ldl_factor: D\[1,1\] is exactly zero, ldl_solve would divide"):
        cd.linalg.ldl_factor(cd.zeros(2, 2))
    with pytest.raises(LinAlgError, match=r"torch.linalg.ldl_factor_ex: D\[1,1\] is exactly zero"):
        cd.linalg.ldl_factor_ex(cd.zeros(2, 2), check_errors=True)
    with pytest.raises(RuntimeError, match=r"torch.linalg.ldl_factor_ex: A must be batches of square matrices"):
        cd.linalg.ldl_factor(cd.ones(2, 3))
    pivots = cd.tensor([1, 2], dtype=cd.int32)
    with pytest.raises(RuntimeError, match=r"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is 2"):
        cd.linalg.ldl_solve(cd.eye(2), pivots, cd.ones(3, 1))


@pytest.mark.parametrize("pivots", [[0, 1, 2], [1, 2, 4], [1, -2, 3], [1, 2, -3], [-4, -4, 1], [1, 2], [2**40, 1, 1]])
def test_ldl_pivots_that_no_factorization_has_are_refused(pivots: list[int]) -> None:
    """A pivot that is not a row, or half a block, is an error: LAPACK would write outside the matrix."""
    with pytest.raises(RuntimeError, match=r"pivots must be those of ldl_factor: 3 row numbers from 1, negative"):
        cd.linalg.ldl_solve(cd.eye(3), cd.tensor(pivots), cd.ones(3, 1))
    assert cd.linalg.ldl_solve(cd.eye(0), cd.tensor([], dtype=cd.int32), cd.ones(0, 1)).shape == (0, 1)


SQUARE = {
    "inv": "linalg.inv", "det": "linalg.det", "slogdet": "linalg.slogdet", "cholesky": "linalg.cholesky",
    "eig": "linalg.eig", "eigvals": "linalg.eigvals", "eigh": "linalg.eigh", "eigvalsh": "linalg.eigh",
    "matrix_exp": "linalg.matrix_exp",
}  # fmt: skip
RECTANGULAR = {"qr": "linalg.qr", "svd": "linalg.svd", "svdvals": "linalg.svd", "lu_factor": "linalg.lu_factor"}


@pytest.mark.parametrize(("function", "name"), [*SQUARE.items(), *RECTANGULAR.items()])
def test_vectors_integers_and_oblong_matrices_are_refused(function: str, name: str) -> None:
    """Every factorization raises PyTorch's errors."""
    call = getattr(cd.linalg, function)
    with pytest.raises(RuntimeError, match=rf"^{name}: The input tensor A must have at least 2 dimensions\."):
        call(cd.ones(3))
    with pytest.raises(RuntimeError, match=r"Expected a floating point or complex tensor as input\. Got Long"):
        call(cd.ones(2, 2, dtype=cd.int64))
    if function in SQUARE:
        with pytest.raises(RuntimeError, match=rf"^{name}: A must be batches of square matrices, but they are 2 by 3"):
            call(cd.ones(2, 3))
    if function != "matrix_exp":
        with pytest.raises(RuntimeError, match=r"Low precision dtypes not supported\. Got Half"):
            call(cd.ones(2, 2, dtype=cd.float16))


POSITIONAL = {
    "solve": 1, "solve_ex": 1, "solve_triangular": 1, "tensorsolve": 1, "lstsq": 1, "lu_solve": 2, "ldl_solve": 2,
    "matrix_power": 1, "cross": 1, "vecdot": 1, "matmul": 1, "householder_product": 1, "cholesky_solve": 1, "ormqr": 2,
    "lu_unpack": 1, "triangular_solve": 1, "dist": 1, "renorm": 3,
}  # fmt: skip
ALL = [n.removeprefix("linalg.") for n in public_names() if n.startswith("linalg.") and n != "linalg.multi_dot"]
OLDER = [
    "det", "slogdet", "logdet", "inverse", "pinverse", "matrix_power", "cholesky", "cholesky_solve", "cholesky_inverse",
    "qr", "svd", "geqrf", "ormqr", "lu_solve", "lu", "lu_unpack", "triangular_solve", "norm", "dist", "renorm",
    "svd_lowrank", "pca_lowrank", "lobpcg",
]  # fmt: skip


@pytest.mark.parametrize(("namespace", "name"), [*((cd.linalg, n) for n in ALL), *((cd, n) for n in OLDER)])
def test_what_is_no_tensor_is_refused(namespace: Any, name: str) -> None:
    """Every function raises PyTorch's TypeError before any other check."""
    others = {"upper": True} if name == "solve_triangular" else {}
    with pytest.raises(TypeError, match=rf"{name}\w*\(\): argument '\w+' \(position 1\) must be Tensor, not list"):
        getattr(namespace, name)([[1.0]], *[cd.ones(1, 1, dtype=cd.int32)] * POSITIONAL.get(name, 0), **others)


def test_chains_are_of_tensors() -> None:
    """The error names the element that is not a tensor."""
    with pytest.raises(
        TypeError, match=r"linalg_multi_dot\(\): expected Tensor as element 1 in argument 'tensors', but got int"
    ):
        cd.linalg.multi_dot([cd.eye(2), 3])


def test_other_arguments_are_checked() -> None:
    """Unknown modes, triangles and drivers, and mismatched reflections are errors."""
    a = cd.eye(2)
    with pytest.raises(RuntimeError, match=r"qr received unrecognized mode 'x' but expected one of 'reduced'"):
        cd.linalg.qr(a, mode="x")
    with pytest.raises(RuntimeError, match=r"Expected UPLO argument to be 'L' or 'U', but got X"):
        cd.linalg.eigh(a, "X")
    assert cd.equal(cd.linalg.svd(a, driver=None).S, cd.linalg.svdvals(a, driver=None))
    for function in (cd.linalg.svd, cd.linalg.svdvals):
        with pytest.raises(RuntimeError, match=r"linalg.svd: no device has several drivers; expected driver=None"):
            function(a, driver="gesvd")
    product: Callable[..., Any] = cd.linalg.householder_product
    name = "torch.linalg.householder_product"
    for shape, factors, words in (
        ((3,), (2,), "input must have at least 2 dimensions"),
        ((2, 3), (2,), r"input.shape\[-2\] must be greater than or equal to input.shape\[-1\]"),
        ((3, 2), (3,), r"input.shape\[-1\] must be greater than or equal to tau.shape\[-1\]"),
        ((3, 2), (4, 2), r"Expected batch dimensions of tau to be equal to input.shape\[:-2\], but got \[4, 2\]"),
    ):
        for tracked in (False, True):
            with pytest.raises(RuntimeError, match=f"^{name}: {words}"):
                product(cd.ones(shape).requires_grad_(tracked), cd.ones(factors))
    for arguments, words in (
        ((cd.ones(3), cd.ones(2), a), "input must have at least 2 dimensions"),
        ((a, cd.ones(2), cd.ones(3)), "other must have at least 2 dimensions"),
        ((a, cd.ones(3), a), r"other.shape\[-2\] must be greater than or equal to tau.shape\[-1\]"),
        ((a, cd.ones(2), cd.ones(3, 3)), r"other.shape\[-2\] must be equal to input.shape\[-2\]"),
    ):
        with pytest.raises(RuntimeError, match=f"torch.ormqr: {words}"):
            cd.ormqr(*arguments)
    with pytest.raises(
        RuntimeError, match=r"lu_unpack\(\): Expected dtype int64 for LU_pivots, got candelabra.float32"
    ):
        cd.lu_unpack(a, cd.ones(2))
    with pytest.raises(RuntimeError, match=r"pivots passed to lu_unpack must be between 1 and LU.size\(-2\) inclusive"):
        cd.lu_unpack(a, cd.tensor([3, 2], dtype=cd.int32))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_matrices_that_are_not_finite_are_refused_where_an_iteration_would_not_end(bad: float) -> None:
    """svd, svdvals, eig and eigvals name the first such matrix of a batch."""
    a = cd.full((2, 2), bad)
    words = "The algorithm failed to converge because the input matrix contained non-finite values"
    for function in (cd.linalg.svd, cd.linalg.svdvals):
        with pytest.raises(LinAlgError, match=rf"^linalg.svd: {words}"):
            function(a)
        with pytest.raises(LinAlgError, match=rf"^linalg.svd: \(Batch element 1\): {words}"):
            function(cd.stack([cd.eye(2), a]))
    for function in (cd.linalg.eig, cd.linalg.eigvals):
        with pytest.raises(LinAlgError, match=r"linalg.eig: input tensor should not contain infs or NaNs"):
            function(a)


def test_results_go_into_tensors_that_are_given(rng: np.random.Generator) -> None:
    """Tensors are passed one by one or as a tuple; a wrong number is refused."""
    a = cd.tensor(spd(rng, 3, "float32"))
    Q, R = cd.empty(0), cd.empty(0)
    actual = cd.linalg.qr(a, out=(Q, R))
    assert actual.Q is Q
    assert actual.R is R
    close(Q @ R, a.numpy())
    out = cd.empty(3, 3)
    assert cd.linalg.inv(a, out=out) is out
    close(out @ a, np.eye(3, dtype="float32"))
    with pytest.raises(TypeError, match=r"linalg_qr\(\): argument 'out' must be a tuple of 2 Tensors"):
        cd.linalg.qr(a, out=Q)
    with pytest.raises(RuntimeError, match=r"functions with out=... arguments don't support automatic differentiation"):
        cd.linalg.inv(a.requires_grad_(), out=out)


def test_transposed_and_strided_matrices_are_read_as_they_are(rng: np.random.Generator) -> None:
    """The memory layout has no effect."""
    a = random(rng, (6, 6))
    for view, array in ((cd.tensor(a).mT, a.T), (cd.tensor(a)[::2, 1::2], a[::2, 1::2])):
        close(cd.linalg.inv(view), np.linalg.inv(array))
        close(cd.linalg.det(view), np.linalg.det(array))
        b = random(rng, (view.shape[0], 2))
        close(cd.linalg.solve_triangular(view, cd.tensor(b), upper=True), np.linalg.solve(np.triu(array), b))


def test_results_are_named_as_pytorch_names_them() -> None:
    """The named tuples have PyTorch's fields."""
    a = cd.eye(2)
    names = {
        "qr": ("Q", "R"), "svd": ("U", "S", "Vh"), "eig": ("eigenvalues", "eigenvectors"),
        "eigh": ("eigenvalues", "eigenvectors"), "slogdet": ("sign", "logabsdet"), "lu": ("P", "L", "U"),
        "lu_factor": ("LU", "pivots"), "lu_factor_ex": ("LU", "pivots", "info"), "inv_ex": ("inverse", "info"),
        "cholesky_ex": ("L", "info"), "ldl_factor": ("LD", "pivots"), "ldl_factor_ex": ("LD", "pivots", "info"),
    }  # fmt: skip
    for name, fields in names.items():
        assert getattr(cd.linalg, name)(a)._fields == fields
    assert cd.linalg.solve_ex(a, a)._fields == ("result", "info")
    assert cd.linalg.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")
    assert cd.svd(a)._fields == ("U", "S", "V")
    assert cd.geqrf(a)._fields == ("a", "tau")
    assert cd.triangular_solve(a, a)._fields == ("solution", "cloned_coefficient")
