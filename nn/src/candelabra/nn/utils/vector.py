"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra import Tensor
from candelabra.library import record

cat = record("cat")

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """Return the elements of all parameters as one vector. Differentiable."""
    out: Tensor = cat([parameter.reshape(-1) for parameter in parameters], 0)
    return out


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Set the data of every parameter to its part of the vector. Raises ``TypeError`` if ``vec`` is not a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    start = 0
    flat: Any = vec
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = flat[start : start + count].view_as(parameter).data
        start += count


def __dir__() -> list[str]:
    return sorted(__all__)
