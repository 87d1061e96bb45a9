"""Convert between the dtypes of candelabra and NumPy, with bfloat16 from ml_dtypes."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
from candelabra.dtypes import ALL, dtype

HOST: Final[dict[dtype, np.dtype[Any]]] = {
    d: np.dtype(ml_dtypes.bfloat16 if d.name == "bfloat16" else d.name) for d in ALL
}
FROM_HOST: Final[dict[np.dtype[Any], dtype]] = {host: d for d, host in HOST.items()}


def host_dtype(d: dtype) -> np.dtype[Any]:
    """Return the NumPy dtype with the same values."""
    return HOST[d]


def device_dtype(d: np.dtype[Any]) -> dtype:
    """Return the candelabra dtype for the dtype of a NumPy array."""
    return FROM_HOST[np.dtype(d)]
