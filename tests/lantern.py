"""Two device types that differ from NumPy as much as possible, so that the core depends only on the contract.

``lantern`` has two asynchronous devices, lacks 64-bit floats, and has only the kernels that every array library can
provide, except a few. ``ember`` has immutable arrays and no strides. Both are the fake accelerator of
``candelabra_conformance``.
"""

from collections.abc import Mapping
from typing import Any

import candelabra_arrayapi
import numpy as np
from candelabra._records.registry import OPERATORS
from candelabra.backend import Kernel
from candelabra.dtypes import ALL
from candelabra_conformance.fake import FakeAccelerator

NUMPY = {d: np.dtype(d.name) for d in ALL if d.name != "bfloat16"}
UNHELD = ("float64", "complex128", "bfloat16")
MISSING = ("cumsum", "cumprod", "sinh", "cosh", "argmin", "expm1", "atan2")
"""Operators without a kernel on these devices, so that they fall back."""


def portable() -> dict[str, Kernel]:
    """Return the kernels that are written for any array library, here for NumPy."""
    table = candelabra_arrayapi.kernels(np, NUMPY)
    return {name: silent(kernel) for name, kernel in table.items() if name in OPERATORS}


def silent(kernel: Kernel) -> Kernel:
    """Return the kernel without NumPy's warnings, which no device emits."""

    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            result = kernel(*args)
        return result if isinstance(result, tuple) or result is NotImplemented else np.asarray(result)

    return run


def put(x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """Do ``index_put`` on a copy."""
    out = x.copy()
    where = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, where, values)
    else:
        out[where] = values
    return out


class LanternBackend(FakeAccelerator):
    """Two devices with writable, strided arrays."""

    name = "lantern"

    def __init__(self, devices: int = 2, immutable: bool = False, kernels: Mapping[str, Kernel] | None = None) -> None:
        super().__init__(
            type(self).name,
            devices,
            missing_dtypes=UNHELD,
            missing_kernels=MISSING,
            immutable=immutable,
            dlpack=None,
            facts={"wick": "short"},
            kernels=portable() if kernels is None else kernels,
        )


class EmberBackend(LanternBackend):
    """One device with immutable arrays without strides: every view is a separate array."""

    name = "ember"

    def __init__(self) -> None:
        super().__init__(1, immutable=True, kernels={**portable(), "index_put": put})
