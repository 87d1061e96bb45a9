"""Linear systems, inverses, determinants, least squares and ranks, compared with NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.linalg
from candelabra._records.registry import OPERATORS
from candelabra.linalg import LinAlgError

DTYPES = ["float32", "float64", "complex64", "complex128"]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """Return normal numbers, with imaginary parts in a complex dtype."""
    values = rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def regular(rng: np.random.Generator, n: int, dtype: str = "float64", batch: tuple[int, ...] = ()) -> Any:
    """Return well-conditioned matrices."""
    return random(rng, (*batch, n, n), dtype) + 4 * np.eye(n, dtype=dtype)


def close(actual: Any, expected: Any) -> None:
    """Assert that shape and dtype are equal, and values within a few hundred epsilons."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    assert actual.dtype.name == expected.dtype.name
    eps = np.finfo(expected.dtype).eps
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=500 * eps, atol=500 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((), (3, 2)), ((), (3,)), ((2,), (2, 3, 1)), ((2,), (3, 4)), ((2,), (2, 3)), ((2, 1), (4, 3, 2)),
        ((0,), (0, 3, 2)), ((2,), (3,)),
    ],
)  # fmt: skip
def test_solve_takes_matrices_vectors_and_batches(
    a: tuple[int, ...], b: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    """Right sides with one dim less than the matrices, and their batch shape, are batches of vectors."""
    left, right = regular(rng, 3, dtype, a), random(rng, b, dtype)
    actual = cd.linalg.solve(cd.tensor(left), cd.tensor(right))
    vector = len(b) == 1 or b == (*a, 3)
    expected = np.linalg.solve(left, right[..., None])[..., 0] if vector else np.linalg.solve(left, right)
    close(actual, expected)
    assert cd.linalg.solve_ex(cd.tensor(left), cd.tensor(right)).info.any().item() is False


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_from_the_right(dtype: str, rng: np.random.Generator) -> None:
    """The solution satisfies X A = B."""
    a, b = regular(rng, 3, dtype, (2,)), random(rng, (2, 4, 3), dtype)
    x = cd.linalg.solve(cd.tensor(a), cd.tensor(b), left=False)
    close(x @ cd.tensor(a), b)


def test_singular_systems_are_refused_or_reported() -> None:
    """The error names the matrix, and the info names the zero pivot."""
    bad = cd.tensor([[1.0, 2.0], [2.0, 4.0]])
    both = cd.stack([cd.eye(2), bad])
    assert cd.linalg.solve_ex(both, cd.ones(2, 2, 1)).info.tolist() == [0, 2]
    assert cd.equal(cd.linalg.solve_ex(both, cd.ones(2, 2, 1)).result[0], cd.ones(2, 1))
    inverse, info = cd.linalg.inv_ex(both)
    assert info.tolist() == [0, 2]
    assert inverse[0].tolist() == [[1, 0], [0, 1]]
    assert inverse[1].isinf().all().item()
    with pytest.raises(
        LinAlgError, match=r"^torch.linalg.solve: The solver failed because the input matrix is singular"
    ):
        cd.linalg.solve(bad, cd.ones(2))
    with pytest.raises(LinAlgError, match=r"^torch.linalg.solve_ex: \(Batch element 1\): The solver failed"):
        cd.linalg.solve_ex(both, cd.ones(2, 2, 1), check_errors=True)
    with pytest.raises(LinAlgError, match=r"^linalg.inv: The diagonal element 2 is zero, the inversion could not be"):
        cd.linalg.inv(bad)
    with pytest.raises(LinAlgError, match=r"^linalg.inv_ex: \(Batch element 1\): The diagonal element 2 is zero"):
        cd.linalg.inv_ex(both, check_errors=True)
    with pytest.raises(LinAlgError, match=r"^linalg.inv: The diagonal element 1 is zero"):
        cd.linalg.matrix_power(cd.zeros(2, 2), -1)


def test_systems_that_do_not_fit_are_refused() -> None:
    """PyTorch's errors name the equation."""
    a = cd.eye(2)
    for b, words in (
        (cd.ones(3), r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)"),
        (cd.ones(3, 3), r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x3\)"),
        (cd.tensor(1.0), "The input tensor B must have at least 2 dimensions"),
    ):
        with pytest.raises(RuntimeError, match=f"^linalg.solve: {words}"):
            cd.linalg.solve(a, b)
    with pytest.raises(RuntimeError, match=r"for the equation XA = B \(2x2 and 2x3\)"):
        cd.linalg.solve(a, cd.ones(2, 3), left=False)
    with pytest.raises(RuntimeError, match=r"Vector broadcasting of the left hand side is not supported for"):
        cd.linalg.solve(a, cd.ones(2), left=False)
    with pytest.raises(RuntimeError, match=r"linalg.solve_triangular: Incompatible shapes of A and B"):
        cd.linalg.solve_triangular(a, cd.ones(3, 3), upper=True)
    with pytest.raises(RuntimeError, match=r"linalg.solve_triangular: The input tensor B must have at least 2"):
        cd.linalg.solve_triangular(a, cd.ones(2), upper=True)
    with pytest.raises(RuntimeError, match=r"linalg.solve_triangular: Expected a floating point or complex"):
        cd.linalg.solve_triangular(a.long(), cd.ones(2, 2), upper=True)
    # Devices without the routine run this composite, which solves a general system.
    body = OPERATORS["triangular_solution"].body
    assert body is not None
    with pytest.raises(RuntimeError, match=r"linalg.solve_triangular: A must be batches of square matrices, but they"):
        body(cd.ones(2, 3), a, True, False)
    with pytest.raises(
        RuntimeError, match=r"torch.triangular_solve: Expected b to have at least 2 dimensions, but it has 1"
    ):
        cd.triangular_solve(cd.ones(2), a)
    with pytest.raises(
        RuntimeError, match=r"torch.triangular_solve: Expected A to have at least 2 dimensions, but it has 1"
    ):
        cd.triangular_solve(a, cd.ones(2))
    with pytest.raises(RuntimeError, match=r"b should have at least 2 dimensions, but has 1 dimensions instead"):
        cd.cholesky_solve(cd.ones(2), a)
    with pytest.raises(RuntimeError, match=r"u should have at least 2 dimensions, but has 1 dimensions instead"):
        cd.cholesky_solve(a, cd.ones(2))
    with pytest.raises(
        RuntimeError, match=r"cholesky_inverse: A must be batches of square matrices, but they are 2 by 3"
    ):
        cd.cholesky_inverse(cd.ones(2, 3))
    with pytest.raises(
        RuntimeError, match=r"linalg_lu_solve\(\): Expected dtype int64 for pivots, got candelabra.float"
    ):
        cd.linalg.lu_solve(a, cd.ones(2), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", [(), (2,), (100,), (0,)])
def test_triangular_systems_read_one_triangle(
    batch: tuple[int, ...], upper: bool, unitriangular: bool, dtype: str, rng: np.random.Generator
) -> None:
    """Left and right, single and batched; with unitriangular=True the diagonal is not read."""
    a = regular(rng, 3, dtype, batch)
    triangle = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        triangle = triangle * (1 - np.eye(3, dtype=dtype)) + np.eye(3, dtype=dtype)
    b = random(rng, (*batch, 3, 2), dtype)
    options = {"upper": upper, "unitriangular": unitriangular}
    actual = cd.linalg.solve_triangular(cd.tensor(a), cd.tensor(b), **options)
    close(actual, np.linalg.solve(triangle, b))
    right = cd.linalg.solve_triangular(cd.tensor(a), cd.tensor(b).mT, left=False, **options)
    close(right @ cd.tensor(triangle), np.swapaxes(b, -1, -2))
    x, copy = cd.triangular_solve(cd.tensor(b), cd.tensor(a), upper, False, unitriangular)
    close(x, actual.numpy())
    close(copy, a)
    turned = cd.tensor(b).triangular_solve(cd.tensor(a), upper, transpose=True, unitriangular=unitriangular).solution
    close(turned, np.linalg.solve(np.swapaxes(triangle, -1, -2), b))


def test_a_zero_on_the_diagonal_of_a_triangle_is_divided_by() -> None:
    """No error is raised, for one matrix or a batch."""
    for batch in ((), (50,)):
        actual = cd.linalg.solve_triangular(cd.zeros(*batch, 2, 2), cd.ones(*batch, 2, 1), upper=True)
        assert not actual.isfinite().any().item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (0,)])
def test_factors_solve_again_and_again(batch: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """lu_solve and cholesky_solve accept existing factors; so does cholesky_inverse."""
    a, b = regular(rng, 3, dtype, batch), random(rng, (*batch, 3, 2), dtype)
    A, B = cd.tensor(a), cd.tensor(b)
    LU, pivots = cd.linalg.lu_factor(A)
    close(cd.linalg.lu_solve(LU, pivots, B), np.linalg.solve(a, b))
    close(B.lu_solve(LU, pivots), np.linalg.solve(a, b))
    close(cd.linalg.lu_solve(LU, pivots, B.mT, left=False) @ A, np.swapaxes(b, -1, -2))
    close(A.mH @ cd.linalg.lu_solve(LU, pivots, B, adjoint=True), b)
    close(cd.linalg.lu_solve(LU, pivots, B.mT, left=False, adjoint=True) @ A.mH, np.swapaxes(b, -1, -2))
    p = a @ np.conj(np.swapaxes(a, -1, -2)) / 10
    for upper in (False, True):
        L = cd.linalg.cholesky(cd.tensor(p), upper=upper)
        close(cd.cholesky_solve(B, L, upper), np.linalg.solve(p, b))
        close(L.cholesky_inverse(upper), np.linalg.inv(p))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (2, 0, 0)])
def test_inverses_and_determinants(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """Single, batched and empty matrices are correct under all names."""
    a = random(rng, shape, dtype)
    A = cd.tensor(a)
    close(cd.linalg.det(A), np.linalg.det(a))
    close(A.det(), np.linalg.det(a))
    sign, log = np.linalg.slogdet(a)
    for actual in (cd.linalg.slogdet(A), cd.slogdet(A), A.slogdet()):
        close(actual.sign, np.asarray(sign).astype(dtype))
        close(actual.logabsdet, np.asarray(log).astype(a.real.dtype))
    b = a + 4 * np.eye(shape[-1], dtype=dtype)
    for actual in (cd.linalg.inv(cd.tensor(b)), cd.inverse(cd.tensor(b)), cd.tensor(b).inverse()):
        close(actual, np.linalg.inv(b))


def test_logarithms_of_determinants(rng: np.random.Generator) -> None:
    """Singular matrices give -inf, negative determinants NaN, complex ones complex results."""
    assert cd.logdet(cd.zeros(2, 2)).item() == -math.inf
    assert math.isnan(cd.logdet(cd.tensor([[0.0, 1.0], [1.0, 0.0]])).item())
    assert cd.logdet(cd.eye(3) * 2).item() == pytest.approx(3 * math.log(2))
    a = random(rng, (3, 3), "complex128")
    close(cd.tensor(a).logdet().exp(), np.linalg.det(a))
    assert cd.slogdet(cd.zeros(2, 2)).sign.item() == 0
    with pytest.raises(RuntimeError, match=r"logdet: A must be batches of square matrices, but they are 2 by 3"):
        cd.logdet(cd.ones(2, 3))


def test_tensors_are_inverted_and_solved_for_as_matrices(rng: np.random.Generator) -> None:
    """tensorinv and tensorsolve agree with NumPy."""
    a = random(rng, (4, 6, 8, 3))
    close(cd.linalg.tensorinv(cd.tensor(a)), np.linalg.tensorinv(a))
    close(cd.linalg.tensorinv(cd.tensor(random(rng, (24, 8, 3))), ind=1).sum() * 0, np.float64(0))
    b = random(rng, (2, 6))
    c = random(rng, (2, 6, 3, 4))
    close(cd.linalg.tensorsolve(cd.tensor(c), cd.tensor(b)), np.linalg.tensorsolve(c, b))
    d = random(rng, (2, 3, 6, 4))
    close(cd.linalg.tensorsolve(cd.tensor(d), cd.tensor(b), dims=(1,)), np.linalg.tensorsolve(d, b, axes=(1,)))
    with pytest.raises(RuntimeError, match=r"Expected self to satisfy the requirement prod\(self.shape\[ind:\]\) == "):
        cd.linalg.tensorinv(cd.ones(2, 3, 5), 2)
    with pytest.raises(RuntimeError, match=r"Expected a strictly positive integer for 'ind', but got 0"):
        cd.linalg.tensorinv(cd.ones(2, 2), 0)
    with pytest.raises(RuntimeError, match=r"prod\(self.shape\[other.ndim:\]\) == .* but got 6 != 6|but got 6 != 4"):
        cd.linalg.tensorsolve(cd.ones(2, 2, 6), cd.ones(2, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (2, 5, 3), (0, 4, 2), (3, 0), (0, 3)])
def test_least_squares(shape: tuple[int, ...], driver: str | None, dtype: str, rng: np.random.Generator) -> None:
    """All drivers give the minimum-norm solution, residuals, rank and singular values of full-rank matrices."""
    a, b = random(rng, shape, dtype), random(rng, (*shape[:-1], 2), dtype)
    actual = cd.linalg.lstsq(cd.tensor(a), cd.tensor(b), driver=driver)
    expected = np.linalg.pinv(a) @ b if a.size else np.zeros((*shape[:-2], shape[-1], 2), dtype)
    close(actual.solution, expected)
    m, n = shape[-2:]
    if m > n and n and driver not in (None, "gelsy"):
        close(actual.residuals, (np.abs(a @ expected - b) ** 2).sum(-2))
    elif n:
        assert actual.residuals.numel() == 0
    if driver == "gels":
        assert actual.rank.numel() == 0
    else:
        assert actual.rank.dtype is cd.int64
        assert (actual.rank == (min(m, n) if a.size else 0)).all().item()
    if driver in ("gelsd", "gelss") and a.size:
        close(actual.singular_values, np.linalg.svd(a, compute_uv=False))
    elif driver not in ("gelsd", "gelss"):
        assert actual.singular_values.numel() == 0


def test_least_squares_of_low_rank_and_of_vectors(rng: np.random.Generator) -> None:
    """``rcond`` sets the bound for zero singular values; right sides may be vectors."""
    a = cd.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=cd.float64)
    actual = cd.linalg.lstsq(a, cd.ones(3, 1, dtype=cd.float64), driver="gelsd")
    assert actual.rank.item() == 1
    assert actual.residuals.numel() == 0
    close(actual.solution, np.linalg.pinv(a.numpy()) @ np.ones((3, 1)))
    b = random(rng, (2, 4, 3))
    close(cd.linalg.lstsq(cd.tensor(b), cd.ones(2, 4, dtype=cd.float64)).solution, np.linalg.pinv(b) @ np.ones(4))
    near = cd.tensor([[1.0, 0.0], [0.0, 1e-3]])
    assert cd.linalg.lstsq(near, cd.ones(2)).rank.item() == 2
    assert cd.linalg.lstsq(near, cd.ones(2), rcond=1e-2).rank.item() == 1


def test_least_squares_refuses_what_does_not_fit() -> None:
    """Shapes, dtypes and drivers are checked with PyTorch's errors."""
    a = cd.eye(2)
    for arguments, driver, words in (
        ((cd.ones(3), cd.ones(3)), None, r"input must have at least 2 dimensions"),
        ((a, cd.tensor(1.0)), None, r"other must have at least 1 dimension"),
        ((a, cd.ones(2, 1)), "x", r"parameter `driver` should be one of \(gels, gelsy, gelsd, gelss\)"),
        ((a, cd.ones(3, 1)), None, r"input.size\(-2\) should match other.size\(-2\)"),
        ((a, cd.ones(3)), None, r"input.size\(-2\) should match other.size\(-1\)"),
        ((a, cd.ones(2, 2, 1)), None, r"input.dim\(\) must be greater or equal to other.dim\(\)"),
        ((a, cd.ones(2, 1).double()), None, r"Expected input and other to have the same dtype, but got input's dtype"),
    ):
        with pytest.raises(RuntimeError, match=f"^torch.linalg.lstsq: {words}"):
            cd.linalg.lstsq(*arguments, driver=driver)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 2), (0, 2, 3), (2, 0, 3), (3, 0)])
def test_pseudo_inverses(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """They use singular values, or eigenvalues for Hermitian matrices; pinverse is the older name."""
    a = random(rng, shape, dtype)
    close(cd.linalg.pinv(cd.tensor(a)), np.linalg.pinv(a))
    close(cd.tensor(a).pinverse(), np.linalg.pinv(a, 1e-15))
    if shape[-1] == shape[-2]:
        h = a + np.conj(np.swapaxes(a, -1, -2))
        close(cd.linalg.pinv(cd.tensor(h), hermitian=True), np.linalg.pinv(h))


def test_tolerances_decide_ranks_and_pseudo_inverses() -> None:
    """Absolute and relative tolerances are numbers or tensors; an absolute one alone disables the relative one."""
    a = cd.diag(cd.tensor([1.0, 0.1, 0.001, 0.0]))
    rank = cd.linalg.matrix_rank
    assert rank(a).item() == 3
    assert rank(a).dtype is cd.int64
    assert rank(a, 0.05).item() == 2
    assert rank(a, atol=0.05).item() == 2
    assert rank(a, rtol=0.5).item() == 1
    assert rank(a, atol=0.5, rtol=0.0).item() == 1
    assert rank(a, atol=0.0).item() == 3
    assert rank(-a, hermitian=True).item() == 3
    assert rank(cd.stack([a, a]), atol=cd.tensor([0.05, 0.5])).tolist() == [2, 1]
    assert rank(cd.stack([a, a]), atol=cd.tensor([0.0, 0.5])).tolist() == [3, 1]
    assert rank(cd.zeros(2, 0, 3)).tolist() == [0, 0]
    inverse = cd.linalg.pinv(a, rtol=0.05).diagonal().tolist()
    assert inverse == pytest.approx([1, 10, 0, 0])
    assert cd.linalg.pinv(a, 0.5).diagonal().tolist() == pytest.approx([1, 0, 0, 0])
    assert cd.linalg.pinv(a, atol=cd.tensor(0.01)).diagonal().tolist() == pytest.approx([1, 10, 0, 0])
    with pytest.raises(RuntimeError, match=r"torch.linalg.matrix_rank: atol tensor of complex type is not supported"):
        rank(a, atol=cd.tensor(1j))
    with pytest.raises(RuntimeError, match=r"torch.linalg.pinv: rtol tensor of complex type is not supported"):
        cd.linalg.pinv(a, rtol=cd.tensor(1j))
    with pytest.raises(
        RuntimeError, match=r"linalg.pinv\(Float\{\[2\]\}\): expected a tensor with 2 or more dimensions"
    ):
        cd.linalg.pinv(cd.ones(2))
    with pytest.raises(RuntimeError, match=r"linalg.pinv: A must be batches of square matrices"):
        cd.linalg.pinv(cd.ones(2, 3), hermitian=True)
    with pytest.raises(RuntimeError, match=r"torch.linalg.matrix_rank: The input tensor input must have at least 2"):
        rank(cd.ones(2))


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"])
def test_condition_numbers(p: Any, rng: np.random.Generator) -> None:
    """Every order agrees with NumPy; singular matrices give inf."""
    a = random(rng, (2, 3, 3))
    close(cd.linalg.cond(cd.tensor(a), p), np.linalg.cond(a, p))
    if p not in (2, -2, None):
        assert cd.linalg.cond(cd.tensor([[1.0, 2.0], [2.0, 4.0]]), p).item() == math.inf
    else:
        close(cd.linalg.cond(cd.tensor(a[:, :2]), p), np.linalg.cond(a[:, :2], p))
    assert cd.linalg.cond(cd.zeros(2, 0, 0), p).tolist() == [0, 0]


def test_condition_numbers_refuse_what_has_none() -> None:
    """Vectors, non-square matrices and unknown norms are errors."""
    with pytest.raises(RuntimeError, match=r"linalg.cond: The input tensor must have at least 2 dimensions"):
        cd.linalg.cond(cd.ones(2))
    with pytest.raises(
        RuntimeError, match=r"linalg.cond\(ord=1\): A must be batches of square matrices, but they are 2"
    ):
        cd.linalg.cond(cd.ones(2, 3), 1)
    for p in ("foo", 3):
        with pytest.raises(RuntimeError, match=f"linalg.cond got an invalid norm type: {p}"):
            cd.linalg.cond(cd.eye(2), p)


def test_matrix_exp_rounds_as_little_as_its_dtype_allows(rng: np.random.Generator) -> None:
    """In float32, results and gradients are within a few units of float32 of those in float64: squarings are few."""
    worst = {"result": 0.0, "gradient": 0.0}
    for _ in range(20):
        a, g = rng.normal(size=(2, 5, 5)).astype("float32")
        found: dict[str, list[Any]] = {"result": [], "gradient": []}
        for dtype in (cd.float32, cd.float64):
            x = cd.tensor(a, dtype=dtype, requires_grad=True)
            out = cd.linalg.matrix_exp(x)
            found["result"].append(out.detach().numpy())
            found["gradient"].append(cd.autograd.grad(out, x, cd.tensor(g, dtype=dtype))[0].numpy())
        for name, (narrow, wide) in found.items():
            worst[name] = max(worst[name], float(abs(narrow - wide).max() / abs(wide).max()))
    assert worst["result"] < 6e-7
    assert worst["gradient"] < 6e-7


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bfloat16"])
def test_exponentials_of_matrices(dtype: str, rng: np.random.Generator) -> None:
    """Small and large matrices, single and batched, agree with SciPy; half types within their precision."""
    for scale in (1e-3, 0.3, 3.0, 12.0):
        a = random(rng, (2, 3, 4, 4), dtype if dtype[0] == "c" or dtype == "float64" else "float32") * scale / 4
        actual = cd.linalg.matrix_exp(cd.tensor(a).to(getattr(cd, dtype)))
        assert actual.dtype is getattr(cd, dtype)
        digits = {"float16": 5e-2, "bfloat16": 3e-1, "float32": 2e-4, "complex64": 2e-4}.get(dtype, 1e-11)
        if digits > 1e-2 and scale > 1:
            continue
        expected = scipy.linalg.expm(a.astype(complex))
        error = np.abs(actual.to(cd.complex128).numpy() - expected).max() / np.abs(expected).max()
        assert error < digits
    assert cd.matrix_exp(cd.zeros(2, 2)).tolist() == [[1, 0], [0, 1]]
    assert cd.zeros(0, 2, 2).matrix_exp().shape == (0, 2, 2)
    assert cd.matrix_exp(cd.full((2, 2), math.nan)).isnan().all().item()


def test_exponentials_of_half_types_are_summed_in_single_precision() -> None:
    """Powers overflow in float16 and lose digits in bfloat16; the result is rounded once."""
    a = np.array([[-9.0, 8.0], [7.0, -8.5]])
    for dtype in (cd.float16, cd.bfloat16):
        actual = cd.matrix_exp(cd.tensor(a, dtype=dtype))
        wanted = cd.matrix_exp(cd.tensor(a, dtype=dtype).float()).to(dtype)
        assert actual.dtype is dtype
        assert actual.tolist() == wanted.tolist()


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 8])
def test_powers_of_matrices(n: int, rng: np.random.Generator) -> None:
    """Positive, negative and zero exponents agree with NumPy; the result has its own memory."""
    a = regular(rng, 3, batch=(2,))
    A = cd.tensor(a)
    actual = cd.linalg.matrix_power(A, n)
    close(actual / 10.0 ** max(n, 0), np.linalg.matrix_power(a, n) / 10.0 ** max(n, 0))
    actual.zero_()
    close(A.matrix_power(1), a)


def test_powers_refuse_fractions_and_oblong_matrices() -> None:
    """The errors have PyTorch's classes."""
    with pytest.raises(TypeError, match=r"argument 'n' \(position 2\) must be int, not float"):
        cd.matrix_power(cd.eye(2), 1.5)
    with pytest.raises(RuntimeError, match=r"linalg.matrix_power: A must be batches of square matrices, but they are"):
        cd.matrix_power(cd.ones(2, 3), 2)
