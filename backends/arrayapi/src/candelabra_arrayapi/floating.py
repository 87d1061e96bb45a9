"""What floating-point numbers are made of: signs and neighbours, by the standard's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def kernels(xp: Any) -> dict[str, Callable[..., Any]]:
    """The kernels over a namespace."""

    def signbit(x: Any) -> Any:
        if xp.isdtype(x.dtype, "real floating"):
            return xp.signbit(x)
        return x != x if xp.isdtype(x.dtype, "bool") else x < 0

    return {"copysign": xp.copysign, "hypot": xp.hypot, "nextafter": xp.nextafter, "signbit": signbit}
