"""Numbers in an optimizer's state: 0-d tensors, as in PyTorch, whose values are known without reading a device."""

from __future__ import annotations

from ctypes import c_float
from typing import Any

from candelabra import Tensor, float32, float64, full, get_default_dtype

__all__ = ["kept_value", "number_in", "scalar"]


def scalar(value: float) -> Tensor:
    """Return ``value`` as a 0-d tensor: of float64 if that is the default dtype, of float32 otherwise.

    Several parameters may share the tensor. It is replaced at the next step, and not written.
    """
    made = full((), value, dtype=float64 if get_default_dtype() is float64 else float32)
    made.known = (kept_value(value), made._counter[0])  # type: ignore[attr-defined]
    return made


def kept_value(value: float) -> float:
    """Return the number that :func:`scalar` keeps of ``value``: rounded to float32, unless float64 is the default."""
    return float(value) if get_default_dtype() is float64 else c_float(value).value


def number_in(kept: Any) -> float:
    """Return the value of a number, or of a 0-d tensor."""
    known = getattr(kept, "known", None)
    return known[0] if known is not None and known[1] == kept._counter[0] else float(kept)


def __dir__() -> list[str]:
    return sorted(__all__)
