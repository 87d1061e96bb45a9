"""Faults at zeros and at numbers that disappear next to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks


@breaks("logaddexp", "logaddexp2", only="f", caught_by="logaddexp*/special/*")
def small_term_is_lost(right: Kernel, x: Any, y: Any) -> Any:
    """The logarithm of 1 plus a number below 1e-9 is 0."""
    out = right(x, y)
    return np.where(np.abs(out) < 1e-9, np.zeros_like(out), out)


@breaks("erfinv", only="f", caught_by="erfinv/special/*")
def inverse_error_function_drops_the_sign(right: Kernel, x: Any) -> Any:
    """The result for -0.0 is 0.0."""
    out = right(x)
    return np.where(x == 0, np.zeros_like(out), out)
