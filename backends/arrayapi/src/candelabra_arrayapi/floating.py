"""Sign bits, adjacent floating-point numbers and hypotenuses, by the standard's functions of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def kernels(xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``."""

    def signbit(x: Any) -> Any:
        if xp.isdtype(x.dtype, "real floating"):
            return xp.signbit(x)
        return x != x if xp.isdtype(x.dtype, "bool") else x < 0

    def nextafter(x: Any, y: Any) -> Any:
        return xp.where(x == y, y, xp.nextafter(x, y))  # of equal zeros the result is y, as in C

    return {"copysign": xp.copysign, "hypot": xp.hypot, "nextafter": nextafter, "signbit": signbit}
