"""Window functions of spectral analysis, by SciPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import Reference, references

Array = np.ndarray[Any, Any]
NUTTALL: Final = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def scipys(name: str) -> Callable[..., Any]:
    """Return SciPy's function, which is imported at the first call: scipy.signal takes a second."""

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module("scipy.signal.windows"), name)(*args, **options)

    return call


general_cosine: Final = scipys("general_cosine")


def window(make: Callable[..., Any]) -> Reference:
    """Return SciPy's window of a length, for every dtype."""

    def reference(M: int, *, sym: bool = True, dtype: Any = None, **options: Any) -> Array:
        return np.asarray(make(M, sym=sym, **options), np.float64)

    return reference


def older(make: Callable[..., Any]) -> Reference:
    """Return the same by the older name: periodic by default, with the parameters by position."""

    def reference(M: int, periodic: bool = True, *parameters: float, dtype: Any = None) -> Array:
        return np.asarray(make(M, *parameters, sym=not periodic), np.float64)

    return reference


def general_hamming(M: int, alpha: float = 0.54, *, sym: bool = True) -> Any:
    """Call SciPy's function, which has no default."""
    return scipys("general_hamming")(M, alpha, sym)


def kaiser(M: int, beta: float = 12.0, *, sym: bool = True) -> Any:
    """Call SciPy's function, which has no default."""
    return scipys("kaiser")(M, beta, sym)


references({
    **{f"signal.windows.{name}": window(scipys(name)) for name in (
        "bartlett", "blackman", "cosine", "exponential", "general_cosine", "hamming", "hann",
    )},
    "signal.windows.gaussian": window(lambda M, std=1.0, *, sym: scipys("gaussian")(M, std, sym)),
    "signal.windows.general_hamming": window(general_hamming),
    "signal.windows.kaiser": window(kaiser),
    "signal.windows.nuttall": window(lambda M, *, sym: general_cosine(M, NUTTALL, sym)),
    "bartlett_window": older(scipys("bartlett")),
    "blackman_window": older(scipys("blackman")),
    "hann_window": older(scipys("hann")),
    "hamming_window": older(
        lambda M, alpha=0.54, beta=0.46, *, sym: general_cosine(M, (alpha, beta), sym)
    ),
    "kaiser_window": older(kaiser),
})  # fmt: skip
