"""Pointwise kernels where NumPy's semantics or speed are not the ones wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from candelabra_cpu.quiet import quiet, quiet1, quiet2

KERNELS: dict[str, Any] = {
    "exp2": quiet1(np.exp2),
    "erf": quiet1(special.erf),
    "fmod": quiet2(np.fmod),
    "conj_physical": quiet1(np.conjugate),
}
