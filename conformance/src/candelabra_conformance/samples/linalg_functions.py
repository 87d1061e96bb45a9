"""Samples of inverses, determinants, powers and ranks as users call them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import (
    MANY,
    NO_MATRICES,
    NO_SQUARES,
    SQUARES,
    TALL,
    WIDE,
    cast,
    factorizable,
    half_read,
    hermitian,
    matrix,
    singular,
    wide,
)
from candelabra_conformance.samples.linalg_factors import ldl, lu
from candelabra_conformance.samples.linalg_spectra import eigh, qr, qr_part, singular_values, svd
from candelabra_conformance.samples.linalg_systems import cholesky, determinants, inverses
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import Generator, inputs, mistakes, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ORDINARY, ZERO_SIZE, Sample, sample

only(factorizable, "pseudo_inverse", "linalg_pinv", "pinverse", "linalg_matrix_rank")


def few(samples: Iterator[Sample], *, ordinary: int = 3) -> Iterator[Sample]:
    """Yield the first samples, and one without elements, for another name of a function with a full set of samples."""
    empty = False
    for call in samples:
        if call.kind == ORDINARY and ordinary:
            ordinary -= 1
            yield call
        elif call.kind == ZERO_SIZE and not empty:
            empty = True
            yield call


# -- other forms of an operator ---------------------------------------------------------------------------------------
CHECKED: Final = ({"check_errors": True}, {"check_errors": False})
FORMS: Final[dict[str, tuple[Generator, tuple[dict[str, Any], ...]]]] = {
    "linalg_inv_checked": (inverses, CHECKED),
    "linalg_cholesky_checked": (cholesky, CHECKED),
    "linalg_lu_factor_checked": (lu, CHECKED),
    "linalg_ldl_factor_checked": (ldl, CHECKED),
    "linalg_svd_driver": (svd, ({"driver": None},)),
    "linalg_svdvals_driver": (singular_values, ({"driver": None},)),
    "linalg_qr_mode": (qr, ({},)),
    "linalg_eigh_triangle": (eigh, ({},)),
    "linalg_eigvalsh_triangle": (eigh, ({},)),
    "det": (determinants, ({},)),
    "slogdet": (determinants, ({},)),
}


@inputs(*FORMS)
def other_forms(t: Maker) -> Iterator[Sample]:
    """Yield some of the plain operator's calls, with the options that the form adds."""
    generator, options = FORMS[t.operator]
    for call, added in zip(few(generator(t)), cycle(options)):
        yield replace(call, kwargs={**call.kwargs, **added})


@mistakes(*(name for name in FORMS if name.endswith("_checked") and "ldl" not in name))
def broken_down(t: Maker) -> Iterator[Sample]:
    """Yield a singular matrix."""
    yield sample(t.of("float32").array([[0.0]]), check_errors=True, note="zero")


@mistakes("linalg_svd_driver", "linalg_svdvals_driver")
def no_drivers(t: Maker) -> Iterator[Sample]:
    """Yield drivers, which no device supports."""
    yield sample(t.of("float32")(2, 2), driver="gesvd", note="a driver")


@mistakes("linalg_qr_mode", "linalg_eigh_triangle", "linalg_eigvalsh_triangle")
def no_options(t: Maker) -> Iterator[Sample]:
    """Yield unknown modes and triangles."""
    yield sample(t.of("float32")(2, 2), "x", note="an option")


@inputs("linalg_eigh_triangle", "linalg_eigvalsh_triangle")
def small_letters(t: Maker) -> Iterator[Sample]:
    """Yield the triangle in lower-case letters."""
    options: dict[str, Any] = {"gradient": False}
    if t.operator == "linalg_eigh_triangle":
        options["of"] = choices.of_eigh
    yield sample(half_read(t, hermitian(t, 3, 3), lower=False), "u", core=2, note="u", **options)


# -- older names and arguments ----------------------------------------------------------------------------------------
@inputs("qr")
def older_qr(t: Maker) -> Iterator[Sample]:
    """Yield thin and square matrices."""
    for some, shape in ((True, (5, 3)), (False, (3, 3)), (True, (2, 3, 4))):
        yield sample(matrix(t, *shape), some, core=2, of=choices.of_qr, call=qr_part, note=f"{shape} {some}")
    yield sample(matrix(t, 0, 3), kind=ZERO_SIZE)


@inputs("svd")
def older_svd(t: Maker) -> Iterator[Sample]:
    """Yield thin and square matrices, and values only, with vectors of zeros."""
    for some, shape in ((True, (5, 3)), (False, (3, 3)), (True, (2, 3, 4))):
        yield sample(matrix(t, *shape), some, core=2, of=_of_older_svd, call=_svd_part, note=f"{shape} {some}")
    yield sample(matrix(t, 4, 3), compute_uv=False, core=2, note="values")
    yield sample(matrix(t, 0, 3), kind=ZERO_SIZE)


def _of_older_svd(result: Any) -> Any:
    U, S, V = result
    return choices.of_svd((U, S, V.mH))


def _svd_part(op: Any, A: Any, some: bool) -> Any:
    return _of_older_svd(op(A, some))


@mistakes("svd", "qr")
def no_matrices(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not floating matrices."""
    yield sample(t.of("float32")(3), note="a vector")
    yield sample(t.of("int64")(2, 2), note="integers")


# -- inverses ---------------------------------------------------------------------------------------------------------
@inputs("linalg_inv", "inverse")
def inverses_alone(t: Maker) -> Iterator[Sample]:
    """Yield one matrix and batches."""
    for shape in SQUARES if t.operator == "linalg_inv" else SQUARES[:2]:
        yield sample(matrix(t, *shape, shifted=shape[-1] > 3), core=2, note=f"{shape}")
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE)
    yield sample(matrix(t, MANY, MANY, shifted=True), kind=LARGE)


@mistakes("linalg_inv", "inverse", "linalg_cholesky", "cholesky", "linalg_lu_factor")
def singular_matrices(t: Maker) -> Iterator[Sample]:
    """Yield a zero, which has no inverse and no factors to solve with."""
    yield sample(t.of("float32").array([[0.0]]), note="zero")


@inputs("linalg_tensorinv")
def inverse_tensors(t: Maker) -> Iterator[Sample]:
    """Yield tensors whose first dims have as many elements as the others."""
    yield sample(matrix(t, 6, 6, shifted=True).reshape(2, 3, 3, 2), 2, core=4)
    yield sample(matrix(t, 4, 4).reshape(4, 2, 2), 1, core=3, note="one dim and two")
    yield sample(matrix(t, 4, 4).reshape(2, 2, 1, 4), core=4, note="the default")
    yield sample(matrix(t, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(matrix(t, 0, 0).reshape(0, 2, 0), 1, kind=ZERO_SIZE)


@mistakes("linalg_tensorinv")
def no_inverse_tensors(t: Maker) -> Iterator[Sample]:
    """Yield dims that do not give a square matrix."""
    yield sample(t.of("float32")(2, 3), 1, note="not square")
    yield sample(t.of("float32")(2, 2), 0, note="no dims")


@inputs("linalg_pinv")
def pseudo_inverses_as_called(t: Maker) -> Iterator[Sample]:
    """Yield tolerances as numbers and tensors, by their names and by the older one."""
    yield sample(matrix(t, 3, 3), core=2)
    yield sample(matrix(t, 5, 3), 1e-4, core=2, note="rcond")
    yield sample(matrix(t, 2, 3, 4), rtol=0.5, core=2, gradient=False, note="relative")
    yield sample(matrix(t, 4, 3), atol=1.5, core=2, gradient=False, note="absolute")
    yield sample(matrix(t, 4, 3), atol=0.0, core=2, note="absolute, of 0")
    bounds = t.of(t.dtype.to_real()).array([0.1, 1.5])
    yield sample(matrix(t, 2, 4, 4), atol=bounds, core=2, gradient=False, constant=("atol",), note="tensor")
    A = hermitian(t, 3, 3, positive=False)
    yield sample(A, hermitian=True, core=2, call=_of_hermitian, note="Hermitian")
    yield sample(matrix(t, 1, 3), kind=LENGTH_ONE)
    for shape in NO_MATRICES[3:]:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)


def _of_hermitian(op: Any, A: Any, **options: Any) -> Any:
    return op(choices.hermitian_part(A), **options)


@inputs("pinverse")
def older_pseudo_inverses(t: Maker) -> Iterator[Sample]:
    """Yield wide and tall matrices."""
    yield sample(matrix(t, 5, 3), core=2)
    yield sample(matrix(t, 2, 3, 4), 0.5, core=2, gradient=False, note="cut off")
    yield sample(matrix(t, 0, 3), kind=ZERO_SIZE)


@mistakes("linalg_pinv", "pinverse")
def no_pseudo_inverses(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not floating matrices."""
    yield sample(t.of("float32")(3), note="a vector")
    yield sample(t.of("int64")(2, 2), note="integers")
    if t.operator == "linalg_pinv":
        yield sample(t.of("float32")(2, 3), hermitian=True, note="not square, though Hermitian")
        yield sample(t.of("float32")(2, 3), atol=t.of("complex64")(), note="a complex tolerance")


@inputs("linalg_matrix_rank")
def ranks(t: Maker) -> Iterator[Sample]:
    """Yield full and reduced ranks, and all kinds of tolerances."""
    options: dict[str, Any] = {"core": 2, "gradient": False}
    for shape in (*SQUARES[:2], *TALL, *WIDE):
        yield sample(matrix(t, *shape), note=f"{shape}", **options)
    yield sample(singular(t), note="a row twice another", **options)
    yield sample(matrix(t, 4, 3), 1.5, note="tol", **options)
    yield sample(matrix(t, 4, 3), atol=1.5, rtol=0.1, note="the larger of both", **options)
    bounds = t.of(t.dtype.to_real()).array([0.1, 1.5])
    yield sample(matrix(t, 2, 4, 4), rtol=bounds / 2, note="tensor", **options)
    yield sample(hermitian(t, 3, 3, positive=False), hermitian=True, note="Hermitian", **options)
    yield sample(matrix(t, 1, 1), kind=LENGTH_ONE, gradient=False)
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE, gradient=False)


@mistakes("linalg_matrix_rank")
def no_ranks(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not matrices, and complex tolerances."""
    yield sample(t.of("float32")(3), note="a vector")
    yield sample(t.of("float32")(2, 3), atol=t.of("complex64")(), note="a complex tolerance")


# -- determinants -----------------------------------------------------------------------------------------------------
@inputs("logdet")
def logarithms(t: Maker) -> Iterator[Sample]:
    """Yield positive determinants, and any for complex matrices."""
    for shape in ((3, 3), (2, 4, 4)):
        yield sample(matrix(t, *shape), core=2, note=f"{shape}")
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE)
    yield sample(matrix(t, 0, 0), kind=ZERO_SIZE)


@inputs("linalg_det_backward")
def determinants_backward(t: Maker) -> Iterator[Sample]:
    """Yield regular matrices, singular ones, and both in one batch."""
    options: dict[str, Any] = {"core": 2, "layouts": ("contiguous", "transposed", "offset", "step"), "gradient": False}
    for shape in ((3, 3), (2, 4, 4)):
        A = matrix(t, *shape, shifted=True)
        yield sample(t(*shape[:-2]), A, _determinants(t, A), note=f"{shape}", **options)
    both = np.stack([singular(t), matrix(t, 3, 3)])
    yield sample(t(2), both, _determinants(t, both), note="one of two singular", **options)
    one = matrix(t, 2, 1, 1)
    yield sample(t(2), one, one[..., 0, 0].copy(), kind=LENGTH_ONE, gradient=False)
    yield sample(t(0), matrix(t, 0, 3, 3), t(0), kind=ZERO_SIZE)


def _determinants(t: Maker, A: Array) -> Array:
    """Return determinants, exactly 0 if they are nearly 0; integers, which are refused, need no exact ones."""
    result = np.asarray(np.linalg.det(A.astype(wide(t))))
    with np.errstate(invalid="ignore"):
        return cast(t, np.where(np.abs(result) < 1e-6, 0, result))


# -- powers -----------------------------------------------------------------------------------------------------------
@inputs("linalg_matrix_power", "matrix_power")
def powers(t: Maker) -> Iterator[Sample]:
    """Yield positive powers, zero, and for floating matrices negative ones."""
    for n in (0, 1, 2, 5, -1, -3) if factorizable(t.dtype) else (0, 1, 3):
        A = matrix(t, 3, 3) if t.dtype.itemsize > 2 else t(3, 3, low=0, high=1)
        yield sample(A, n, core=2, note=f"{n}")
    yield sample(t(2, 2, 2, low=0, high=2), 3, core=2, note="a batch")
    yield sample(t(1, 1, low=0, high=1), 4, kind=LENGTH_ONE)
    yield sample(t(0, 2, 2), 2, kind=ZERO_SIZE)
    yield sample(t(2, 0, 0), 0, kind=ZERO_SIZE)


@mistakes("linalg_matrix_power", "matrix_power")
def no_powers(t: Maker) -> Iterator[Sample]:
    """Yield fractions, matrices that are not square, and singular matrices."""
    real = t.of("float32")
    yield sample(real(2, 2), 1.5, note="a fraction")
    yield sample(real(2, 2), True, note="a truth value")
    yield sample(real(2, 3), 2, note="not square")
    yield sample(real.array([[0.0]]), -1, note="singular")


# -- condition numbers ------------------------------------------------------------------------------------------------
@inputs("linalg_cond")
def condition_numbers(t: Maker) -> Iterator[Sample]:
    """Yield every order, also for singular matrices."""
    for p in (None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"):
        yield sample(matrix(t, 2, 3, 3), p, core=2, note=f"{p}")
    yield sample(matrix(t, 4, 3), core=2, note="not square")
    yield sample(np.stack([singular(t), matrix(t, 3, 3)]), 1, core=2, gradient=False, note="one of two singular")
    yield sample(matrix(t, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(matrix(t, 2, 0, 0), kind=ZERO_SIZE)


@mistakes("linalg_cond")
def no_condition_numbers(t: Maker) -> Iterator[Sample]:
    """Yield vectors, unknown orders, and singular matrices."""
    real = t.of("float32")
    yield sample(real(3), note="a vector")
    yield sample(real(2, 2), 3, note="order 3")
    yield sample(real(2, 2), "max", note="a name")
    yield sample(real(2, 3), 1, note="not square")
