"""Convolutions on OpenCL devices, in the forms for processors and for GPUs, compared with the host's device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra.library import plugins
from candelabra.nn import functional
from candelabra_clike import Engine, convolution_products
from candelabra_clike.kernels.convolution import ConvGeometry, Phase, conv, conv_input, conv_weight, phases

Shape = tuple[int, ...]


class Case(NamedTuple):
    """The shapes of images and filters, and the geometry."""

    images: Shape
    filters: Shape
    options: dict[str, Any]

    def function(self, transposed: bool = False) -> Callable[..., Any]:
        """Return the convolution for the number of dims of the images, or its transpose."""
        found: Callable[..., Any] = getattr(functional, f"conv{'_transpose' * transposed}{len(self.images) - 2}d")
        return found


CASES: dict[str, Case] = {
    "one dim": Case((2, 3, 37), (5, 3, 4), {"stride": 2, "padding": 1}),
    "along rows": Case((2, 5, 6, 32), (7, 5, 3, 3), {"padding": 1}),
    "over the ends of rows": Case((2, 40, 8, 9), (13, 40, 3, 3), {"padding": 1}),
    "no frame, at the end of the memory": Case((1, 2, 5, 19), (4, 2, 2, 3), {}),
    "one tap": Case((2, 16, 9, 40), (33, 16, 1, 1), {}),
    "steps": Case((2, 6, 17, 12), (8, 6, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "groups, dilated": Case((2, 6, 12, 11), (9, 2, 3, 2), {"padding": (2, 1), "dilation": (2, 3), "groups": 3}),
    "a group a channel": Case((3, 4, 14, 15), (4, 1, 3, 3), {"padding": 1, "groups": 4}),
    "a group a channel, wide": Case((1, 2, 6, 70), (2, 1, 3, 3), {"groups": 2}),
    "steps and dilation": Case((1, 4, 16, 16), (12, 1, 3, 3), {"stride": 2, "dilation": 3, "groups": 4}),
    "steps beyond the kernel": Case((2, 3, 9, 10), (4, 3, 1, 2), {"stride": 3}),
    "three dims": Case((2, 2, 6, 7, 8), (3, 2, 2, 3, 2), {"stride": (1, 2, 1), "padding": 1}),
    "deeper than a panel": Case((1, 31, 6, 7), (3, 31, 3, 3), {}),
    "few places": Case((5, 6, 3, 4), (17, 6, 3, 3), {"padding": 1}),
    "few places, steps": Case((7, 4, 5, 5), (6, 2, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    "one place": Case((5, 6, 3, 4), (8, 3, 3, 4), {"groups": 2}),
    "one place, dilated": Case((19, 2, 5), (4, 2, 3), {"dilation": 2}),
    "no images": Case((0, 4, 5, 5), (4, 4, 3, 3), {"padding": 1}),
}


@pytest.fixture(params=["device", "lanes", "products"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms, with those for GPUs, and with matrix products."""
    found: cd.device = request.getfixturevalue(request.param)
    return found


def numbers(shape: Shape, kind: cd.dtype = cd.float32, seed: int = 1) -> Any:
    """Return integers from -3 to 3, so that sums of products of floats are exact."""
    count = cd.Size(shape).numel()
    return (cd.arange(count) * (37 + 2 * seed)).remainder(101).remainder(7).sub(3).reshape(shape).to(kind)


def results(case: Case, where: cd.device, see: Callable[[Any], Any] = lambda x: x) -> list[Any]:
    """Return value, gradients and the transposed convolution of a gradient, computed on a device, on the host."""
    x, w, bias = numbers(case.images), numbers(case.filters, seed=2), numbers(case.filters[:1], seed=3)
    x, w, bias = (see(t).to(where).requires_grad_() for t in (x, w, bias))
    y = case.function()(x, w, bias, **case.options)
    g = see(numbers(tuple(y.shape), seed=4)).to(where)
    back = case.function(transposed=True)(g, w, **case.options)
    y.backward(g)
    return [t.detach().to(plugins.reference_device()) for t in (y, x.grad, w.grad, bias.grad, back)]


@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_their_adjoints_are_the_hosts(form: cd.device, name: str) -> None:
    """Value, gradients of images, filters and bias, and the transposed convolution agree for every kind of geometry."""
    case = CASES[name]
    wanted = results(case, plugins.reference_device())
    for one, other in zip(results(case, form), wanted, strict=True):
        assert one.equal(other)


def test_images_and_filters_of_any_layout_are_supported(form: cd.device) -> None:
    """Views with channels last, inside a larger tensor, or with strides give the same result as their copies."""
    x, w = numbers((2, 6, 9, 11)), numbers((4, 6, 3, 3))
    wanted = functional.conv2d(x, w, stride=2)
    last = x.permute(0, 2, 3, 1).contiguous().to(form).permute(0, 3, 1, 2)
    wide = functional.pad(x, (2, 3, 1, 4)).to(form)[:, :, 1:10, 2:13]
    double = w.repeat_interleave(2, 0).repeat_interleave(2, 3).to(form)[1::2, :, :, ::2]
    for view in (last, wide):
        for filters in (w.to(form), w.transpose(0, 1).contiguous().to(form).transpose(0, 1), double):
            assert functional.conv2d(view, filters, stride=2).cpu().equal(wanted)


def test_strided_gradients_are_supported(form: cd.device) -> None:
    """The adjoints support any layout of their inputs."""
    x, w, g = numbers((2, 3, 8, 9)), numbers((4, 3, 3, 3)), numbers((2, 4, 7, 6))
    found = []
    for where in (form, plugins.reference_device()):
        a, b = x.to(where).requires_grad_(), w.to(where).requires_grad_()
        functional.conv2d(a, b).backward(g.to(where).transpose(2, 3))
        assert a.grad is not None
        assert b.grad is not None
        found.append((a.grad.cpu(), b.grad.cpu()))
    assert found[0][0].equal(found[1][0])
    assert found[0][1].equal(found[1][1])


def test_patches_outside_of_the_images_are_zero(products: cd.device) -> None:
    """An input gradient has elements to which no output contributes; the memory behind its images has other values."""
    memory = cd.full((4096,), cd.nan).to(products)
    g = memory.new_zeros(4096)[:9].copy_(cd.ones(9)).reshape(1, 3, 3)
    w = numbers((3, 2, 3))
    wanted = functional.conv_transpose1d(cd.ones(1, 3, 3), w, stride=2, output_padding=1)
    view = memory[:9].copy_(g.reshape(9)).reshape(1, 3, 3)
    for y in (g, view):
        assert functional.conv_transpose1d(y, w.to(products), stride=2, output_padding=1).cpu().equal(wanted)


def test_patches_in_memory_are_bounded(products: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the patches of all images are too many, some images follow after the others."""
    case = CASES["steps"]
    wanted, made = results(case, plugins.reference_device()), []
    monkeypatch.setattr(convolution_products, "MAX_PATCHES", 1)
    gather = convolution_products.gather_patches
    monkeypatch.setattr(convolution_products, "gather_patches", lambda x, p: made.append(p.images) or gather(x, p))
    for one, other in zip(results(case, products), wanted, strict=True):
        assert one.equal(other)
    assert set(made) == {1}


KINDS = [("device", k) for k in ("float64", "float16", "bfloat16", "complex64", "int8", "int64")]
KINDS += [("lanes", k) for k in ("float16", "complex64", "int8")]
KINDS += [("products", k) for k in ("float16", "bfloat16", "int8")]
"""The forms for GPUs compile slowly for a processor, so each conversion between memory and value occurs once."""


@pytest.mark.parametrize(("form", "name"), KINDS)
def test_every_kind_of_number_is_convolved(form: str, name: str, request: pytest.FixtureRequest) -> None:
    """Half types are computed in float32, complex numbers by their parts, and integers wrap."""
    kind, device = getattr(cd, name), request.getfixturevalue(form)
    x, w, bias = numbers((2, 3, 7, 9), kind), numbers((4, 3, 3, 3), kind, 2), numbers((4,), kind, 3)
    if kind.is_complex:
        x, w, bias = x * (1 + 2j), w * (2 - 1j), bias * 1j
    if not kind.is_floating_point and not kind.is_complex:
        x, w = x * (2 ** (8 * kind.itemsize - 2) - 1), w * 5
    wanted = functional.conv2d(x, w, bias, padding=1)
    assert functional.conv2d(x.to(device), w.to(device), bias.to(device), padding=1).cpu().equal(wanted)
    wanted = functional.conv_transpose2d(x, w.transpose(0, 1), stride=2)
    assert functional.conv_transpose2d(x.to(device), w.to(device).transpose(0, 1), stride=2).cpu().equal(wanted)


@pytest.mark.parametrize("name", ["float16", "complex64"])
def test_gradients_of_filters_are_right_in_other_kinds(form: cd.device, name: str) -> None:
    """The sums over images are computed in float32 and then rounded."""
    kind = getattr(cd, name)
    found = []
    for where in (form, plugins.reference_device()):
        x, w = numbers((3, 2, 6, 5), kind).to(where), numbers((3, 2, 3, 3), kind, 2).to(where).requires_grad_()
        y = functional.conv2d(x, w)
        y.backward(numbers(tuple(y.shape), kind, 4).to(where))
        assert w.grad is not None
        found.append(w.grad.cpu())
    assert found[0].equal(found[1])


def test_a_device_without_float64_convolves_the_rest(single: cd.device) -> None:
    """float32 does not require float64, forward or backward."""
    case = CASES["groups, dilated"]
    for one, other in zip(results(case, single), results(case, plugins.reference_device()), strict=True):
        assert one.equal(other)


@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_a_device_without_float64_has_the_reference_convolve(single: cd.device) -> None:
    """The kernel declines float64; the fallback policy may forbid the reference device."""
    x = cd.ones(1, 1, 3, 3, dtype=cd.float64).to(single)
    assert functional.conv2d(x, x).item() == 9
    with cd.fallback("error"), pytest.raises(RuntimeError, match="'conv' is not available on device 'single:0'"):
        functional.conv2d(x, x)


def test_phases_see_each_tap_once() -> None:
    """The positions of an input form as many phases as the stride, and each tap is in exactly one of them."""
    assert phases(5, 3, 2, 1, 1) == [Phase(0, 3, 1, 1, 2, 0, 1), Phase(1, 2, 2, 2, 2, 0, 1)]
    assert phases(4, 1, 3, 0, 1)[1:] == [Phase(1, 1, 0, 0, 3, 0, 1), Phase(2, 1, 0, 0, 3, 0, 1)]
    assert sum(p.taps for p in phases(20, 7, 3, 2, 1)) == 7


REFUSED: list[tuple[Shape, Shape, int, str, str]] = [
    (
        (1, 3, 5, 5),
        (4, 2, 3, 3),
        1,
        r"shapes \(1, 3, 5, 5\) and \(4, 2, 3, 3\) do not match",
        "to have 2 channels, but",
    ),
    ((1, 4, 5, 5), (3, 2, 3, 3), 2, r"shapes .* do not match", "expected weight to be divisible by 2"),
    (
        (1, 3, 5, 5),
        (4, 3, 7, 7),
        1,
        r"the kernel \(4, 3, 7, 7\) is larger than the padded input \(1, 3, 5, 5\)",
        "Kernel size can't be",
    ),
]


@pytest.mark.parametrize(("images", "filters", "groups", "kernel_error", "words"), REFUSED)
def test_shapes_that_do_not_fit_are_refused(
    engine: Engine, device: cd.device, images: Shape, filters: Shape, groups: int, kernel_error: str, words: str
) -> None:
    """The kernel names the shapes; the operator's rule replaces the error by PyTorch's."""
    geometry = ConvGeometry((1, 1), (0, 0), (1, 1), groups)
    with pytest.raises(RuntimeError, match=kernel_error):
        conv(engine.empty(images, cd.float32), engine.empty(filters, cd.float32), None, geometry)
    with pytest.raises(RuntimeError, match=words):
        functional.conv2d(cd.ones(images, device=device), cd.ones(filters, device=device), groups=groups)


def test_adjoints_refuse_shapes_that_do_not_fit(engine: Engine) -> None:
    """Another number of channels, of images or of groups is an error."""
    x, y = engine.empty((1, 3, 5, 5), cd.float32), engine.empty((1, 4, 3, 3), cd.float32)
    w = engine.empty((4, 3, 3, 3), cd.float32)
    geometry = ConvGeometry((1, 1), (0, 0), (1, 1), 1)
    for shape, groups in (((1, 2, 5, 5), 1), ((2, 3, 5, 5), 1), ((1, 9, 5, 5), 3)):
        with pytest.raises(RuntimeError, match=r"shapes \(1, 4, 3, 3\), \(4, 3, 3, 3\) and .* do not match"):
            conv_input(y, w, shape, geometry._replace(groups=groups))
    for shape, groups in (((4, 2, 3, 3), 1), ((5, 3, 3, 3), 1), ((4, 1, 3, 3), 3)):
        with pytest.raises(RuntimeError, match=r"shapes \(1, 3, 5, 5\), \(1, 4, 3, 3\) and .* do not match"):
            conv_weight(x, y, shape, geometry._replace(groups=groups))
