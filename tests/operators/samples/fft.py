"""Samples for the derivatives of the Fourier transforms, whose inputs are complex or real whatever is asked for."""

from __future__ import annotations

from typing import Any

import candelabra as cd


def complex_leaf(t: Any, *shape: int) -> Any:
    """A complex leaf."""
    return type(t)(cd.complex128)(*shape)


SAMPLES = {
    "fft_c2c": lambda t: (complex_leaf(t, 3, 4), (0, 1), "ortho", False),
    "fft_r2c": lambda t: (t(3, 4), (0, 1), "forward", True),
    "fft_c2r": lambda t: (complex_leaf(t, 2, 3), (0, 1), "backward", 5),
}
PLAN = {"dim": (0, 1), "norm": "ortho", "forward": True, "onesided": True, "size": 6}
KERNEL_ARGUMENTS = {"fft_c2c": PLAN, "fft_r2c": PLAN, "fft_c2r": PLAN}
