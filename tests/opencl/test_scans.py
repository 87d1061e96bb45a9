"""Cumulative sums, products, extremes and log-sum-exps on OpenCL devices, in the forms for processors and for GPUs."""

from typing import Any

import candelabra as cd
import numpy as np
import pytest

pytestmark = pytest.mark.rounding

FORMS = ("device", "lanes")
SHAPES = (
    ((0,), 0),
    ((1,), 0),
    ((7,), 0),
    ((40_003,), 0),
    ((5, 2051), 1),
    ((2, 300, 9), 1),
    ((130, 140), 0),
    ((3, 0), 0),
)
"""Empty, one element, a remainder of four, a row in parts, rows, few columns, two column blocks, empty other dim."""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(*shape: int) -> Any:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(5).standard_normal(shape).astype("f4")


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running_sums_are_those_of_float64_rounded_once(form: cd.device, shape: tuple[int, ...], dim: int) -> None:
    """However a row is divided, each sum is the float32 nearest to one in float64."""
    x = values(*shape)
    np.testing.assert_allclose(
        cd.tensor(x).to(form).cumsum(dim).numpy(force=True), np.cumsum(x, dim, np.float64).astype("f4"), rtol=1.2e-7
    )


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running_extremes_name_the_last_of_equal_ones(form: cd.device, shape: tuple[int, ...], dim: int) -> None:
    """Small integers have many ties; values and indices are the reference's."""
    x = cd.tensor(np.round(values(*shape) * 3).astype("i1"))
    for name in ("cummax", "cummin"):
        found, wanted = getattr(x.to(form), name)(dim), getattr(x, name)(dim)
        np.testing.assert_array_equal(found.values.numpy(force=True), wanted.values.numpy(force=True))
        np.testing.assert_array_equal(found.indices.numpy(force=True), wanted.indices.numpy(force=True))


@pytest.mark.parametrize("n", [6, 5000])
def test_a_nan_stays_in_running_extremes_and_the_last_is_named(form: cd.device, n: int) -> None:
    """After a NaN every result is NaN, with the index of the latest one."""
    x = values(n)
    x[2] = x[n - 2] = np.nan
    found = cd.tensor(x).to(form).cummax(0)
    places = found.indices.numpy(force=True)
    assert np.isnan(found.values.numpy(force=True)[2:]).all()
    assert (places[2 : n - 2] == 2).all()
    assert list(places[n - 2 :]) == [n - 2, n - 2]


@pytest.mark.parametrize(("shape", "dim"), [((5,), 0), ((2, 3000), 1), ((40, 30), 0)])
def test_running_products_are_those_of_float64_rounded_once(form: cd.device, shape: tuple[int, ...], dim: int) -> None:
    """Products stay near 1, so that they neither overflow nor underflow."""
    x = 1 + values(*shape) / 64
    wanted = np.cumprod(x.astype("f8"), dim).astype("f4")
    np.testing.assert_allclose(cd.tensor(x).to(form).cumprod(dim).numpy(force=True), wanted, rtol=1.2e-7)


def test_complex_products_and_sums_are_scanned(form: cd.device) -> None:
    """Sums are computed by parts, products as pairs; the scan of a 0-d tensor is the tensor."""
    x = (values(3, 70) + 1j * values(70)).astype("c8")
    t = cd.tensor(x).to(form)
    np.testing.assert_allclose(t.cumsum(1).numpy(force=True), np.cumsum(x, 1, "c16"), rtol=1e-6)
    np.testing.assert_allclose(t.cumprod(1).numpy(force=True), np.cumprod(x.astype("c16"), 1), rtol=1e-5)
    assert t[0, 0].cumsum(0).item() == t[0, 0].item()


@pytest.mark.parametrize(
    ("source", "dtype"), [(cd.int16, cd.bool), (cd.int16, cd.float16), (cd.int64, cd.int32), (cd.float32, cd.uint8)]
)
def test_a_scan_casts_to_the_dtype_that_is_asked_for(device: cd.device, source: Any, dtype: Any) -> None:
    """Integers wrap, bools are combined by or, and the result equals that of a conversion before the scan."""
    x = cd.tensor(values(2, 50) * 40).to(source)
    found, wanted = x.to(device).cumsum(1, dtype=dtype), x.to(dtype).cumsum(1, dtype=dtype)
    np.testing.assert_array_equal(found.numpy(force=True), wanted.numpy())


def test_integers_are_summed_and_multiplied_as_int64(device: cd.device) -> None:
    """Products wrap as NumPy's."""
    x = np.arange(1, 90, dtype="i1")
    t = cd.tensor(x).to(device)
    assert t.cumsum(0).dtype is cd.int64
    np.testing.assert_array_equal(t.cumsum(0).numpy(force=True), np.cumsum(x, dtype="i8"))
    np.testing.assert_array_equal(t.cumprod(0).numpy(force=True), np.cumprod(x, dtype="i8"))


@pytest.mark.parametrize(("shape", "dim"), [((7,), 0), ((3, 2500), 1), ((60, 20), 0)])
def test_running_log_sum_exps_neither_overflow_nor_vanish(form: cd.device, shape: tuple[int, ...], dim: int) -> None:
    """For values beyond the range of exp, the running maximum is subtracted."""
    x = values(*shape) * 300
    wanted = np.logaddexp.accumulate(x.astype("f8"), dim)
    np.testing.assert_allclose(cd.tensor(x).to(form).logcumsumexp(dim).numpy(force=True), wanted, rtol=2e-6)


def test_infinities_and_nan_pass_through_log_sum_exps(form: cd.device) -> None:
    """An empty sum is -inf, infinity stays, NaN propagates."""
    inf, nan = np.inf, np.nan
    x = cd.tensor([[-inf, -inf, 1.0, 1.0], [0.0, inf, inf, -inf], [2.0, nan, 1.0, inf]])
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp.accumulate(x.numpy(force=True), 1)
    np.testing.assert_allclose(x.to(form).logcumsumexp(1).numpy(force=True), wanted, rtol=1e-6)


@pytest.mark.parametrize("n", [3, 300])
def test_sums_of_nothing_but_negative_zeros_are_negative_zeros(form: cd.device, n: int) -> None:
    """This equals a sequential sum: a scan starts with -0.0, which does not change the sum."""
    found = cd.full((n,), -0.0).to(form).cumsum(0).numpy(force=True)
    assert (found == 0).all()
    assert np.signbit(found).all()


def test_scans_read_any_layout(form: cd.device) -> None:
    """Operands are transposed, strided, with an offset, or expanded."""
    x = cd.tensor(values(40, 36))
    for view in (lambda t: t.T, lambda t: t[3::2, 5::3], lambda t: t[:1].expand(9, 36), lambda t: t[:, None, ::4]):
        seen, there = view(x), view(x.to(form))
        for dim in range(seen.ndim):
            np.testing.assert_allclose(
                there.cumsum(dim).numpy(force=True), seen.cumsum(dim).numpy(force=True), rtol=1e-5, atol=1e-6
            )


def test_half_types_are_scanned_in_float32(device: cd.device) -> None:
    """A sum of 3000 ones in half types does not stop at 2048."""
    ones = cd.ones(3000, dtype=cd.float16).to(device)
    assert ones.cumsum(0)[-1].item() == 3000.0
    assert cd.ones(3000, dtype=cd.bfloat16).to(device).cumsum(0)[-1].item() == 3008.0


def test_a_device_without_float64_scans_in_float32(single: cd.device) -> None:
    """The sums are less accurate than with float64."""
    x = values(9000)
    np.testing.assert_allclose(
        cd.tensor(x).to(single).cumsum(0).numpy(force=True), np.cumsum(x, dtype="f8"), rtol=1e-3, atol=1e-3
    )
    c = (values(50) + 1j).astype("c8")
    np.testing.assert_allclose(cd.tensor(c).to(single).cumprod(0).numpy(force=True), np.cumprod(c), rtol=1e-4)


def test_a_scan_is_the_same_every_time(form: cd.device) -> None:
    """The division into parts depends only on the shape."""
    x = cd.tensor(values(50_000)).to(form)
    assert (x.cumsum(0) == x.cumsum(0)).all().item()
