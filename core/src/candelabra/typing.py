"""The names that annotations of operators use; what each means to the dispatcher stands in ``operator.schema``."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._device import Instance, device
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype

Number = bool | int | float | complex
Dim = int
Dims = int | Sequence[int] | None
Shape = Sequence[int] | int
DType = dtype
Device = device | Instance | str | int | None
Index = Tensor
Mask = Tensor

__all__ = ["Device", "DType", "Dim", "Dims", "Index", "Mask", "Number", "Sequence", "Shape", "Tensor"]
