"""Array API kernels and composite bodies on a device without other kernels."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest

CALLS = {
    "inv": lambda a: cd.linalg.inv(a),
    "solve": lambda a: cd.linalg.solve(a, a[0]),
    "solve_triangular": lambda a: cd.linalg.solve_triangular(a, a[..., :2], upper=True, unitriangular=True),
    "triangular_solve": lambda a: cd.triangular_solve(a[..., :2], a, upper=False).solution,
    "det": lambda a: cd.linalg.det(a),
    "slogdet": lambda a: cd.linalg.slogdet(a).logabsdet,
    "cholesky": lambda a: cd.linalg.cholesky(a @ a.mH),
    "qr": lambda a: cd.linalg.qr(a).R.abs(),
    "r": lambda a: cd.linalg.qr(a, "r").R.abs(),
    "svd": lambda a: (lambda f: (f.U * f.S.unsqueeze(-2)) @ f.Vh)(cd.linalg.svd(a)),
    "svdvals": lambda a: cd.linalg.svdvals(a),
    "eigh": lambda a: cd.linalg.eigh(a.tril()).eigenvalues,
    "eigvalsh": lambda a: cd.linalg.eigvalsh(a, "U"),
    "pinv": lambda a: cd.linalg.pinv(a),
    "matrix_exp": lambda a: cd.linalg.matrix_exp(a / 4),
    "matrix_norm": lambda a: cd.linalg.matrix_norm(a, "nuc"),
    "vector_norm": lambda a: cd.linalg.vector_norm(a, 3, 1),
    "cross": lambda a: cd.linalg.cross(a, a + 1),
    "vecdot": lambda a: cd.linalg.vecdot(a, a + 1),
    "matrix_rank": lambda a: cd.linalg.matrix_rank(a),
}


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", CALLS)
def test_another_device_computes_the_same(lantern: Any, name: str, dtype: str, rng: np.random.Generator) -> None:
    """Results equal those of the CPU's kernels, without a fallback."""
    values = rng.normal(size=(2, 3, 3)) + 4 * np.eye(3)
    a = cd.tensor(values.astype("float32")).to(getattr(cd, dtype)) * (1 if dtype == "float32" else 1 + 0.5j)
    with cd.fallback("error"):
        found = CALLS[name](a.to("lantern"))
    expected = CALLS[name](a)
    assert found.device.type == "lantern"
    assert found.dtype is expected.dtype
    np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_breakdowns_are_reported(lantern: Any) -> None:
    """The info is 1 for a matrix without a finite result."""
    assert cd.linalg.inv_ex(cd.eye(2, device="lantern")).info.item() == 0
    assert cd.linalg.inv_ex(cd.full((2, 2), float("nan"), device="lantern")).info.item() == 1


@pytest.mark.parametrize("device", ["lantern", "ember"])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_pivots_become_permutations_by_composition(
    lantern: Any, shape: tuple[int, ...], device: str, rng: np.random.Generator
) -> None:
    """The result equals that of the CPU's kernel, on immutable arrays too."""
    LU, pivots, _ = cd.linalg.lu_factor_ex(cd.tensor(rng.normal(size=(*shape, 3)).astype("float32")))
    P = cd.lu_unpack(LU, pivots).P
    with cd.fallback("error"):
        found = cd.lu_unpack(LU.to(device), pivots.to(device)).P
    assert found.cpu().tolist() == P.tolist()


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, float("inf"), -float("inf")])
def test_norms_by_composition(lantern: Any, order: float, rng: np.random.Generator) -> None:
    """Every order is correct."""
    a = cd.tensor(rng.normal(size=(2, 3)).astype("float32"))
    with cd.fallback("error"):
        found = cd.linalg.vector_norm(a.to("lantern"), order, 1)
    np.testing.assert_allclose(found.cpu().numpy(), cd.linalg.vector_norm(a, order, 1).numpy(), rtol=1e-5)
