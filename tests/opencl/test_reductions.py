"""Reductions and arg-reductions on an OpenCL device, in the forms for processors and for GPUs."""

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra_clike import Engine
from candelabra_clike.kernels import reductions

pytestmark = pytest.mark.rounding

SHAPES: tuple[tuple[tuple[int, ...], int | tuple[int, ...] | None], ...] = (
    ((), None), ((7,), 0), ((70_003,), 0), ((2051, 5), 0), ((40, 300), 0), ((3, 5, 7, 9), (0, 2)), ((3, 0), 0),
)  # fmt: skip
"""A scalar, a remainder, a row in parts, narrow columns, columns, two dims, no output."""


@pytest.fixture(params=["device", "lanes"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(*shape: int) -> Any:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(11).standard_normal(shape).astype("f4")


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sums_and_extremes_over_dims_of_any_shape(form: cd.device, shape: Any, dim: Any) -> None:
    """Sums are within an ulp of the largest partial sum, extremes are exact."""
    x = values(*shape)
    t = cd.tensor(x).to(form)
    scale = 1e-7 * (1 + np.abs(x).sum(dim))
    assert (np.abs(t.sum(dim).numpy(force=True) - x.sum(dim, dtype="f8")) <= scale).all()
    np.testing.assert_array_equal(t.amax(dim if dim is not None else ()).numpy(force=True), x.max(dim))


@pytest.mark.parametrize(("shape", "dim"), [case for case in SHAPES if not isinstance(case[1], tuple)])
def test_indices_of_extremes_are_the_first_of_equal_ones(form: cd.device, shape: Any, dim: Any) -> None:
    """Small integers have many ties."""
    x = np.round(values(*shape) * 2).astype("i1")
    t = cd.tensor(x).to(form)
    np.testing.assert_array_equal(t.argmax(dim).numpy(force=True), x.argmax(dim))
    if dim is not None:
        found = t.min(dim)
        np.testing.assert_array_equal(found.values.numpy(force=True), x.min(dim))
        np.testing.assert_array_equal(found.indices.numpy(force=True), x.argmin(dim))


@pytest.mark.parametrize("n", [5, 40_000])
def test_nan_propagates_to_extremes_with_its_first_index(form: cd.device, n: int) -> None:
    """The NaN may be anywhere in a row; nansum ignores it."""
    x = values(n)
    x[n // 2] = x[n - 2] = np.nan
    t = cd.tensor(x).to(form)
    assert np.isnan([t.amax().item(), t.sum().item()]).all()
    assert t.argmin(0).item() == n // 2
    assert t.nansum().item() == pytest.approx(np.nansum(x.astype("f8")), abs=1e-3)


@pytest.mark.parametrize("n", [1, 33])
def test_products_means_and_counts(device: cd.device, n: int) -> None:
    """The rows have one element, a remainder, or many elements."""
    x = 1 + values(n) / 64
    t = cd.tensor(x).to(device)
    assert t.prod().item() == pytest.approx(x.astype("f8").prod(), rel=1e-4)
    assert t.mean().item() == pytest.approx(x.mean(dtype="f8"), rel=1e-6)
    few = cd.tensor((values(n) > 0.9).astype("f4")).to(device)
    assert few.count_nonzero().item() == few.sum().item()
    assert few.any().item() == (few.sum().item() > 0)
    assert few.all().item() == (few.sum().item() == n)


@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_integers_are_summed_as_int64_and_wrap_around(device: cd.device, dtype: str) -> None:
    """Extremes are correct at the ends of the range."""
    limits = np.iinfo(dtype)
    x = np.array([limits.max, limits.max, limits.min, 3] * 20, dtype)
    t = cd.tensor(x).to(device)
    with np.errstate(over="ignore"):
        assert t.sum().item() == x.sum(dtype="i8")
        assert t.prod().item() == x.astype("i8").prod()
    assert (t.amax().item(), t.amin().item()) == (limits.max, limits.min)


@pytest.mark.parametrize(
    ("source", "dtype"),
    [(cd.int32, cd.int16), (cd.int32, cd.float16), (cd.float32, cd.int16), (cd.int8, cd.bool)],
)
def test_the_dtype_of_a_sum_is_the_one_that_is_asked_for(device: cd.device, source: Any, dtype: Any) -> None:
    """Some conversions are done while an element is read, others before."""
    x = cd.arange(-4, 7).to(source)
    found = x.to(device).sum(dtype=dtype)
    assert found.dtype is dtype
    assert found.item() == x.to(dtype).sum(dtype=dtype).item()
    if not dtype.is_floating_point:
        assert x.to(device).prod(dtype=dtype).item() == x.to(dtype).prod(dtype=dtype).item()


def test_complex_numbers_are_summed_and_multiplied(device: cd.device) -> None:
    """Sums are computed by parts, products as pairs."""
    x = (1 + (values(3, 40) + 1j * values(40)) / 40).astype("c8")
    t = cd.tensor(x).to(device)
    np.testing.assert_allclose(t.sum(1).numpy(force=True), x.astype("c16").sum(1), rtol=1e-6)
    np.testing.assert_allclose(t.mean(0).numpy(force=True), x.astype("c16").mean(0), rtol=1e-6)
    np.testing.assert_allclose(t.prod(1).numpy(force=True), x.astype("c16").prod(1), rtol=1e-5)


def test_reductions_read_any_layout(form: cd.device) -> None:
    """Operands are transposed, strided, with an offset, or expanded."""
    x = cd.tensor(np.round(values(40, 36) * 8).astype("f4"))
    for view in (lambda t: t.T, lambda t: t[3::2, 5::3], lambda t: t[:1].expand(9, 36)):
        seen, there = view(x), view(x.to(form))
        for dim in range(seen.ndim):
            assert there.sum(dim).tolist() == seen.sum(dim).tolist()
            assert there.argmax(dim).tolist() == seen.argmax(dim).tolist()


def test_half_types_are_summed_in_float32(device: cd.device) -> None:
    """A sum of 5000 ones in half types does not stop at 2048."""
    assert cd.ones(5000, dtype=cd.float16).to(device).sum().item() == 5000.0
    assert cd.ones(7, 130, dtype=cd.bfloat16).to(device).sum(0).tolist() == [7.0] * 130


def test_variances_are_those_of_distances_from_the_mean(form: cd.device) -> None:
    """A mean far from 0 does not reduce the accuracy."""
    x = values(3, 900) + 100
    t = cd.tensor(x).to(form)
    np.testing.assert_allclose(t.var(1).numpy(force=True), x.var(1, dtype="f8", ddof=1), rtol=1e-4)
    long = values(40_000) + 100
    assert cd.tensor(long).to(form).std().item() == pytest.approx(long.std(dtype="f8", ddof=1), rel=1e-4)


def test_a_device_without_float64_has_sums_and_extremes(single: cd.device) -> None:
    """Sums are accumulated in float32."""
    x = values(9000)
    t = cd.tensor(x).to(single)
    assert t.sum().item() == pytest.approx(x.sum(dtype="f8"), abs=1e-3)
    assert t.argmax(0).item() == x.argmax()


def test_nothing_has_a_sum_and_no_extreme(device: cd.device) -> None:
    """The empty sum is 0, the empty product 1; an empty extreme is an error."""
    t = cd.empty(0).to(device)
    assert (t.sum().item(), t.prod().item(), t.all().item(), t.any().item()) == (0.0, 1.0, True, False)
    with pytest.raises(IndexError, match=r"argmax\(\): Expected reduction dim 0 to have non-zero size"):
        t.argmax(0)
    for name in ("amax", "amin"):
        for shape in ((3, 0), (0, 0)):
            with pytest.raises(IndexError, match=f"{name}\\(\\): Expected reduction dim 1 to have non-zero size"):
                getattr(cd, name)(cd.empty(*shape).to(device), 1)
        assert getattr(cd, name)(cd.empty(0, 3).to(device), 1).shape == (0,)
    with pytest.raises(RuntimeError, match=r"Expected reduction dim to be specified for input\.numel\(\) == 0"):
        cd.empty(3, 0).to(device).max()


def test_kernels_refuse_invalid_arguments(engine: Engine) -> None:
    """The core checks such calls first; a direct call of the kernel raises a specific error."""
    x, c = engine.empty((3,), cd.float32), engine.empty((3,), cd.complex64)
    with pytest.raises(ValueError, match=r"mean\(\) expects a floating or complex dtype"):
        reductions.KERNELS["mean"](x, None, False, cd.int32)
    with pytest.raises(TypeError, match=r"nansum\(\) expects a real dtype, got candelabra\.complex64"):
        reductions.KERNELS["nansum"](x, None, False, cd.complex64)
    with pytest.raises(TypeError, match=r"not implemented for candelabra\.complex64"):
        reductions.KERNELS["amax"](c, None, False)
    with pytest.raises(AssertionError, match=r"candelabra\.complex64 has no order"):
        reductions.arg_reduction(True, cd.complex64)
    with pytest.raises(IndexError, match="argmax_float32: expected at least one element along the reduced dims"):
        reductions.KERNELS["argmax"](engine.empty((0,), cd.float32), 0, False)
