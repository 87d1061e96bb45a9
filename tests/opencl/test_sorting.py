"""Sorting, topk and searchsorted on an OpenCL device, and the operators based on them."""

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra_clike import Engine
from candelabra_clike.kernels import sorting

LENGTHS = (0, 1, 5, 33, 1000, 40_000)
"""Empty, one element, insertion sort, one element more than that, a row per work-item, a row in blocks."""


@pytest.fixture(params=["device", "lanes"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(*shape: int) -> Any:
    """Return numbers of both signs with many ties from a fixed seed."""
    return np.round(np.random.default_rng(3).standard_normal(shape) * 9).astype("f4")


def same(actual: Any, expected: Any) -> None:
    """Assert that values and indices are the reference's."""
    np.testing.assert_array_equal(actual.values.numpy(force=True), expected.values.numpy())
    np.testing.assert_array_equal(actual.indices.numpy(force=True), expected.indices.numpy())


@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length_are_sorted_stably(form: cd.device, n: int) -> None:
    """Equal elements keep their order, in both directions."""
    x = cd.tensor(values(n))
    same(x.to(form).sort(0), x.sort(0))
    if n < 1000:
        same(x.to(form).sort(0, descending=True), x.sort(0, descending=True))


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "bfloat16", "float64", "bool"])
def test_every_dtype_has_its_order(device: cd.device, name: str) -> None:
    """Signs, half types and bools are sorted correctly."""
    x = cd.tensor(values(3, 40) * 13).to(getattr(cd, name))
    actual, expected = x.to(device).sort(1), x.sort(1)
    assert actual.values.tolist() == expected.values.tolist()
    assert actual.indices.tolist() == expected.indices.tolist()


def test_nan_is_the_largest_and_negative_zero_equals_zero(form: cd.device) -> None:
    """NaN of either sign is last, and first in descending order."""
    x = cd.tensor([2.0, float("nan"), -0.0, float("inf"), 0.0, -float("nan"), -float("inf"), 0.0])
    same(x.to(form).sort(0), x.sort(0))
    same(x.to(form).topk(2), x.topk(2))
    assert (
        x.to(form).argsort(0, descending=True, stable=True).tolist()
        == x.argsort(0, descending=True, stable=True).tolist()
    )


@pytest.mark.parametrize("k", [0, 1, 5, 40, 700])
def test_the_largest_few_come_in_order(form: cd.device, k: int) -> None:
    """The kernel uses insertion for a few elements, and a sort for many."""
    x = cd.tensor(values(3, 700))
    same(x.to(form).topk(k), x.topk(k))
    same(x.to(form).topk(min(k, 3), 0, largest=False), x.topk(min(k, 3), 0, largest=False))


def test_the_largest_of_a_long_row_are_found_in_parts(form: cd.device) -> None:
    """The largest elements of all parts are compared again."""
    x = cd.tensor(values(70_001))
    same(x.to(form).topk(9), x.topk(9))


def test_sorting_reads_any_layout(form: cd.device) -> None:
    """Each dim of transposed, strided and expanded tensors is sorted."""
    x = cd.tensor(values(12, 40))
    for view in (lambda t: t.T, lambda t: t[1::2, ::3], lambda t: t[:1].expand(5, 40)):
        for dim in (0, 1):
            same(view(x.to(form)).sort(dim), view(x).sort(dim))


@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_rows(form: cd.device, right: bool) -> None:
    """The index is before or after equal elements; NaN is at the end."""
    rows = np.sort(values(4, 60), 1)
    sought = values(4, 9)
    sought[0, 0] = np.nan
    actual = cd.searchsorted(cd.tensor(rows).to(form), cd.tensor(sought).to(form), right=right)
    side = "right" if right else "left"
    expected = [np.searchsorted(r, s, side) for r, s in zip(rows, sought, strict=True)]
    np.testing.assert_array_equal(actual.numpy(force=True), expected)
    one = cd.searchsorted(cd.tensor(rows[0]).to(form), cd.tensor(sought).to(form), right=right)
    np.testing.assert_array_equal(one.numpy(force=True), np.searchsorted(rows[0], sought, side))


def test_operators_based_on_sorting(device: cd.device) -> None:
    """Medians, modes, k-th values, sets, counts and histograms agree."""
    x = cd.tensor(values(5, 41))
    far = x.to(device)
    for name, arguments in (("median", (1,)), ("mode", (1,)), ("kthvalue", (7, 1)), ("nanmedian", (0,))):
        same(getattr(far, name)(*arguments), getattr(x, name)(*arguments))
    for actual, expected in zip(
        far.unique(return_inverse=True, return_counts=True),
        x.unique(return_inverse=True, return_counts=True),
        strict=True,
    ):
        assert actual.tolist() == expected.tolist()
    whole = (x.reshape(-1) + 40).to(cd.int64)
    assert whole.to(device).bincount().tolist() == whole.bincount().tolist()
    assert far.histc(12, -20, 20).tolist() == x.histc(12, -20, 20).tolist()


def test_kernels_refuse_invalid_arguments(engine: Engine) -> None:
    """The core checks such calls first; a direct call of the kernel raises a specific error."""
    x = engine.empty((3, 4), cd.float32)
    with pytest.raises(ValueError, match=r"topk\(\) expects k in 0 to"):
        sorting.topk(x, 5, 1, True, True)
    with pytest.raises(ValueError, match=r"batches of shapes .* do not match"):
        sorting.sorted_place(x, engine.empty((2, 4), cd.float32), False)
