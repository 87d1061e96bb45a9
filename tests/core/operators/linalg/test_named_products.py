"""Named products of linear algebra, and low-rank approximations."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest

ALL = ["uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return small integers, which are exact in every dtype."""
    values = rng.integers(0, 4, shape).astype("complex128" if dtype[0] == "c" else "float64")
    return values + 1j * rng.integers(0, 4, shape) if dtype[0] == "c" else values


def tensor(values: Any, dtype: str) -> Any:
    """Return a tensor of a dtype that NumPy may lack."""
    return cd.tensor(values).to(getattr(cd, dtype))


def exact(actual: Any, expected: Any) -> None:
    """Assert that shape and every element are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    wide = cd.complex128 if actual.is_complex() else cd.float64
    np.testing.assert_array_equal(actual.detach().to(wide).numpy(), expected)


@pytest.mark.parametrize("dtype", ["int8", "int64", *ALL[4:]])
def test_cross_products(dtype: str, rng: np.random.Generator) -> None:
    """The dim is arbitrary, and the other dims broadcast."""
    a, b = numbers(rng, (4, 3), dtype), numbers(rng, (2, 1, 3), dtype)
    actual = cd.linalg.cross(tensor(a[None], dtype), tensor(b, dtype))
    assert actual.dtype is getattr(cd, dtype)
    exact(actual, np.cross(a[None], b))
    exact(cd.linalg.cross(tensor(a.T, dtype), tensor(a.T[:, ::-1], dtype), dim=0), np.cross(a, a[::-1]).T)


@pytest.mark.parametrize("dtype", ALL)
def test_vecdot_conjugates_its_first_argument(dtype: str, rng: np.random.Generator) -> None:
    """Any dim, broadcast shapes; an empty product is 0."""
    a, b = numbers(rng, (3, 4), dtype), numbers(rng, (2, 1, 4), dtype)
    actual = cd.linalg.vecdot(tensor(a, dtype), tensor(b, dtype))
    assert actual.dtype is getattr(cd, dtype)
    exact(actual, np.vecdot(a, b))
    exact(cd.linalg.vecdot(tensor(a, dtype), tensor(a, dtype), dim=0), (a.conj() * a).sum(0))
    exact(cd.linalg.vecdot(cd.zeros(2, 0), cd.zeros(2, 0)), [0, 0])
    tracked = tensor(a.real, "float64").requires_grad_()
    exact(cd.linalg.vecdot(tracked, tensor(b.real, "float64")), np.vecdot(a.real, b.real))


@pytest.mark.parametrize("device", ["cpu", "lantern"])
def test_vecdot_counts_its_dim_in_the_broadcast_shape(lantern: Any, device: str) -> None:
    """The vectors' dim broadcasts too, and a tensor with fewer dims is aligned at the last dims."""
    x = cd.tensor(np.arange(48.0, dtype="float32").reshape(2, 8, 3), device=device)
    for other in (np.arange(8.0, dtype="float32").reshape(8, 1), np.ones((1, 3), "float32")):
        actual = cd.linalg.vecdot(x, cd.tensor(other, device=device), dim=1)
        np.testing.assert_allclose(actual.cpu().numpy(), (x.cpu().numpy() * other).sum(1))


@pytest.mark.parametrize("dtype", [d for d in ALL if "16" not in d])
def test_vandermonde_matrices(dtype: str, rng: np.random.Generator) -> None:
    """Powers start at 0; integers give int64."""
    x = numbers(rng, (2, 3), dtype)
    actual = cd.linalg.vander(tensor(x, dtype))
    assert actual.dtype is (cd.int64 if "int" in dtype else getattr(cd, dtype))
    exact(actual, x[..., None] ** np.arange(3))
    exact(cd.linalg.vander(tensor(x, dtype), N=5), x[..., None] ** np.arange(5))
    exact(cd.linalg.vander(cd.tensor(3.0), N=3), [[1, 3, 9]])


@pytest.mark.parametrize("sizes", [(2, 3), (5, 2, 4), (3, 7, 2, 6), (4, 4, 4, 4, 4), (1, 9, 1, 9, 1, 9)])
def test_multi_dot_is_the_product_in_any_order(sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    """Chains have two or more matrices; the first and the last may be vectors."""
    chain = [numbers(rng, (a, b), "float64") for a, b in zip(sizes, [*sizes[1:], 2], strict=True)]
    expected = np.linalg.multi_dot(chain)
    exact(cd.linalg.multi_dot([cd.tensor(a) for a in chain]), expected)
    row, column = chain[0][0], chain[-1][:, 0]
    exact(
        cd.linalg.multi_dot([cd.tensor(a) for a in (row, *chain[1:])]),
        row @ np.linalg.multi_dot([*chain[1:], np.eye(2)]),
    )
    exact(cd.linalg.multi_dot([cd.tensor(a) for a in (*chain[:-1], column)]), expected[:, 0])
    exact(cd.linalg.multi_dot([cd.tensor(a) for a in (row, *chain[1:-1], column)]), expected[0, 0])


def test_products_refuse_what_does_not_fit() -> None:
    """The errors are PyTorch's."""
    a, cross, chain = cd.eye(2), cd.linalg.cross, cd.linalg.multi_dot
    cases: list[tuple[Any, str]] = [
        (lambda: cross(cd.ones(2), cd.ones(2)), "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"),
        (lambda: cross(cd.ones(3), cd.ones(2, 3)), "linalg.cross: inputs must have the same number of dimensions"),
        (lambda: cross(cd.tensor(1.0), cd.tensor(1.0)), "dimension -1 must have length 3. Got no dimensions"),
        (lambda: chain([a]), r"multi_dot\(\): expected at least 2 tensors but got 1"),
        (lambda: chain([a, cd.ones(3, 3)]), r"multi_dot\(\): tensors 0 and 1 with shapes \[2, 2\] and \[3, 3\]"),
        (lambda: chain([a, cd.ones(1, 2, 2), a]), r"multi_dot\(\): tensor 1 must be 2D but got 3D"),
        (lambda: chain([cd.ones(1, 2, 2), a]), r"multi_dot\(\): the first tensor must be 1D or 2D but got 3D"),
        (lambda: chain([a, cd.tensor(1.0)]), r"multi_dot\(\): the last tensor must be 1D or 2D but got 0D"),
        (lambda: chain([a, a.double()]), r"multi_dot\(\): all tensors must have be the same dtype but tensor 0 is"),
        (lambda: cd.linalg.vander(cd.ones(3), N=1), "N must be greater than 1"),
        (lambda: cd.linalg.vander(cd.tensor(1.0)), "N must be greater than 1"),
        (lambda: cd.linalg.vander(cd.ones(2).bool()), "linalg.vander supports floating point, complex, and integer"),
        (lambda: cd.linalg.vecdot(cd.ones(2), cd.ones(3)), "size"),
    ]  # fmt: skip
    for call, words in cases:
        with pytest.raises(RuntimeError, match=words):
            call()


def test_other_names_of_products(rng: np.random.Generator) -> None:
    """linalg.matmul is matmul; linalg.diagonal is a view of the last two dims."""
    a = cd.tensor(numbers(rng, (2, 3, 3), "float64"))
    assert cd.equal(cd.linalg.matmul(a, a), a @ a)
    assert cd.equal(cd.linalg.diagonal(a, offset=1), a.diagonal(1, -2, -1))
    cd.linalg.diagonal(a).zero_()
    assert not a.diagonal(0, 1, 2).any().item()


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (2, 12, 9)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_low_rank_is_found_by_random_projection(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """A matrix of rank 3 is restored from three singular triples; M is subtracted first."""
    left = rng.normal(size=(*shape[:-1], 3))
    right = rng.normal(size=(*shape[:-2], 3, shape[-1]))
    a = (left @ right).astype(dtype) * (1 + 1j if dtype[0] == "c" else 1)
    U, S, V = cd.svd_lowrank(cd.tensor(a), q=3)
    np.testing.assert_allclose(((U * S.unsqueeze(-2)) @ V.mH).numpy(), a, atol=1e-9)
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(a, compute_uv=False)[..., :3])
    shifted = cd.svd_lowrank(cd.tensor(a + 1), q=3, M=cd.ones(*shape, dtype=getattr(cd, dtype)))
    np.testing.assert_allclose(shifted.S.numpy(), S.numpy())


def test_principal_components(rng: np.random.Generator) -> None:
    """They are the directions of largest variance, of the centred rows by default."""
    a = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 6)) + 5
    centred = a - a.mean(0)
    np.testing.assert_allclose(cd.pca_lowrank(cd.tensor(a), q=2).S.numpy(), np.linalg.svd(centred)[1][:2])
    plain = cd.pca_lowrank(cd.tensor(a), q=3, center=False).S.numpy()
    np.testing.assert_allclose(plain, np.linalg.svd(a)[1][:3])
    assert cd.pca_lowrank(cd.tensor(a)).V.shape == (6, 6)
    for function in (cd.svd_lowrank, cd.pca_lowrank):
        with pytest.raises(
            ValueError, match=r"q\(=7\) must be non-negative integer and not greater than min\(m, n\)=6"
        ):
            function(cd.tensor(a), q=7)
        with pytest.raises(ValueError, match=r"niter\(=1099511627776\) must be less than 2\*\*31"):
            cd.svd_lowrank(cd.ones(3, 2), q=1, niter=2**40)
        with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
            function(cd.tensor(a), niter=-1)


def test_the_older_svd_and_qr(rng: np.random.Generator) -> None:
    """As torch.svd, svd returns V, not its adjoint, and zeros without vectors; qr is reduced if ``some``."""
    a = rng.normal(size=(2, 4, 3)) + 1j * rng.normal(size=(2, 4, 3))
    A = cd.tensor(a)
    U, S, V = cd.svd(A)
    np.testing.assert_allclose(((U * S.unsqueeze(-2)) @ V.mH).numpy(), a, atol=1e-12)
    assert A.svd(some=False).U.shape == (2, 4, 4)
    U, S, V = A.svd(compute_uv=False)
    assert (U.shape, V.shape) == ((2, 4, 4), (2, 3, 3))
    assert not U.any().item()
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(a, compute_uv=False))
    assert cd.qr(A).Q.shape == (2, 4, 3)
    assert A.qr(some=False).Q.shape == (2, 4, 4)
    with pytest.raises(RuntimeError, match=r"linalg.svd: input should have at least 2 dimensions, but has 1"):
        cd.svd(cd.ones(2))


def test_the_older_lu(rng: np.random.Generator) -> None:
    """It returns two results, or three with infos, and writes to out=."""
    A = cd.tensor(rng.normal(size=(2, 3, 3)))
    LU, pivots = cd.lu(A)
    P, L, U = cd.lu_unpack(LU, pivots)
    np.testing.assert_allclose((P @ L @ U).numpy(), A.numpy(), atol=1e-12)
    assert cd.lu(A, get_infos=True)[2].tolist() == [0, 0]
    assert cd.lu_unpack(LU, pivots, unpack_data=False).L.shape == (0,)
    assert cd.lu_unpack(LU, pivots, unpack_pivots=False).P.shape == (0,)
    out = (cd.empty(0, dtype=cd.float64), cd.empty(0, dtype=cd.int32))
    assert cd.lu(A, out=out)[0] is out[0]
    assert cd.equal(out[0], LU)
    with pytest.raises(TypeError, match=r"lu\(\): argument 'out' must be a tuple of 2 Tensors"):
        cd.lu(A, out=out[:1])
    with pytest.raises(RuntimeError, match=r"U\[1,1\] is zero and using it on lu_solve"):
        cd.lu(cd.zeros(2, 2))
    assert math.isfinite(LU.sum().item())
