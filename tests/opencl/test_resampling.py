"""The banded product on OpenCL devices, in the forms for processors and for GPUs, compared with the host's device."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import plugins
from candelabra.nn import functional
from candelabra.nn._operators.resampling import resample

pytestmark = pytest.mark.rounding

RESIZINGS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "lines": ((3, 2, 37), {"size": 90, "mode": "linear"}),
    "images": ((2, 3, 17, 40), {"scale_factor": 2, "mode": "bilinear"}),
    "smaller": ((2, 3, 40, 33), {"size": (7, 5), "mode": "bicubic", "antialias": True}),
    "volumes": ((1, 2, 5, 6, 7), {"size": (4, 9, 9), "mode": "trilinear", "align_corners": True}),
    "nearest": ((2, 3, 17, 40), {"size": (30, 21)}),
}


@pytest.mark.parametrize("form", ["device", "lanes"])
@pytest.mark.parametrize("name", RESIZINGS)
def test_results_and_gradients_are_the_hosts(form: str, name: str, request: pytest.FixtureRequest) -> None:
    """Values and gradients agree to a few units of float32: the host adds in another order."""
    shape, options = RESIZINGS[name]
    x = cd.arange(cd.Size(shape).numel()).reshape(shape).mul(7).remainder(101).sub(50).to(cd.float32)
    found = []
    for device in (plugins.reference_device(), request.getfixturevalue(form)):
        leaf = x.detach().clone().to(device).requires_grad_()
        y = functional.interpolate(leaf, **options)
        y.backward(cd.arange(y.numel()).remainder(13).reshape(y.shape).to(cd.float32).to(device))
        found.append([t.to(plugins.reference_device()) for t in (y.detach(), leaf.grad)])
    for one, other in zip(*found, strict=True):
        # At most 4 * 4 products of numbers up to 50 (values) and 12 times the weights of an element (gradients).
        assert (one - other).abs().max().item() <= 1e-3


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_elements_with_the_weight_0_are_not_read(form: str, request: pytest.FixtureRequest) -> None:
    """Infinities and NaN affect only the rows with a weight for them, in every floating dtype of the device."""
    x = cd.tensor([[1, nan, 2, 3], [inf, 1, 2, 3]])
    place = request.getfixturevalue(form)
    start, weight = cd.tensor([0, 1, 2]).to(place), cd.tensor([[1, 0], [0, 1], [0.5, 0.5]])
    for dtype in (cd.float32, cd.float16):
        given = resample(x.to(dtype).to(place), 1, start, weight.to(dtype).to(place))
        assert given.tolist() == [[1, 2, 2.5], [inf, 2, 2.5]]


def test_a_view_is_resampled_as_its_copy(device: cd.device) -> None:
    """A transposed and sliced input gives the same result as its copy."""
    x = cd.arange(120.0).reshape(2, 3, 4, 5).to(device)
    view = x.transpose(1, 3)[:, 1:]
    assert functional.interpolate(view, 6).equal(functional.interpolate(view.contiguous(), 6))
