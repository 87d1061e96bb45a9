"""The names that annotations of operators use; what each means to the dispatcher stands in ``operator.schema``."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.device import Instance, device
from candelabra.dtypes import dtype
from candelabra.tensor import Tensor

Number = bool | int | float | complex
Dim = int
Dims = int | Sequence[int] | None
Shape = Sequence[int] | int
DType = dtype
Device = device | Instance | str | int | None
Index = Tensor
Mask = Tensor

__all__ = ["Device", "DType", "Dim", "Dims", "Index", "Mask", "Number", "Sequence", "Shape", "Tensor"]
