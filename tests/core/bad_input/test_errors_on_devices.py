"""A failing kernel's error is replaced by the operator's, so the error is the same on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import pytest


class DeviceTensors:
    """Tensors of one device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def ones(self, *shape: int) -> Any:
        """Return floats."""
        return cd.ones(shape, device=self.device)

    def indices(self, *shape: int) -> Any:
        """Return indices, all zero."""
        return cd.zeros(shape, dtype=cd.int64, device=self.device)


class Refusal(NamedTuple):
    """A call and its error, which has the same class and text on every device."""

    call: Callable[[DeviceTensors], Any]
    error: type[Exception]
    text: str


I, N, R = IndexError, NotImplementedError, RuntimeError  # noqa: E741 - a table: a row a line
ROWS = {
    "gather-rank": Refusal(lambda s: s.ones(2, 3).gather(1, s.indices(1)), R, r"^Index tensor must have the same number of dimensions as input tensor$"),
    "gather-size": Refusal(lambda s: s.ones(2, 3).gather(1, s.indices(3, 1)), R, r"expected index \[3, 1\] to be no larger than self \[2, 3\] apart from dimension 1"),
    "gather-bounds": Refusal(lambda s: s.ones(2, 3).gather(1, s.indices(2, 1) + 7), R, r"gather\(\): index 7 is out of bounds for dimension 1 with size 3"),
    "scatter-index-rank": Refusal(lambda s: s.ones(2, 3).scatter_add(1, s.indices(2), s.ones(2)), R, r"same number of dimensions as self tensor"),
    "scatter-source-rank": Refusal(lambda s: s.ones(2, 3).scatter_add(1, s.indices(2, 3), s.ones(6)), R, r"^Index tensor must have the same number of dimensions as src tensor$"),
    "scatter-source-size": Refusal(lambda s: s.ones(2, 3).scatter_add(1, s.indices(2, 3), s.ones(1, 1)), R, r"to be no larger size than src \[1, 1\]"),
    "scatter-put-source-size": Refusal(lambda s: s.ones(2, 3).scatter(1, s.indices(2, 3), s.ones(1, 1)), R, r"to be no larger size than src \[1, 1\]"),
    "index-select-matrix": Refusal(lambda s: s.ones(2, 3).index_select(0, s.indices(1, 1)), I, r"^index_select\(\): Index is supposed to be a vector$"),
    "index-select-bounds": Refusal(lambda s: s.ones(2, 3).index_select(0, s.indices(1) - 1), I, r"index -1 is out of bounds for dimension 0 with size 2"),
    "index-select-of-scalar": Refusal(lambda s: s.ones().index_select(0, s.indices(2)), R, r"^index_select\(\): Index to scalar can have only 1 value, got 2 value\(s\)$"),
    "index-add-matrix": Refusal(lambda s: s.ones(2, 3).index_add(0, s.indices(1, 1), s.ones(1, 3)), I, r"^index_add\(\): Index is supposed to be a vector, but got 2 dims$"),
    "index-add-source": Refusal(lambda s: s.ones(2, 3).index_add(0, s.indices(1), s.ones(2, 3)), R, r"^index_add\(\): Number of indices \(1\) should be equal to source\.size\(dim\): \(2\), for dim: 0$"),
    "index-add-bounds": Refusal(lambda s: s.ones(2, 3).index_add(0, s.indices(1) + 2, s.ones(1, 3)), I, r"index 2 is out of bounds for dimension 0 with size 2"),
    "index-put-too-many": Refusal(lambda s: s.ones(2).index_put((s.indices(1), s.indices(1)), s.ones(1)), I, r"^too many indices for tensor of dimension 1 \(got 2\)$"),
    "index-bounds": Refusal(lambda s: s.ones(2)[s.indices(1) + 5], I, r"^index 5 is out of bounds for dimension 0 with size 2$"),
    "tril-of-vector": Refusal(lambda s: s.ones(2).tril(), R, r"^tril/triu: input tensor must have at least 2 dimensions$"),
    "triu-of-vector": Refusal(lambda s: s.ones(2).triu(), R, r"^tril/triu: input tensor must have at least 2 dimensions$"),
    "round-ints-to-decimals": Refusal(lambda s: s.indices(2).round(decimals=2), N, r"^\"round\" not implemented for 'Long' with decimals: expected a floating dtype$"),
    "mean-as-ints": Refusal(lambda s: s.ones(2).mean(dtype=cd.int32), R, r"^mean\(\): could not infer output dtype\. Optional dtype must be"),
    "solve-vectors": Refusal(lambda s: cd.linalg.solve(s.ones(2), s.ones(2)), R, r"^linalg\.solve: The input tensor A must have at least 2 dimensions\.$"),
    "solve-sizes": Refusal(lambda s: cd.linalg.solve(s.ones(2, 2), s.ones(3, 1)), R, r"^linalg\.solve: Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)$"),
    "solve-oblong": Refusal(lambda s: cd.linalg.solve(s.ones(2, 3), s.ones(3, 1)), R, r"^linalg\.solve: A must be batches of square matrices, but they are 2 by 3 matrices$"),
    "inv-oblong": Refusal(lambda s: cd.linalg.inv(s.ones(2, 3)), R, r"^linalg\.inv: A must be batches of square matrices, but they are 2 by 3 matrices$"),
    "cholesky-oblong": Refusal(lambda s: cd.linalg.cholesky(s.ones(2, 3)), R, r"^linalg\.cholesky: A must be batches of square matrices, but they are 2 by 3 matrices$"),
    "svd-of-vector": Refusal(lambda s: cd.linalg.svd(s.ones(3)), R, r"^linalg\.svd: The input tensor A must have at least 2 dimensions\.$"),
    "svdvals-of-vector": Refusal(lambda s: cd.linalg.svdvals(s.ones(3)), R, r"^linalg\.svd: The input tensor A must have at least 2 dimensions\.$"),
    "triangle-of-vector": Refusal(lambda s: cd.linalg.solve_triangular(s.ones(3), s.ones(3, 1), upper=True), R, r"^linalg\.solve_triangular: The input tensor A must have at least 2 dimensions\.$"),
    "triangle-sizes": Refusal(lambda s: cd.linalg.solve_triangular(s.ones(3, 3), s.ones(2, 1), upper=True), R, r"^linalg\.solve_triangular: Incompatible shapes of A and B for the equation AX = B \(3x3 and 2x1\)$"),
    "ldl-oblong": Refusal(lambda s: cd.linalg.ldl_factor(s.ones(3, 2)), R, r"linalg\.ldl_factor_ex: A must be batches of square matrices, but they are 3 by 2 matrices$"),
    "ldl-sizes": Refusal(lambda s: cd.linalg.ldl_solve(s.ones(3, 3), s.indices(3) + 1, s.ones(2, 1)), R, r"linalg\.ldl_solve: each A matrix is 3 by 3 but each b matrix is 2 by 1$"),
    "addmm-vector": Refusal(lambda s: cd.addmm(s.ones(2, 2), s.ones(2, 2), s.ones(2)), R, r"^mat2 must be a matrix, got 1-D tensor$"),
    "addmm-first-vector": Refusal(lambda s: cd.addmm(s.ones(2, 2), s.ones(2), s.ones(2, 2)), R, r"^mat1 must be a matrix, got 1-D tensor$"),
    "addmm-input": Refusal(lambda s: cd.addmm(s.ones(2, 2, 2), s.ones(2, 2), s.ones(2, 2), beta=0), R, r"expand|the number of sizes provided"),
    "addmv-matrix": Refusal(lambda s: cd.addmv(s.ones(2), s.ones(2, 2), s.ones(2, 1)), R, r"^vector \+ matrix @ vector expected, got 1, 2, 2$"),
    "baddbmm-batches": Refusal(lambda s: cd.baddbmm(s.ones(2, 2, 2), s.ones(2, 2, 2), s.ones(3, 2, 2)), R, r"^Expected size for first two dimensions of batch2 tensor to be: \[2, 2\] but got: \[3, 2\]\.$"),
    "addbmm-batches": Refusal(lambda s: cd.addbmm(s.ones(2, 2), s.ones(2, 2, 2), s.ones(3, 2, 2)), R, r"^Expected size for first two dimensions of batch2 tensor to be: \[2, 2\] but got: \[3, 2\]\.$"),
    "poisson-rate": Refusal(lambda s: cd.poisson(-s.ones(2)), R, r"^invalid Poisson rate, expected rate to be non-negative$"),
    "binomial-sizes": Refusal(lambda s: cd.binomial(s.ones(2), s.ones(3)), R, r"^The size of tensor a \(2\) must match the size of tensor b \(3\)"),
    "pivots": Refusal(lambda s: cd.lu_unpack(s.ones(2, 2), (s.indices(2) + 5).int()), R, r"^pivots passed to lu_unpack must be between 1 and LU\.size\(-2\) inclusive"),
}  # fmt: skip


@pytest.mark.usefixtures("lantern")
@pytest.mark.filterwarnings("ignore:.*falls back")
@pytest.mark.parametrize("device", ["cpu", "lantern:1", "ember"])
@pytest.mark.parametrize("name", ROWS)
def test_a_failed_kernel_is_explained_by_the_operator(name: str, device: str) -> None:
    """Class and text are the operator's, whichever kernel failed.

    An asynchronous device reports errors that depend on values at the next synchronisation, with its name before the
    text.
    """
    row = ROWS[name]
    text = row.text if device == "cpu" else row.text.replace("^", r"^(.* failed: )?")
    with cd.fallback("allow"), pytest.raises(row.error, match=text):
        row.call(DeviceTensors(device)).tolist()


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_least_squares_of_what_is_not_finite(driver: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The error is raised, and LAPACK prints nothing."""
    a = cd.full((2, 3, 3), 1.0)
    a[1, 0, 0] = float("nan")
    with pytest.raises(
        RuntimeError, match="The least squares solution could not be computed: the algorithm for computing"
    ):
        cd.linalg.lstsq(a, cd.ones(2, 3, 1), driver=driver)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("function", ["svd", "svdvals", "eig", "eigvals"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_spectra_of_what_is_not_finite(function: str, value: float) -> None:
    """The error of the singular values names the matrix of the batch, and both errors name the kind of value."""
    x = cd.eye(3).expand(2, 3, 3).clone()
    x[1, 0, 2] = value
    text = (
        r"linalg\.svd: \(Batch element 1\): The algorithm failed to converge because the input matrix contained non-fin"
        if "svd" in function
        else r"linalg\.eig: input tensor should not contain infs or NaNs\."
    )
    with pytest.raises(cd.linalg.LinAlgError, match=text):
        getattr(cd.linalg, function)(x)
