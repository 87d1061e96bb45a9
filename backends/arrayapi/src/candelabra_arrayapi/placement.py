"""The ``device=`` of a namespace's creation functions. Neither it nor ``.device`` of arrays has to exist."""

from __future__ import annotations

from typing import Any


def on(device: Any) -> dict[str, Any]:
    """Return the keywords that create an array on ``device``, or none if it is None."""
    return {} if device is None else {"device": device}


def same_device(x: Any) -> dict[str, Any]:
    """Return the keywords that create an array on the device of ``x``, or none if ``x`` does not know its device."""
    return on(getattr(x, "device", None))
