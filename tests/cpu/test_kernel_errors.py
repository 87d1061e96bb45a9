"""Errors of kernels that are called directly, without the core, which replaces them by its own."""

from typing import Any

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra.dtypes import int64
from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.kernels import table

GENERAL = candelabra_arrayapi.kernels(np, TO_NUMPY, strided=False)
CPU = table()
BOTH = (GENERAL, CPU)


def zeros(*shape: int, dtype: Any = np.float64) -> Any:
    """Return an array of zeros."""
    return np.zeros(shape, dtype)


INDEX = zeros(2, 4, dtype=np.int64)
CASES: dict[str, tuple[tuple[dict[str, Any], ...], tuple[Any, ...], type[Exception], str]] = {
    "gather": (
        BOTH, (zeros(2, 3), 0, INDEX), ValueError,
        r"index of shape \(2, 4\) does not fit an input of shape \(2, 3\) along dim 0",
    ),
    "scatter_src": (
        BOTH, (zeros(4), 0, zeros(3, dtype=np.int64), zeros(2)), ValueError,
        r"index of shape \(3,\) is larger than the source of shape \(2,\)",
    ),
    "index_select": (BOTH, (zeros(2, 3), 0, INDEX), ValueError, "the index must be a vector, got 2 dims"),
    "index_select of a number": (
        BOTH, (zeros(), 0, zeros(2, dtype=np.int64)), ValueError, "of a 0-d input must have one element, got 2",
    ),
    "index_add": ((GENERAL,), (zeros(2, 3), 0, INDEX, zeros(2, 3)), ValueError, "the index must be a vector and the"),
    "index_add with a matrix": ((CPU,), (zeros(2, 3), 0, INDEX, zeros(2, 3)), ValueError, "a vector, got 2 dims"),
    "index_add of other sizes": (
        (CPU,), (zeros(4), 0, zeros(3, dtype=np.int64), zeros(2)), ValueError,
        r"a source of shape \(2,\) does not fit an input of shape \(4,\) along dim 0",
    ),
    "round": (BOTH, (zeros(2, dtype=np.int32), 1), NotImplementedError, "expects a floating dtype, got int32"),
    "tril": ((GENERAL,), (zeros(2), 0), ValueError, r"a triangle needs at least 2 dims, got shape \(2,\)"),
    "triu": ((GENERAL,), (zeros(2), 0), ValueError, r"a triangle needs at least 2 dims, got shape \(2,\)"),
    "cat": ((GENERAL,), ([zeros()], 0), ValueError, "zero-dimensional arrays cannot be concatenated"),
    "conv": (
        BOTH, (zeros(1, 2, 2, 5), zeros(3, 2, 3, 3), None, (1, 1), (0, 0), (1, 1), 1), ValueError,
        "is larger than the padded input|does not fit a weight",
    ),
    "as_strided": (
        (GENERAL,), (zeros(4), (2, 3), (3, 1), 0, ((1,), 0, 0, 6)), IndexError, "needs 6 elements, the array has 4",
    ),
    "vdot": ((CPU,), (zeros(2), zeros(3)), ValueError, r"two vectors of one length, got shapes \(2,\) and \(3,\)"),
    "random_poisson": ((CPU,), (zeros(2) - 1, 0, 0), ValueError, r"expects rates >= 0, got -1\.0"),
    "random_bernoulli": (
        (CPU,), (zeros(2) + 2, (2,), 0, 0, 0), ValueError, r"expects probabilities in \[0, 1\], got 2\.0 to 2\.0",
    ),
    "pdist": ((CPU,), (zeros(2, 3), -1.0), ValueError, r"expects a floating matrix and p >= 0, got 2 dims .* p=-1\.0"),
    "scatter_planes": (
        (CPU,), (zeros(1, 2), zeros(1, 2, dtype=np.int64) + 9, 4, False), IndexError, "for a plane of 4 elements",
    ),
    "addmm": ((CPU,), (zeros(2), zeros(2), zeros(2), 1, 1), ValueError, "expected 2 dims and one dtype, got 1 dims"),
    "addmm of a matrix and a vector": (
        (CPU,), (zeros(2), zeros(2, 2), zeros(2), 1, 1), ValueError, "expected a matrix, got 1 dims",
    ),
    "addmm with a large input": (
        (CPU,), (zeros(3, 2, 2), zeros(2, 2), zeros(2, 2), 0, 1), ValueError, r"\(3, 2, 2\) does not broadcast to",
    ),
    "addmv": ((CPU,), (zeros(2), zeros(2, 2), zeros(2, 2), 1, 1), ValueError, "expected a vector, got 2 dims"),
    "baddbmm": (
        (CPU,), (zeros(2), zeros(1, 2, 2), zeros(2, 2, 2), 1, 1), ValueError, "of shapes .* do not match",
    ),
    "addbmm": ((CPU,), (zeros(2), zeros(1, 2, 2), zeros(2, 2, 2), 1, 1), ValueError, "of shapes .* do not match"),
    "cross_product": ((CPU,), (zeros(2), zeros(2), 0), ValueError, "vectors of 3 elements along dim 0"),
    "mean": ((CPU,), (zeros(2), None, False, int64), ValueError, r"mean\(\) expects a floating or complex dtype"),
    "kthvalue": ((CPU,), (zeros(2), 3, 0, False), ValueError, "expects k in 1 to 2, got 3"),
    "median_dim": ((CPU,), (zeros(2, 0), 1, False), ValueError, "expects a non-empty dim 1, got shape"),
    "topk": ((CPU,), (zeros(2), 3, 0, True, True), ValueError, "expects real numbers and k in 0 to 2, got"),
    "t": ((CPU,), (zeros(1, 2, 3),), ValueError, "expects at most 2 dims, got 3"),
    "expand": ((CPU,), (zeros(1, 2), (2,)), ValueError, "needs at least 2 sizes, got 1"),
    "expand of a dim": ((CPU,), (zeros(2), (3,)), ValueError, "a dim of size 2 does not expand to 3"),
    "view_as_complex": ((CPU,), (zeros(3),), ValueError, "expected pairs of float32 or float64, got"),
    "linalg_solve_ex": ((CPU,), (zeros(2, 2), zeros(3, 1)), ValueError, "expects matrices of matching shapes"),
    "linalg_geqrf": ((CPU,), (zeros(3),), ValueError, "expected a matrix or a batch of matrices, got shape"),
    "triangular_solution": (
        (CPU,), (zeros(2, 2), zeros(3, 1), True, False), ValueError, "shapes of the matrices do not match",
    ),
    "linalg_householder_product": (
        (CPU,), (zeros(2, 3), zeros(3)), ValueError, "shapes of the matrices do not match",
    ),
    "linalg_ldl_factor_ex": ((CPU,), (zeros(2, 3), False), ValueError, r"expects square matrices, got \(2, 3\)"),
    "linalg_ldl_solve": (
        (CPU,), (zeros(2, 2), zeros(2, dtype=np.int32), zeros(3, 1), False), ValueError, "matrices do not match",
    ),
    "pivots_to_permutation": (
        (CPU,), (zeros(2, dtype=np.int32) + 5, 3), ValueError, "pivots must be in 1 to 3, got 5 to 5",
    ),
}  # fmt: skip
"""The tables, the arguments, the error and its text; the operator's name ends at the first space."""


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_reports_arguments_that_do_not_fit(case: str) -> None:
    """The error names the expected and the actual argument."""
    tables, args, error, text = CASES[case]
    for kernels in tables:
        with pytest.raises(error, match=text):
            kernels[case.split(" ")[0]](*args)
