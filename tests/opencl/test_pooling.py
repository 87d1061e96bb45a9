"""Pooling on OpenCL devices, in the forms for processors and for GPUs, compared with the host's device."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import plugins
from candelabra.nn import functional
from candelabra.nn._operators.pooling import scatter_planes, sum_pool

pytestmark = pytest.mark.rounding

Pool = Callable[[Any], Any]

POOLS: dict[str, tuple[tuple[int, ...], Pool]] = {
    "small halving": ((2, 3, 6, 10), lambda x: functional.max_pool2d(x, 2)),
    "halving": ((4, 4, 34, 66), lambda x: functional.max_pool2d(x, 2)),
    "short rows": ((6, 8, 14, 14), lambda x: functional.max_pool2d(x, 2)),
    "overlapping": ((4, 4, 33, 35), lambda x: functional.max_pool2d(x, 3, 2, 1)),
    "hanging over": ((3, 9, 11), lambda x: functional.max_pool1d(x, 3, 2, 1, dilation=2, ceil_mode=True)),
    "three dims": ((1, 2, 4, 5, 6), lambda x: functional.max_pool3d(x, (2, 1, 3), 2, (1, 0, 1))),
    "means": ((4, 4, 34, 66), lambda x: functional.avg_pool2d(x, 2)),
    "padded means": ((2, 3, 8, 9), lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
}
"""The geometry of the larger ones is constant in the kernel's text."""
IN_LANES = ("overlapping", "hanging over", "padded means")
SPECIAL = [[1, nan, 2, nan, 3, inf, 4, 5], [-inf, -inf, -inf, -inf, -inf, 7, 7, 7], [0, 1, 1, 1, -inf, nan, inf, nan]]


def value_and_gradient(pool: Pool, x: Any, device: cd.device) -> tuple[Any, Any]:
    """Return value and gradient on the host, as computed on a device; each window has another gradient."""
    leaf = x.detach().to(device).requires_grad_()
    y = pool(leaf)
    y.backward(cd.arange(y.numel(), dtype=y.dtype).reshape(y.shape).to(device))
    host = plugins.reference_device()
    return y.detach().to(host), leaf.grad.to(host)


@pytest.mark.parametrize(
    ("form", "name"), [*[("device", name) for name in POOLS], *[("lanes", name) for name in IN_LANES]]
)
def test_pools_and_their_gradients_are_the_hosts(form: str, name: str, request: pytest.FixtureRequest) -> None:
    """Value and gradient are equal in every bit for every kind of window, and means of threes and sixes nearly so.

    The numbers are integers, so sums are exact. The host divides in float64, and a driver's division may round twice.
    """
    shape, pool = POOLS[name]
    x = cd.arange(cd.Size(shape).numel()).reshape(shape).mul(7).remainder(101).sub(50).to(cd.float32)
    expected = value_and_gradient(pool, x, plugins.reference_device())
    given = value_and_gradient(pool, x, request.getfixturevalue(form))
    for one, other in zip(given, expected, strict=True):
        if name == "padded means":
            cd.testing.assert_close(one, other, rtol=2**-21, atol=0)
        else:
            assert one.equal(other)


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_the_first_of_equals_and_the_last_nan_count(form: str, request: pytest.FixtureRequest) -> None:
    """Padding is below -inf, NaN above all, and the first of equal elements is selected."""
    x = cd.tensor(SPECIAL).unsqueeze(1)
    expected = functional.max_pool1d(x, 3, 2, 1, return_indices=True)
    given = functional.max_pool1d(x.to(request.getfixturevalue(form)), 3, 2, 1, return_indices=True)
    assert str(given[0].tolist()) == str(expected[0].tolist())
    assert given[1].tolist() == expected[1].tolist()
    assert given[1][1, 0].tolist() == [0, 1, 5, 5]


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_views_of_any_layout_are_pooled(form: str, request: pytest.FixtureRequest) -> None:
    """A sliced, transposed and expanded input gives the same result as its copy."""

    def view(x: Any) -> Any:
        return x.unsqueeze(1).expand(2, 3, 40, 38)[:, :, 1:, ::2].transpose(2, 3)

    x = cd.arange(2 * 40 * 38, dtype=cd.float32).reshape(2, 40, 38).remainder(97)
    given = functional.max_pool2d(view(x.to(request.getfixturevalue(form))), 2)
    assert given.to(plugins.reference_device()).equal(functional.max_pool2d(view(x), 2))


def test_small_integers_and_halves_are_summed_as_on_the_host(device: cd.device) -> None:
    """Integers wrap; half types are added in float32 and rounded once."""
    for dtype in (cd.int8, cd.float16):
        x = cd.arange(64).mul(37).remainder(113).to(dtype).reshape(1, 64)
        geometry = (5,), (3,), (2,), (1,), (22,)
        assert sum_pool(x.to(device), *geometry).tolist() == sum_pool(x, *geometry).tolist()


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_a_wrong_index_is_reported(form: str, request: pytest.FixtureRequest) -> None:
    """An index outside its plane writes nothing, and the next synchronisation raises an error with the index."""
    x = cd.ones(8, 3, device=request.getfixturevalue(form))
    index = cd.tensor([[0, 1, 2]] * 7 + [[0, 9, 1]], device=x.device)
    with pytest.raises(RuntimeError, match=r"'scatter_planes' failed: .*index 9 is out of bounds"):
        scatter_planes(x, index, 4, True).tolist()


@pytest.mark.parametrize("dtype", [cd.float32, cd.complex64, cd.int64])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_values_of_one_place_are_added_in_order(lanes: cd.device, count: int, dtype: cd.dtype) -> None:
    """A work-group processes 32 values of a plane at once; sums of several are those of a loop, to the last bit."""
    rng = np.random.default_rng(count)
    index = rng.integers(0, 7, (300, count))
    values = rng.normal(size=(300, count)).astype(np.float32) * 1000
    x = cd.tensor(values.tolist()).to(dtype)
    places = cd.tensor(index.tolist())
    expected = scatter_planes(x, places, 9, False)
    given = scatter_planes(x.to(lanes), places.to(lanes), 9, False)
    assert given.tolist() == expected.tolist()


def test_a_wrong_index_of_a_work_group_is_reported(lanes: cd.device) -> None:
    """The values with other indices of the plane are added."""
    x = cd.ones(300, 40, device=lanes)
    places = cd.zeros(300, 40, dtype=cd.int64)
    places[299, 39] = 9
    with pytest.raises(RuntimeError, match=r"'scatter_planes' failed: .*index 9 is out of bounds"):
        scatter_planes(x, places.to(lanes), 4, False).tolist()
