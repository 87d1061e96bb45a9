"""Window functions, compared with SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.signal import windows
from scipy import signal


def close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Assert that shape and values are equal."""
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


WINDOWS: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "bartlett": ({}, signal.windows.bartlett),
    "blackman": ({}, signal.windows.blackman),
    "cosine": ({}, signal.windows.cosine),
    "exponential": ({"tau": 2.5}, lambda n, sym: signal.windows.exponential(n, None, 2.5, sym)),
    "gaussian": ({"std": 1.5}, lambda n, sym: signal.windows.gaussian(n, 1.5, sym)),
    "general_cosine": ({"a": [0.5, 0.3, 0.2]}, lambda n, sym: signal.windows.general_cosine(n, [0.5, 0.3, 0.2], sym)),
    "general_hamming": ({"alpha": 0.6}, lambda n, sym: signal.windows.general_hamming(n, 0.6, sym)),
    "hamming": ({}, signal.windows.hamming),
    "hann": ({}, signal.windows.hann),
    "kaiser": ({"beta": 7.0}, lambda n, sym: signal.windows.kaiser(n, 7.0, sym)),
    "nuttall": ({}, signal.windows.nuttall),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_scipys(name: str) -> None:
    """Symmetric and periodic windows of zero, one, an odd and an even number of points agree."""
    options, expected = WINDOWS[name]
    for n in (0, 1, 2, 7, 10):
        for sym in (True, False):
            wanted = expected(n, sym) if n else np.zeros(0)
            close(getattr(windows, name)(n, **options, sym=sym, dtype=cd.float64), wanted, 1e-9)
    actual = getattr(windows, name)(5, **options, requires_grad=True)
    assert actual.dtype is cd.float32
    assert actual.requires_grad
    assert actual.is_leaf


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_refuse_what_pytorchs_refuse(name: str) -> None:
    """Negative lengths and other dtypes are ValueErrors that name the window; layouts are checked as in factories."""
    options, _ = WINDOWS[name]
    make = getattr(windows, name)
    with pytest.raises(ValueError, match=f"{name} requires non-negative window length, got M=-1"):
        make(-1, **options)
    with pytest.raises(ValueError, match=f"{name} expects float32 or float64 dtypes, got: candelabra.int64"):
        make(3, **options, dtype=cd.int64)
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'layout' must be candelabra.layout, not str"):
        make(3, **options, layout="sparse")
    with pytest.raises(ValueError, match=rf"{name}\(\): layout candelabra.sparse_coo is not supported"):
        make(3, **options, layout=cd.sparse_coo)


WINDOW_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: windows.hann(2.5), TypeError, "argument 'M'.* must be int, not float"),
    (lambda: cd.hann_window("3"), TypeError, "argument 'window_length'.* must be int, not str"),
    (lambda: windows.exponential(3, tau=0), ValueError, "Tau must be positive, got: 0 instead."),
    (lambda: windows.exponential(3, center=1.0), ValueError, "Center must be None for symmetric windows"),
    (lambda: windows.gaussian(3, std=-1), ValueError, "Standard deviation must be positive, got: -1 instead."),
    (lambda: windows.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
    (lambda: windows.general_cosine(3, a=3), TypeError, "Coefficients must be a list/tuple"),  # type: ignore[arg-type]
    (lambda: windows.general_cosine(3, a=[]), ValueError, "Coefficients cannot be empty"),
]


@pytest.mark.parametrize(("call", "error", "text"), WINDOW_ERRORS, ids=[f"{n}" for n in range(len(WINDOW_ERRORS))])
def test_bad_shapes_of_windows_are_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Invalid widths and coefficients are errors."""
    with pytest.raises(error, match=text):
        call()


def test_an_exponential_window_may_have_its_center_anywhere() -> None:
    """The center requires sym=False."""
    close(windows.exponential(4, center=0.0, tau=2.0, sym=False, dtype=cd.float64), np.exp(-np.arange(4) / 2))
    close(windows.exponential(1, center=2.0, sym=False, dtype=cd.float64), np.exp([-2.0]))


OLD: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "hann_window": ({}, signal.windows.hann),
    "hamming_window": ({"alpha": 0.6, "beta": 0.4}, lambda n, sym: signal.windows.general_hamming(n, 0.6, sym)),
    "blackman_window": ({}, signal.windows.blackman),
    "bartlett_window": ({}, signal.windows.bartlett),
    "kaiser_window": ({"beta": 9.0}, lambda n, sym: signal.windows.kaiser(n, 9.0, sym)),
}


@pytest.mark.parametrize("name", OLD)
def test_older_names_are_periodic_unless_asked_otherwise(name: str) -> None:
    """Any floating dtype is supported; other dtypes and negative lengths are RuntimeErrors."""
    options, expected = OLD[name]
    make = getattr(cd, name)
    for n in (0, 1, 2, 7, 10):
        wanted = expected(n, False) if n else np.zeros(0)
        close(make(n, **options, dtype=cd.float64), wanted, 1e-9)
        close(make(n, periodic=False, **options, dtype=cd.float64), expected(n, True) if n else wanted, 1e-9)
    assert make(4, dtype=cd.float16).dtype is cd.float16
    assert make(4, requires_grad=True).is_leaf
    with pytest.raises(RuntimeError, match=f"{name} expects floating point dtypes, got: Long"):
        make(3, dtype=cd.int64)
    with pytest.raises(RuntimeError, match=f"{name} requires non-negative window_length, got window_length=-1"):
        make(-1)


def test_windows_have_the_keywords_of_factories() -> None:
    """``out=`` determines the dtype; ``meta`` and device objects are supported."""
    for make in (windows.hann, windows.kaiser, windows.exponential, cd.hann_window, cd.kaiser_window):
        out = cd.empty(5, dtype=cd.float64)
        assert make(5, out=out) is out
        close(out, make(5, dtype=cd.float64).numpy())
        assert make(5, layout=cd.strided, pin_memory=False, device="meta").shape == (5,)
        assert make(1, device="meta").device.type == "meta"
