"""Products, transforms and calculus on devices without their kernels: composite bodies, or the fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest

pytestmark = [
    pytest.mark.usefixtures("lantern"),
    pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning"),
]
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (lambda a, b: cd.mm(a, b), ((3, 4), (4, 2))),
    "addmm": (lambda a, b, c: cd.addmm(a, b, c, beta=0.5), ((2,), (3, 4), (4, 2))),
    "addr": (lambda a, b, c: cd.addr(a, b, c), ((2, 3), (2,), (3,))),
    "addbmm": (lambda a, b, c: cd.addbmm(a, b, c), ((2, 2), (3, 2, 2), (3, 2, 2))),
    "einsum": (lambda a, b: cd.einsum("bij,bjk->ik", a, b), ((2, 3, 4), (2, 4, 5))),
    "tensordot": (lambda a, b: cd.tensordot(a, b, 1), ((2, 3), (3, 4))),
    "kron": (lambda a, b: cd.kron(a, b), ((2, 3), (2, 2))),
    "cdist": (lambda a, b: cd.cdist(a, b, 1.5), ((4, 3), (5, 3))),
    "cdist by a product": (lambda a, b: cd.cdist(a, b), ((30, 3), (5, 3))),
    "pdist": (lambda a: cd.pdist(a), ((5, 3),)),
    "cosine_similarity": (lambda a, b: cd.cosine_similarity(a, b), ((2, 3), (2, 3))),
    "cross": (lambda a, b: cd.cross(a, b, dim=1), ((2, 3), (2, 3))),
    "diff": (lambda a: cd.diff(a), ((2, 5),)),
    "gradient": (lambda a: cd.gradient(a)[0], ((4, 5),)),
    "trapezoid": (lambda a: cd.trapezoid(a), ((2, 5),)),
    "cov": (lambda a: cd.cov(a), ((2, 5),)),
    "corrcoef": (lambda a: cd.corrcoef(a), ((2, 5),)),
    "vander": (lambda a: cd.vander(a), ((4,),)),
    "rfft": (lambda a: cd.fft.rfft(a).abs(), ((8,),)),
    "fft2": (lambda a: cd.fft.fft2(a).abs(), ((4, 4),)),
    "irfft": (lambda a: cd.fft.irfft(a), ((5,),)),
    "fftshift": (lambda a: cd.fft.fftshift(a), ((5,),)),
    "stft": (lambda a: cd.stft(a, 8, return_complex=True).abs(), ((40,),)),
    "istft": (lambda a: cd.istft(cd.stft(a, 8, return_complex=True), 8), ((40,),)),
}


@pytest.mark.parametrize("device", ["lantern", "ember"])
@pytest.mark.parametrize("name", CASES)
def test_every_device_gives_the_references_values_and_gradients(
    name: str, device: str, rng: np.random.Generator
) -> None:
    """A device without these kernels, and one with immutable arrays, agree."""
    call, shapes = CASES[name]
    arrays = [cd.tensor(rng.random(shape, dtype=np.float32)) for shape in shapes]
    here = [a.clone().requires_grad_() for a in arrays]
    there = [a.to(device).requires_grad_() for a in arrays]
    expected, found = call(*here), call(*there)
    assert str(found.device).startswith(device)
    np.testing.assert_allclose(found.detach().to("cpu").numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    found.sum().backward()
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(b.grad.to("cpu").numpy(), a.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", ["lantern", "ember"])
def test_windows_and_frequencies_are_made_where_they_are_asked_for(device: str) -> None:
    """The factories accept ``device=``."""
    for make in (cd.hann_window, cd.kaiser_window, cd.signal.windows.nuttall, cd.fft.fftfreq, cd.fft.rfftfreq):
        found = make(6, device=device)
        assert str(found.device).startswith(device)
        np.testing.assert_allclose(found.to("cpu").numpy(), make(6).numpy(), rtol=1e-5, atol=1e-6)
