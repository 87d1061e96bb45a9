"""Types for annotations, as ``torch.types``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any, Union

from candelabra._device import device
from candelabra._size import Size
from candelabra._tensor import Tensor

Number = Union[bool, int, float]  # noqa: UP007 - isinstance() of PyTorch's programs takes both
Device = Union[device, str, int, None]  # noqa: UP007
FileLike = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
MapLocation = Union[Callable[[Tensor, str], Tensor], device, str, dict[str, str], None]  # noqa: UP007
"""The parameter ``map_location`` of ``load``."""
_int, _float, _bool, _dtype, _size = int, float, bool, Any, Union[Size, list[int], tuple[int, ...]]  # noqa: UP007

__all__ = ["Device", "FileLike", "MapLocation", "Number", "Size", "Tensor"]


def __dir__() -> list[str]:
    return sorted(__all__)
