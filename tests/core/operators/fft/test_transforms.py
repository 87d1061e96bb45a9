"""Fourier transforms: compared with NumPy for every norm and size, gradients of both orders, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.fft import fft, irfft
from candelabra_arrayapi import fft as generic
from scipy import fft as scipy_fft

NORMS = [None, "backward", "ortho", "forward"]
REAL = ("rfft", "ihfft")
HALF = ("irfft", "hfft")


def samples(rng: np.random.Generator, name: str, *shape: int) -> Any:
    """Return real numbers for transforms of real input, complex ones for the others."""
    real = rng.standard_normal(shape)
    return real if name.startswith(REAL) else real + 1j * rng.standard_normal(shape)


def close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Assert that shape, kind and values are equal."""
    assert tuple(actual.shape) == expected.shape
    assert actual.dtype.is_complex == (expected.dtype.kind == "c")
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_a_dim_are_numpys(name: str, norm: str | None, rng: np.random.Generator) -> None:
    """Odd and even numbers of points, truncated and padded, along any dim, as function and with out=."""
    ours, theirs = getattr(cd.fft, name), getattr(np.fft, name)
    for shape in ((5,), (6,), (2, 4, 3)):
        a = samples(rng, name, *shape)
        x = cd.tensor(a)
        for dim in range(-1, len(shape)):
            for n in (None, 1, 3, 4, 9):
                close(ours(x, n, dim, norm), theirs(a, n, dim, norm))
    actual = ours(x, norm=norm)
    out = cd.empty(0, dtype=actual.dtype)
    assert ours(x, norm=norm, out=out) is out
    assert out.tolist() == actual.tolist()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_over_several_dims_are_numpys(name: str, norm: str | None, rng: np.random.Generator) -> None:
    """Sizes and dims may be passed or omitted; -1 keeps a size."""
    ours, theirs = getattr(cd.fft, name), getattr(np.fft, name)
    a = samples(rng, name, 3, 4, 5)
    x = cd.tensor(a)
    close(ours(x, norm=norm), theirs(a, norm=norm))
    for s, dim in (((2, 6), (0, 2)), ((4, 3), (-1, -2)), (None, (1, 0)), ((5, 4), (1, 2))):
        close(ours(x, s, dim, norm), theirs(a, s, dim, norm))
    close(ours(x, (2, -1), (0, 1), norm), theirs(a, (2, 4 if "ir" not in name else 6), (0, 1), norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["hfft2", "ihfft2", "hfftn", "ihfftn"])
def test_hermitian_transforms_over_several_dims_are_scipys(
    name: str, norm: str | None, rng: np.random.Generator
) -> None:
    """NumPy has no such transforms."""
    ours, theirs = getattr(cd.fft, name), getattr(scipy_fft, name)
    a = samples(rng, name, 3, 4, 5)
    close(ours(cd.tensor(a), norm=norm), theirs(a, norm=norm))
    close(ours(cd.tensor(a), (2, 6), (0, 2), norm), theirs(a, (2, 6), (0, 2), norm))


def test_sizes_alone_choose_the_last_dims(rng: np.random.Generator) -> None:
    """Two sizes in ``s`` transform the last two dims; the tensor must have as many."""
    a = samples(rng, "fft", 2, 3, 4)
    close(cd.fft.fftn(cd.tensor(a), (2, 3)), np.fft.fft2(a, (2, 3)))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "bool"])
def test_transforms_keep_single_precision(dtype: str, rng: np.random.Generator) -> None:
    """float32 and integers give complex64, as in PyTorch."""
    a = rng.integers(0, 2, (4, 6)).astype(dtype)
    for actual, expected in (
        (cd.fft.fft(cd.tensor(a)), np.fft.fft(a)),
        (cd.fft.ifft(cd.tensor(a)), np.fft.ifft(a)),
        (cd.fft.fft2(cd.tensor(a)), np.fft.fft2(a)),
    ):
        assert actual.dtype is cd.complex64
        close(actual, expected, 1e-5)
    assert cd.fft.irfft(cd.tensor(a)).dtype is cd.float32


def test_empty_batches_and_no_dims_are_fine() -> None:
    """An empty batch gives an empty result; a transform over no dims returns the input as complex."""
    assert cd.fft.fft(cd.zeros(0, 4)).shape == (0, 4)
    assert cd.fft.rfft(cd.zeros(0, 4)).shape == (0, 3)
    assert cd.fft.irfft(cd.zeros(0, 3)).shape == (0, 4)
    x = cd.tensor([1.0, 2.0])
    assert cd.fft.fftn(x, dim=()).tolist() == [1, 2]
    assert cd.fft.fftn(cd.tensor(3.0)).item() == 3


def test_nan_reaches_its_line_only() -> None:
    """NaN and infinity in one line do not affect other lines."""
    x = cd.ones(2, 4)
    x[0, 0] = float("nan")
    actual = cd.fft.fft(x)
    assert bool(actual[0].isnan().all())
    assert actual[1].tolist() == [4, 0, 0, 0]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfftn", "hfftn"])
def test_transforms_have_gradients_of_both_orders(name: str, rng: np.random.Generator) -> None:
    """Real and complex input, odd and even numbers of points, truncated and padded, in every norm."""
    for norm, n in ((None, 4), ("ortho", 5), ("forward", 3)):
        sizes: Any = (2, n) if name.endswith("n") else n
        leaves = [cd.tensor(samples(rng, name, 3, 4), requires_grad=True)]
        if not name.startswith(REAL):
            leaves.append(cd.tensor(rng.standard_normal((3, 4)), requires_grad=True))
        call = lambda x, s=sizes, k=norm: getattr(cd.fft, name)(x, s, norm=k)  # noqa: E731 - used twice, below
        for leaf in leaves:
            assert gradcheck(call, (leaf,), fast_mode=True)
            assert gradgradcheck(call, (leaf,), fast_mode=True)


def test_many_points_are_split_over_threads(rng: np.random.Generator) -> None:
    """Long lines and many lines give the same results as short ones."""
    a = rng.standard_normal((300, 400)).astype(np.float32)
    close(cd.fft.fft(cd.tensor(a)), np.fft.fft(a), 1e-3)
    close(cd.fft.irfft(cd.fft.rfft(cd.tensor(a))), a, 1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_frequencies_are_numpys(n: int) -> None:
    """The unit is cycles per unit; dtype, requires_grad and out= work as in every factory."""
    np.testing.assert_allclose(cd.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
    actual = cd.fft.rfftfreq(n, d=2.0, dtype=cd.float64, requires_grad=True)
    np.testing.assert_allclose(actual.detach().numpy(), np.fft.rfftfreq(n, 2.0))
    assert actual.requires_grad
    assert actual.is_leaf
    assert cd.fft.fftfreq(0).shape == (0,)
    out = cd.empty(0)
    assert cd.fft.fftfreq(n, out=out) is out
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        cd.fft.fftfreq(n, dtype=cd.int64)
    with pytest.raises(RuntimeError, match="rfftfreq requires a floating point or complex dtype"):
        cd.fft.rfftfreq(n, dtype=cd.int64)


def test_shifts_are_numpys_and_undo_each_other(rng: np.random.Generator) -> None:
    """One dim, several or all dims are shifted."""
    a = rng.standard_normal((3, 4, 5))
    x = cd.tensor(a)
    for dim in (None, 0, -1, (0, 2)):
        close(cd.fft.fftshift(x, dim), np.fft.fftshift(a, dim))
        close(cd.fft.fftshift(x, axis=dim), np.fft.fftshift(a, dim))
        close(cd.fft.ifftshift(x, dim), np.fft.ifftshift(a, dim))
        close(cd.fft.ifftshift(cd.fft.fftshift(x, dim), dim), a)
    assert cd.fft.fftshift(cd.tensor(1.0)).item() == 1


def test_the_package_lists_its_names() -> None:
    """``candelabra.fft`` has PyTorch's 22 names, and dir() lists them."""
    names = [f"{h}{k}fft{n}" for k in ("", "r", "h") for h in ("", "i") for n in ("", "2", "n")]
    names += ["fftfreq", "rfftfreq", "fftshift", "ifftshift"]
    assert len(names) == 22
    assert set(names) <= set(dir(cd.fft))
    assert fft is cd.fft.fft
    assert irfft is cd.fft.irfft


C, R = cd.ones(3, 4, dtype=cd.complex64), cd.ones(3, 4)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.fft.fft(R, norm="half"), RuntimeError, 'Invalid normalization mode: "half"'),
    (lambda: cd.fft.fft(R, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cd.fft.fft(cd.ones(3, 0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cd.fft.irfft(cd.ones(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cd.fft.irfftn(C, (3, 0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cd.fft.fft(R, dim=2), IndexError, "Dimension out of range"),
    (lambda: cd.fft.fft(cd.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: cd.fft.fft2(cd.ones(3)), IndexError, "Dimension out of range"),
    (lambda: cd.fft.fft(R.half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: cd.fft.rfftn(R.bfloat16()), RuntimeError, "Unsupported dtype BFloat16"),
    (lambda: cd.fft.rfft(C), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: cd.fft.ihfft(C), RuntimeError, "ihfft expects a real input tensor, but got ComplexFloat"),
    (lambda: cd.fft.rfftn(C), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    (lambda: cd.fft.rfftn(R, dim=()), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: cd.fft.irfftn(C, dim=()), RuntimeError, "irfftn must transform at least one axis"),
    (lambda: cd.fft.fftn(R, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
    (lambda: cd.fft.fftn(R, (2,), (0, 1)), RuntimeError, "dim and shape arguments must have the same length"),
    (lambda: cd.fft.fft(R, 2.5), TypeError, r"argument 'n' \(position 2\) must be int, not float"),
    (lambda: cd.fft.fftshift([1]), TypeError, r"argument 'input' \(position 1\) must be Tensor, not list"),
    (
        lambda: cd.fft.fftn(R, (2, 2, 2)),
        RuntimeError,
        "Got shape with 3 values but input tensor only has 2 dimensions",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_transforms_are_errors_in_pytorchs_words(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()


def test_transforms_are_written_over_the_array_api_too(rng: np.random.Generator) -> None:
    """A device without transforms uses its namespace's extension, with the same results."""
    kernels = generic.kernels(np)
    a = rng.standard_normal((3, 4))
    x = cd.tensor(a)
    close(OPERATORS["fft_r2c"](x, (0, 1), "ortho", True), kernels["fft_r2c"](a, (0, 1), "ortho", True))
    close(OPERATORS["fft_r2c"](x, (1,), "forward", False), kernels["fft_r2c"](a, (1,), "forward", False))
    z = a + 1j
    for forward in (True, False):
        actual = OPERATORS["fft_c2c"](cd.tensor(z), (0, 1), "backward", forward)
        close(actual, kernels["fft_c2c"](z, (0, 1), "backward", forward))
    close(OPERATORS["fft_c2r"](cd.tensor(z), (0, 1), "ortho", 7), kernels["fft_c2r"](z, (0, 1), "ortho", 7))
    assert generic.kernels(object()) == {}
