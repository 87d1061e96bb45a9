"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.nn.modules.module import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """Return the elements of all parameters as one vector. Differentiable. All must be on one device."""
    found = list(parameters)
    for parameter in found:
        _check_device(parameter, found[0])
    return cd.cat([parameter.reshape(-1) for parameter in found], 0)


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Set the data of every parameter to its part of the vector. Raises ``TypeError`` if ``vec`` is not a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected candelabra.Tensor, but got: {typename(vec)}")
    start = 0
    flat: Any = vec
    found = list(parameters)
    for parameter in found:
        _check_device(parameter, found[0])
        count = parameter.numel()
        parameter.data = flat[start : start + count].view_as(parameter).data
        start += count


def _check_device(parameter: Any, first: Any) -> None:
    if parameter.device != first.device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def __dir__() -> list[str]:
    return sorted(__all__)
