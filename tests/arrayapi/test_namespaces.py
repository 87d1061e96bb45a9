"""Kernels over namespaces whose arrays have no device, no strides and no assignment, and that lack dtypes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra_arrayapi import MissingFunctionsWarning, assign_by_search
from candelabra_arrayapi.requirements import snapshot
from candelabra_arrayapi.rows import SEARCH_NEEDS
from numpy.random import Generator

from tests.arrayapi.recording import DTYPES


class Bare(np.ndarray):
    """An array without ``.device``."""

    @property
    def device(self) -> Any:
        """Raise the error of a missing attribute."""
        raise AttributeError("device")


def bare_namespace() -> SimpleNamespace:
    """Return NumPy's namespace with functions that know no ``device=``, over arrays that do not either."""
    xp = snapshot(np, DTYPES)

    def bare(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            assert "device" not in options
            result = function(*arguments, **options)
            return result.view(Bare) if type(result) is np.ndarray else result

        return run

    for name, found in vars(xp).items():
        if callable(found) and not isinstance(found, type):
            setattr(xp, name, bare(found))
    return xp


def test_arrays_need_no_device() -> None:
    """Kernels create arrays without ``device=`` if their argument does not know its device."""
    table = candelabra_arrayapi.kernels(bare_namespace(), DTYPES, strided=False)
    x = np.arange(12.0).reshape(1, 1, 3, 4).view(Bare)
    padded = table["conv"](x, np.ones((1, 1, 3, 3)).view(Bare), None, (1, 1), (1, 1), (1, 1), 1)
    assert padded[0, 0, 1].tolist() == [27.0, 45.0, 54.0, 39.0]
    values, indices = table["max_pool"](x, (2, 2), (2, 2), (0, 0), (1, 1), (1, 2))
    assert (values.tolist(), indices.tolist()) == ([[[[5.0, 7.0]]]], [[[[5, 7]]]])
    assert table["full"]((2,), 3.0, next(d for d in DTYPES if d.name == "float32"), 0).tolist() == [3.0, 3.0]
    assert table["gather"](x[0, 0], 1, np.array([[3], [0]]).view(Bare)).tolist() == [[3.0], [4.0]]
    assert table["diagonal"](x[0, 0], 0, 0, 1).tolist() == [0.0, 5.0, 10.0]
    assert table["sort"](np.array([2.0, np.nan, 1.0]).view(Bare), 0, False, True)[1].tolist() == [2, 0, 1]


@pytest.mark.parametrize("missing", [(), ("float64", "complex128"), ("complex128",)])
def test_fractional_ranges_use_the_widest_dtype_that_there_is(missing: tuple[str, ...]) -> None:
    """Without float64 and complex128 they are computed in float32 and complex64."""
    dtypes = {d: held for d, held in DTYPES.items() if d.name not in missing}
    by_name = {d.name: d for d in DTYPES}
    table = candelabra_arrayapi.kernels(np, dtypes)
    assert table["arange"](2, 3, 3, by_name["int64"], 0).tolist() == [2, 5, 8]
    assert table["arange"](0.0, 0.5, 3, by_name["float32"], 0).tolist() == [0.0, 0.5, 1.0]
    assert table["linspace"](0.0, 1.0, 3, by_name["float32"], 0).tolist() == [0.0, 0.5, 1.0]
    assert table["linspace"](0j, 1j, 3, by_name["complex64"], 0).tolist() == [0, 0.5j, 1j]


def test_extrema_of_no_elements_are_refused() -> None:
    """The standard permits any result of ``max`` and ``argmax`` of no elements; the kernels raise."""
    xp = bare_namespace()
    xp.max = xp.min = xp.argmax = xp.argmin = lambda x, **options: np.zeros(x.shape[:1])
    table = candelabra_arrayapi.kernels(xp, DTYPES)
    for name in ("amax", "amin"):
        for dim in (None, (1,), (0, 1)):
            with pytest.raises(ValueError, match=r"an array of shape \(3, 0\) has no extremum over dims"):
                table[name](np.zeros((3, 0)), dim, False)
        assert table[name](np.zeros((0, 3)), (1,), False).shape == (0,)
    for name in ("argmax", "argmin"):
        for dim in (None, 1):
            with pytest.raises(ValueError, match=r"an array of shape \(3, 0\) has no extremum over dims"):
                table[name](np.zeros((3, 0)), dim, False)


def test_windows_of_half_types_are_added_in_float32() -> None:
    """In float16, 2048 + 1 is 2048, so a sum of 4,096 ones would be half of it; the gradient's sums are the same."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    ones = np.ones((1, 4096), np.float16)
    total = table["sum_pool"](ones, (4096,), (1,), (0,), (1,), (1,))
    assert (total.tolist(), total.dtype) == ([[4096.0]], np.float16)
    adjoint = table["sum_pool_adjoint"](ones, (1, 8191), (4096,), (1,), (0,), (1,))
    assert (adjoint.max(), adjoint.dtype) == (4096.0, np.float16)


def test_half_types_are_accumulated_in_float32() -> None:
    """A running sum of ones in float16 stops at 2048; the product of 1 - 2**-6 and 1 + 2**-6 is 1 if it is rounded."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    float16 = next(d for d in DTYPES if d.name == "float16")
    ones = np.ones(4096, np.float16)
    pairs = np.array([1 - 2.0**-6, 1 + 2.0**-6] * 1024, np.float16)
    for x, dtype in ((ones, None), (ones.astype(np.float32), float16)):
        assert table["sum"](x, None, False, dtype) == 4096
        assert table["cumsum"](x, 0, dtype)[-1] == 4096
    exact = (1 - 2.0**-12) ** 1024
    for found in (table["prod"](pairs, None, False, None), table["cumprod"](pairs, 0, None)[-1]):
        assert found.dtype == np.float16
        assert abs(float(found) - exact) < 2.0**-11
    wide = np.array([0.1], np.float32)
    assert table["sum"](wide, None, False, float16) == np.float16(0.1)


def test_inverses_report_whether_a_matrix_is_singular() -> None:
    """``info`` is 1 where the result is not finite. A library that raises for singular matrices, as NumPy, is heard."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        table["linalg_inv_ex"](np.array([[1.0, 2.0], [2.0, 4.0]]))
    inverse, info = table["linalg_inv_ex"](np.array([[2.0, 0.0], [0.0, 4.0]]))
    assert (inverse.tolist(), info.tolist(), info.dtype.name) == ([[0.5, 0.0], [0.0, 0.25]], 0, "int32")


def test_a_matrix_with_nan_has_an_inverse_and_solutions_of_nan() -> None:
    """LAPACK returns numbers in some rows, cuSOLVER infinities; other matrices of the batch are not affected."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    for dtype in ("float32", "complex64"):
        x = np.array([[[np.nan, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 4.0]]], dtype)
        for name, others in (("linalg_inv_ex", ()), ("linalg_solve_ex", (np.eye(2, dtype=dtype),))):
            out, info = table[name](x, *others)
            assert np.isnan(out[0]).all()
            assert (out[1].tolist(), info.tolist(), out.dtype.name) == ([[0.5, 0.0], [0.0, 0.25]], [1, 0], dtype)


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [((2, 4, 4), (4, 1)), ((4, 4), (2, 4, 1)), ((2, 1, 4, 4), (3, 4, 2)), ((0, 3, 3), (3, 2)), ((2, 4, 4), (2, 4, 1))],
)
def test_solvers_receive_batches_of_one_shape(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> None:
    """CuPy's ``solve`` does not broadcast the dims before those of the matrices."""

    def solve(a: Any, b: Any) -> Any:
        assert a.shape[:-1] == b.shape[:-1]
        return np.linalg.solve(a, b)

    xp = snapshot(np, DTYPES)
    xp.linalg.solve = solve
    table = candelabra_arrayapi.kernels(xp, DTYPES)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=a_shape), rng.normal(size=b_shape)
    np.testing.assert_array_equal(table["linalg_solve_ex"](a, b)[0], np.linalg.solve(a, b))


def test_solvers_refuse_vectors() -> None:
    """The operator is for matrices; the standard's ``solve`` takes a vector, too."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    with pytest.raises(ValueError, match=r"expected a matrix of two or more dims, got an array of shape \(3,\)"):
        table["linalg_solve_ex"](np.eye(3), np.ones(3))


def test_products_of_bools_are_computed_without_a_product() -> None:
    """The standard's ``vecdot`` is for numbers: CuPy's returns 3 for three pairs that are true."""
    xp = snapshot(np, DTYPES)
    xp.vecdot = lambda x, y, axis: np.sum(x.astype(np.int8) * y, axis=axis)
    table = candelabra_arrayapi.kernels(xp, DTYPES)
    x = np.array([[True, True, True], [True, False, False], [False, False, False]])
    out = table["linalg_vecdot"](x, np.array([True, True, True]), 1)
    assert (out.tolist(), out.dtype.name) == ([True, True, False], "bool")
    assert table["linalg_vecdot"](x[:, :0], x[:, :0], -1).tolist() == [False] * 3


def test_factorizations_with_info_need_int32() -> None:
    """``info`` has this dtype; other functions of linear algebra stay."""
    dtypes = {d: held for d, held in DTYPES.items() if d.name != "int32"}
    table = candelabra_arrayapi.kernels(np, dtypes)
    assert not {"linalg_inv_ex", "linalg_cholesky_ex", "linalg_solve_ex"} & set(table)
    assert {"linalg_qr", "linalg_det"} <= set(table)


def test_eigenvalues_are_complex() -> None:
    """Also where the library returns real numbers for real eigenvalues."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    x = np.array([[2.0, 0.0], [0.0, 3.0]], dtype=np.float32)
    assert {a.dtype.name for a in (*table["linalg_eig"](x), table["linalg_eigvals"](x))} == {"complex64"}
    assert table["linalg_eigvals"](x).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (3, 0), (1,)])
def test_assignment_by_search_equals_assignment(shape: tuple[int, ...], rng: Generator) -> None:
    """For slices with steps, integers, single values, rows in any order, and nothing at all; the argument is kept."""
    assign = assign_by_search(np)
    x = rng.normal(size=shape)
    rows = rng.permutation(shape[0])[: max(1, shape[0] - 1)]
    for index in [(slice(1, None, 2), ...), (0, ...), (...,), (slice(0, 0), ...), (..., slice(0, 2)), rows, rows[:0]]:
        for values in (rng.normal(size=x[index].shape), np.asarray(7.0)):
            want = x.copy()
            want[index] = values
            before = x.copy()
            assert assign(x, index, values).tolist() == want.tolist()
            assert x.tolist() == before.tolist()


def test_assignment_by_search_needs_sorting() -> None:
    """Without it the operators that assign have no kernel, except additions if the library can accumulate."""
    xp = snapshot(np, DTYPES)
    del xp.searchsorted
    with pytest.warns(MissingFunctionsWarning, match="basic_index_adjoint, basic_index_scatter, index_add, index_put"):
        table = candelabra_arrayapi.kernels(xp, DTYPES, assign=assign_by_search(xp))
    assert not {"basic_index_adjoint", "basic_index_scatter", "index_add"} & set(table)
    with pytest.warns(MissingFunctionsWarning):
        table = candelabra_arrayapi.kernels(xp, DTYPES, assign=assign_by_search(xp), accumulate=lambda x, i, v: x)
    assert {"scatter_add", "index_add"} <= set(table)


def test_assignment_by_search_uses_what_it_declares() -> None:
    """A namespace with only these functions suffices."""
    xp = SimpleNamespace(**{name: getattr(np, name) for name in SEARCH_NEEDS})
    assign = assign_by_search(xp)
    assert assign(np.arange(3), (slice(1, 2), ...), np.array([7])).tolist() == [0, 7, 2]
    assert assign(np.arange(3), np.array([2, 0]), np.array([7, 8])).tolist() == [8, 1, 7]


def test_what_would_be_another_computation_is_refused() -> None:
    """A dim beyond the last one is not counted from the end, and a vector is not taken for a matrix."""
    table = candelabra_arrayapi.kernels(np, DTYPES)
    x = np.ones((2, 3))
    assert table["linalg_vecdot"](x, x, 1).tolist() == [3.0, 3.0]
    with pytest.raises(IndexError, match="vecdot: dim 2 of 2 dims"):
        table["linalg_vecdot"](x, x, 2)
    for name in ("linalg_eigh", "linalg_eigvalsh"):
        with pytest.raises(ValueError, match=r"expected a matrix of two or more dims, got an array of shape \(3,\)"):
            table[name](x[0], "L")


def test_three_dtypes_are_enough() -> None:
    """A namespace with bool, int64 and float32 has its kernels, and sorts bools and NaN."""
    few = {d: held for d, held in DTYPES.items() if d.name in ("bool", "int64", "float32")}
    sort = candelabra_arrayapi.kernels(np, few)["sort"]
    assert sort(np.array([True, False, True]), 0, False, True)[1].tolist() == [1, 0, 2]
    assert sort(np.array([np.nan, 2, 1], np.float32), 0, False, True)[1].tolist() == [2, 1, 0]
