"""The short-time Fourier transform, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck


def close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Assert that shape and values are equal."""
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def by_hand(x: Any, n: int, hop: int, window: Any) -> Any:
    """Return the transforms of the windows, one by one."""
    starts = range(0, x.shape[-1] - n + 1, hop)
    return np.stack([np.fft.rfft(x[..., s : s + n] * window) for s in starts], -1)


def test_stft_transforms_windows(rng: np.random.Generator) -> None:
    """Centred and not, batched and not, function and method; windows may be shorter than the transform."""
    x, window = rng.standard_normal((2, 50)), rng.standard_normal(8)
    t, w = cd.tensor(x), cd.tensor(window)
    expected = by_hand(x, 8, 3, window)
    close(cd.stft(t, 8, 3, window=w, center=False, return_complex=True), expected)
    close(t[0].stft(8, 3, window=w, center=False, return_complex=True), expected[0])
    padded = np.pad(x, ((0, 0), (4, 4)), mode="reflect")
    close(cd.stft(t, 8, window=w, return_complex=True), by_hand(padded, 8, 2, window))
    narrow = np.concatenate([np.zeros(1), window[:5], np.zeros(2)])
    close(cd.stft(t, 8, 2, 5, w[:5], return_complex=True), by_hand(padded, 8, 2, narrow))
    close(cd.stft(t, 8, 2, 5, normalized=True, return_complex=True),
          by_hand(padded, 8, 2, [0, 1, 1, 1, 1, 1, 0, 0]) / np.sqrt(8))  # fmt: skip


@pytest.mark.parametrize(("mode", "numpys"), [("constant", "constant"), ("replicate", "edge"), ("circular", "wrap")])
def test_stft_supports_every_padding_mode(mode: str, numpys: Any, rng: np.random.Generator) -> None:
    """The modes are NumPy's under PyTorch's names."""
    x = rng.standard_normal(20)
    expected = by_hand(np.pad(x, 4, mode=numpys), 8, 2, np.ones(8))
    close(cd.stft(cd.tensor(x), 8, pad_mode=mode, return_complex=True), expected)


def test_stft_of_complex_numbers_has_all_frequencies(rng: np.random.Generator) -> None:
    """Real signals have them on request; pairs of reals give a warning."""
    x = rng.standard_normal(20)
    whole = cd.stft(cd.tensor(x), 8, onesided=False, return_complex=True)
    close(cd.stft(cd.tensor(x + 0j), 8), whole.numpy())
    close(cd.stft(cd.tensor(x), 8, return_complex=True), whole.numpy()[:5])
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = cd.stft(cd.tensor(x), 8, return_complex=False)
    close(cd.view_as_complex(pairs), whole.numpy()[:5])


def test_stft_may_align_to_the_window(rng: np.random.Generator) -> None:
    """The signal is padded on each side by half of the difference between transform and window."""
    x, window = rng.standard_normal(20), rng.standard_normal(4)
    actual = cd.stft(cd.tensor(x), 8, 2, 4, cd.tensor(window), center=False, return_complex=True, align_to_window=True)
    full = np.pad(window, 2)
    close(actual, by_hand(np.pad(x, 2), 8, 2, full))


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_istft_gives_the_signal_back(onesided: bool, normalized: bool, rng: np.random.Generator) -> None:
    """Batches and single signals are restored, to the requested length."""
    x = cd.tensor(rng.standard_normal((2, 41)))
    options = {"hop_length": 3, "window": cd.hann_window(8, dtype=cd.float64), "normalized": normalized}
    spectra = cd.stft(x, 8, **options, onesided=onesided, return_complex=True)
    close(cd.istft(spectra, 8, **options, onesided=onesided, length=41), x.numpy())
    close(cd.istft(spectra[0], 8, **options), x.numpy()[0, :39])
    z = cd.complex(x, x.flip(1))
    spectra = cd.stft(z, 8, **options)
    close(spectra.istft(8, **options, length=40, return_complex=True), z.numpy()[:, :40])


def test_istft_pads_what_is_missing_with_a_warning() -> None:
    """The tail after the last window is zeros."""
    spectra = cd.stft(cd.ones(20, dtype=cd.float64), 8, return_complex=True)
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
        actual = cd.istft(spectra, 8, length=30)
    assert actual[:20].tolist() == pytest.approx([1.0] * 20)
    assert actual[24:].tolist() == [0.0] * 6


def test_short_time_transforms_have_gradients_of_both_orders(rng: np.random.Generator) -> None:
    """The signal, the spectrum and the window have gradients."""

    def leaf(*shape: int) -> Any:
        return cd.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True)

    spectrum = cd.tensor(rng.standard_normal((5, 4)) + 1j * rng.standard_normal((5, 4)), requires_grad=True)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (lambda x, w: cd.stft(x, 6, 2, window=w, return_complex=True), (leaf(2, 15), leaf(6))),
        (lambda x, w: cd.istft(x, 8, 3, 7, w), (spectrum, leaf(7))),
    ]
    for call, leaves in calls:
        assert gradcheck(call, leaves, fast_mode=True)
        assert gradgradcheck(call, leaves, fast_mode=True)


X, S = cd.ones(20), cd.ones(5, 4, dtype=cd.complex64)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.stft(X, "8"), TypeError, r"stft\(\): argument 'n_fft'.* must be int, not str"),
    (lambda: cd.istft(S, 8, 2.0), TypeError, r"istft\(\): argument 'hop_length'.* must be int, not float"),
    (
        lambda: cd.stft(X, 8, window=[1], return_complex=True),
        TypeError,
        "'window' .position 5. must be Tensor, not list",
    ),
    (lambda: cd.stft(X, 8), RuntimeError, "stft requires the return_complex parameter be given for real inputs"),
    (lambda: cd.stft(X.int(), 8, return_complex=True), RuntimeError, "expected a floating point or complex tensor"),
    (
        lambda: cd.stft(cd.ones(2, 2, 20), 8, return_complex=True),
        RuntimeError,
        "expected a 1D or 2D tensor, but got 3D",
    ),
    (lambda: cd.stft(X, 8, win_length=9, return_complex=True), RuntimeError, "0 < win_length <= n_fft"),
    (lambda: cd.stft(X, 30, center=False, return_complex=True), RuntimeError, "0 < n_fft < 20, but got n_fft=30"),
    (lambda: cd.stft(X, 8, 0, return_complex=True), RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    (
        lambda: cd.stft(X, 8, window=cd.ones(7), return_complex=True),
        RuntimeError,
        r"size equal to win_length=8, but got window with size \[7\]",
    ),
    (lambda: cd.stft(X, 8, pad_mode="odd", return_complex=True), NotImplementedError, "Unrecognised padding mode odd"),
    (lambda: cd.stft(X, 60, return_complex=True), RuntimeError, "Padding size should be less than the corresponding"),
    (
        lambda: cd.stft(X, 60, pad_mode="circular", return_complex=True),
        RuntimeError,
        "Padding value causes wrapping around more than once",
    ),
    (lambda: cd.stft(X + 0j, 8, onesided=True), RuntimeError, "Cannot have onesided output if window or input is"),
    (
        lambda: cd.stft(X, 8, return_complex=True, align_to_window=True),
        RuntimeError,
        "align_to_window should only be set when center = false",
    ),
    (lambda: cd.istft(X, 8), RuntimeError, "istft requires a complex-valued input tensor"),
    (lambda: cd.istft(S[:, :0], 8), RuntimeError, "input tensor cannot be empty"),
    (lambda: cd.istft(S[0], 8), RuntimeError, "expected a tensor with 2 or 3 dimensions, but got 1"),
    (lambda: cd.istft(S, 9, onesided=False), RuntimeError, "to match n_fft when onesided=False, but got 5"),
    (lambda: cd.istft(S, 12), RuntimeError, "n_fft / 2 . 1 when onesided=True, but got 5"),
    (lambda: cd.istft(S, 8, 9), RuntimeError, "expected 0 < hop_length <= win_length"),
    (lambda: cd.istft(S, 8, win_length=9), RuntimeError, "expected 0 < win_length <= n_fft"),
    (lambda: cd.istft(S, 8, window=cd.ones(7)), RuntimeError, "window has to be 1D and length of `win_length`"),
    (lambda: cd.istft(S, 8, window=cd.zeros(8)), RuntimeError, "window overlap add min: 1"),
    (lambda: cd.istft(S, 8, return_complex=True), RuntimeError, "Cannot have onesided output"),
    (lambda: cd.istft(S, 8, window=S[0].new_ones(8)), RuntimeError, "incompatible with return_complex=False"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_signals_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()
