"""Contributions that the tests add by hand, and the source of one that they install."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import candelabra as cd
from candelabra.backend import hookimpl

Make = Callable[[str, Mapping[str, Any]], Any]


class Contributed:
    """A contribution whose table is made by a function of (device type, what serves so far)."""

    def __init__(self, make: Make, precedence: Any = 0) -> None:
        self.make = make
        self.precedence = precedence

    @hookimpl
    def candelabra_kernels(self, device_type: str, kernels: Mapping[str, Any]) -> Any:
        return self.make(device_type, kernels)


class OfDtype:
    """A kernel that serves one dtype."""

    def __init__(self, dtype: cd.dtype, kernel: Callable[..., Any]) -> None:
        self.dtype = dtype
        self.kernel = kernel

    def for_dtype(self, dtype: cd.dtype) -> Callable[..., Any] | None:
        return self.kernel if dtype is self.dtype else None

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*args)


FAST = """
from candelabra.backend import hookimpl
class Plugin:
    precedence = 0
    @hookimpl
    def candelabra_kernels(self, device_type, kernels):
        small = kernels["exp"]
        return {"exp": lambda x: small(x) + 2}
plugin = Plugin()
"""
EXP = "print(cd.zeros(2).exp().tolist())\n"
