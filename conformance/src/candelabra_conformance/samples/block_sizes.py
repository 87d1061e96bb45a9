"""Results of one element, and of several hundred with a remainder, of operators whose other samples have none.

A kernel that divides its work into blocks is tried with less than a block, and with more than one of 256 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import factorizable, hermitian, matrix
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs
from candelabra_conformance.samples.sample import HERE, LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

MANY: Final = 301
"""The number of rows or matrices: one block of 256, and 45 elements more, which is no multiple of 4."""
GRID: Final = 65_539
"""More than the largest number of blocks along the second dim of a grid."""
Arguments = Callable[[Maker], tuple[Any, ...]]

# -- one element ------------------------------------------------------------------------------------------------------
ONE: Final[dict[str, Arguments]] = {
    "cat": lambda t: ((t(1), t(0)),),
    "stack": lambda t: ((t(),),),
    "flip": lambda t: (t(1, 1), (0,)),
    "gather": lambda t: (t(3), 0, t.index(2)),
    "index": lambda t: (t(3), (t.index(2),)),
    "index_select": lambda t: (t(3), 0, t.index(2)),
    "index_add": lambda t: (t(1), 0, t.index(0, 0), t(2)),
    "index_put": lambda t: (t(1), (t.index(0),), t(1)),
    "scatter_add": lambda t: (t(1), 0, t.index(0, 0), t(2)),
    "scatter_src": lambda t: (t(1), 0, t.index(0), t(1)),
    "scatter_planes": lambda t: (t(1), t.index(0), 1, True),
    "basic_index_adjoint": lambda t: (t(1), (1,), (slice(0, 1, 1),)),
    "basic_index_scatter": lambda t: (t(1), t(1), (slice(0, 1, 1),)),
    "embedding": lambda t: (t(4, 1), t.index(2)),
    "resample": lambda t: (t(3), 0, t.index(1), t(1, 2)),
    "normalize_backward": lambda t: _normalized_backward(t),
    "normalize_along": lambda t: (t(1, 1), t(1, 1), t(1, 1), t.array([[10.0]]), (1,)),
    "normalize_parameters_backward": lambda t: (t(1, 1), t(1, 1), t(1, 1), t.array([[10.0]]), (0,), True),
    "random_multinomial": lambda t: (t.array([2.0]), 1, True, 5, 5),
    "kthvalue": lambda t: (t(1, 1), 1, 1),
    "fft_c2r": lambda t: (t(1, 1).real.astype(t.numpy), (1,), "backward", 1),
    "fft_r2c": lambda t: (t(1, 1), (1,), "backward", True),
    "linalg_vecdot": lambda t: (t(1, 3), t(1, 3)),
    "triangular_solution": lambda t: (matrix(t, 1, 1), t(1, 1), False, False),
    "linalg_ldl_solve": lambda t: (matrix(t, 1, 1).real.astype(t.numpy), t.index(1), t(1, 1)),
    "linalg_inv_ex": lambda t: (matrix(t, 1, 1),),
    "linalg_det": lambda t: (matrix(t, 1, 1, 1),),
    "linalg_slogdet": lambda t: (matrix(t, 1, 1, 1),),
    "linalg_det_backward": lambda t: (t(1), t.array([[[2.0]]]), t.array([2.0])),
    "linalg_cholesky_ex": lambda t: (hermitian(t, 1, 1),),
    "linalg_lu_factor_ex": lambda t: (matrix(t, 1, 1),),
    "linalg_svdvals": lambda t: (matrix(t, 1, 1),),
    "linalg_eigvalsh": lambda t: (hermitian(t, 1, 1), "L"),
    "linalg_householder_product": lambda t: (t(1, 1), t(1, low=0.3, high=1.2)),
}


def _normalized_backward(t: Maker) -> tuple[Any, ...]:
    x = t(1, 1)
    return t(1, 1), x, x.copy(), t.array([[10.0]]), t(1), (1,)


@inputs(*ONE)
def of_one_element(t: Maker) -> Iterator[Sample]:
    """Yield calls whose result has dims and one element."""
    yield sample(*ONE[t.operator](t), kind=LENGTH_ONE, gradient=False)


FACTORS: Final[dict[str, tuple[Callable[[Maker, tuple[int, ...]], tuple[Any, ...]], Any]]] = {
    "linalg_eig": (lambda t, batch: (matrix(t, *batch),), choices.of_eig),
    "linalg_eigvals": (lambda t, batch: (matrix(t, *batch),), choices.of_eigvals),
    "linalg_eigh": (lambda t, batch: (hermitian(t, *batch), "L"), choices.of_eigh),
    "linalg_geqrf": (lambda t, batch: (matrix(t, *batch),), choices.of_reflections),
    "linalg_qr": (lambda t, batch: (matrix(t, *batch), "reduced"), choices.of_qr),
    "linalg_svd": (lambda t, batch: (matrix(t, *batch), False), choices.of_svd),
    "linalg_ldl_factor_ex": (lambda t, batch: (hermitian(t, *batch),), choices.of_ldl(False)),
}
"""Factors that are unique only up to a choice, with the function that does not depend on it."""


@inputs(*FACTORS)
def factors_of_one_and_many(t: Maker) -> Iterator[Sample]:
    """Yield a matrix of one element, and several hundred matrices."""
    arguments, of = FACTORS[t.operator]
    yield sample(*arguments(t, (1, 1)), kind=LENGTH_ONE, of=of, gradient=False)
    yield sample(*arguments(t, (MANY, 2, 2)), kind=LARGE, of=of, gradient=False)


# -- no elements ------------------------------------------------------------------------------------------------------
NONE: Final[dict[str, Arguments]] = {
    "addbmm": lambda t: (t(0, 3), t(2, 0, 4), t(2, 4, 3)),
    "scatter_extreme": lambda t: (t(0), 0, t.indices(0, below=1), t(0), "prod", True),
    "scatter_planes": lambda t: (t(0, 3), t.indices(0, 3, below=4), 4, True),
}


@inputs(*NONE)
def of_no_elements(t: Maker) -> Iterator[Sample]:
    """Yield calls whose result has no elements."""
    yield sample(*NONE[t.operator](t), kind=ZERO_SIZE, gradient=False)


# -- several hundred --------------------------------------------------------------------------------------------------
SEVERAL: Final[dict[str, Arguments]] = {
    "mean": lambda t: (t(MANY, 3), 1),
    "sum": lambda t: (t(MANY, 3), 1),
    "nansum": lambda t: (t(MANY, 3), 1),
    "nanmean": lambda t: (t(MANY, 3), 1),
    "prod": lambda t: (t(MANY, 3), 1),
    "logsumexp": lambda t: (t(MANY, 3), 1),
    "linalg_vector_norm": lambda t: (t(MANY, 3), 2.0, 1),
    "linalg_vecdot": lambda t: (t(MANY, 3), t(MANY, 3)),
    "log_gamma_slope": lambda t: (_repeated(t, 0.25, 0.5, 6.0, 5.0), _repeated(t, 0.5, 0.25, 1.0, 2.5)),
    "index_add": lambda t: (t(MANY), 0, t.indices(2 * MANY, below=MANY), t(2 * MANY)),
    "scatter_add": lambda t: (t(MANY), 0, t.indices(2 * MANY, below=MANY), t(2 * MANY)),
    "basic_index_adjoint": lambda t: (t(MANY), (MANY + 1,), (slice(0, MANY, 1),)),
    "basic_index_scatter": lambda t: (t(MANY), t(MANY), (slice(0, MANY, 1),)),
    "addmv": lambda t: (t(MANY), t(MANY, 3), t(3)),
    "addbmm": lambda t: (t(MANY, 3), t(2, MANY, 3), t(2, 3, 3)),
    "cross_product": lambda t: (t(MANY, 3), t(MANY, 3), 1),
    "nanmedian_dim": lambda t: (t(MANY, 3), 1),
    "median_dim": lambda t: (t(MANY, 3), 1),
    "kthvalue": lambda t: (t(MANY, 3), 2, 1),
    "scatter_extreme": lambda t: (t(MANY), 0, t.indices(2 * MANY, below=MANY), t(2 * MANY), "amax", True),
    "tally": lambda t: (t.indices(2 * GRID, below=GRID), t(2 * GRID, low=0, high=1), GRID),
    "kron": lambda t: (t(MANY), t(2)),
    "linalg_inv_ex": lambda t: (matrix(t, MANY, 2, 2),),
    "linalg_det": lambda t: (matrix(t, MANY, 2, 2),),
    "linalg_slogdet": lambda t: (matrix(t, MANY, 2, 2),),
    "linalg_det_backward": lambda t: _slopes_of_determinants(t, MANY),
    "linalg_solve_ex": lambda t: (matrix(t, MANY, 2, 2), t(MANY, 2, 1)),
    "linalg_cholesky_ex": lambda t: (hermitian(t, MANY, 2, 2),),
    "linalg_lu_factor_ex": lambda t: (matrix(t, MANY, 2, 2, shifted=True),),
    "linalg_svdvals": lambda t: (matrix(t, MANY, 2, 2),),
    "linalg_eigvalsh": lambda t: (hermitian(t, MANY, 2, 2), "L"),
    "linalg_ldl_solve": lambda t: (_lower(t, MANY, 2, 2), np.tile(t.index(1, 2), (MANY, 1)), t(MANY, 2, 1)),
    "linalg_lstsq": lambda t: (matrix(t, MANY, 3, 2), t(MANY, 3, 1), 1e-4, "gelsd"),
    "linalg_householder_product": lambda t: (t(MANY, 3, 2, low=-0.7, high=0.7), t(MANY, 2, low=0.3, high=1.2)),
    "linalg_ormqr": lambda t: _applied(t, MANY),
    "triangular_solution": lambda t: (np.tril(matrix(t, MANY, 2, 2)), t(MANY, 2, 1), False, False),
}


@inputs(*SEVERAL)
def of_several_hundred(t: Maker) -> Iterator[Sample]:
    """Yield calls whose result has several hundred elements, or matrices, and no multiple of a block."""
    if t.operator.startswith(("linalg", "triangular")) and not factorizable(t.dtype) and "vec" not in t.operator:
        return
    yield sample(*SEVERAL[t.operator](t), kind=LARGE, gradient=False)


@inputs("random_bernoulli")
def of_many_probabilities(t: Maker) -> Iterator[Sample]:
    """Yield more probabilities than a grid has blocks along its second dim."""
    if t.is_floating:
        probabilities = t.array(np.resize([0.25, 0.5, 0.75], GRID))
        yield sample(probabilities, (GRID,), 1, 2, device=HERE, kind=LARGE, gradient=False)


WRITTEN: Final[dict[str, Arguments]] = {
    "copied": lambda t: (t(MANY), t(MANY)),
    "filled": lambda t: (t(MANY), t()),
    "index_put": lambda t: (t(MANY), (t.indices(5, below=MANY),), t(), False),
}


@inputs(*WRITTEN)
def of_long_targets(t: Maker) -> Iterator[Sample]:
    """Yield targets of in-place kernels, which are tried in every layout."""
    yield sample(*WRITTEN[t.operator](t), gradient=False, note="several hundred")


def _repeated(t: Maker, *values: float) -> Any:
    return np.resize(t.array(values), MANY)


def _lower(t: Maker, *shape: int) -> Any:
    return np.tril(matrix(t, *shape).real).astype(t.numpy)


def _slopes_of_determinants(t: Maker, count: int) -> tuple[Any, ...]:
    whole = matrix(t, count, 2, 2)
    return t(count), whole, np.asarray(np.linalg.det(whole)).astype(t.numpy)


def _applied(t: Maker, count: int) -> tuple[Any, ...]:
    return t(count, 2, 2, low=-0.7, high=0.7), t(count, 2, low=0.3, high=1.2), t(count, 2, 1), True, False
