"""The names that annotations of operators and public callables use.

``candelabra._records.schema`` says what each means to the dispatcher. The last group is Python's ``typing``, for
modules that are imported with candelabra: importing ``typing`` itself would cost a quarter of the time that the core
takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING as TYPE_CHECKING
from candelabra._annotations import Any as Any
from candelabra._annotations import Final as Final
from candelabra._annotations import Literal as Literal
from candelabra._annotations import NamedTuple as NamedTuple
from candelabra._annotations import overload as overload
from candelabra._device import Instance, device
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype

Number = bool | int | float | complex
Dim = int
"""One dim, counted from the front or, if negative, from the end."""
Dims = int | Sequence[int] | None
"""One dim, several, or None for all."""
InsertedDim = int
"""A place among the dims for one more."""
Permutation = Sequence[int]
"""Every dim once, in any order."""
DistinctDims = int | Sequence[int]
"""Dims, none twice; an empty sequence means none of them."""
UnitDims = int | Sequence[int] | None
"""Dims to drop where their size is 1; None for all of that size."""
Correction = int | float | None
"""What a variance takes off the number of elements; None for 1."""
Shape = Sequence[int] | int
ExpandedShape = Sequence[int] | int
"""A shape to expand to, in which -1 keeps a size."""
InferredShape = Sequence[int] | int
"""A shape for given elements, in which one size may be -1."""
JoinedTensors = Sequence[Tensor]
"""Tensors to join along a dim. Empty vectors count for the dtype only, whatever the shape of the others."""
StorageOffset = int | None
"""Where a view of memory begins, in elements; None for where the tensor itself begins."""
Origin = tuple[tuple[int, ...], int, int, int] | None
"""Strides and offset of a tensor, and where the memory under it begins and ends: computed, whatever is given."""
Integer = int
"""An integer: also an array library's, or a 0-d integer tensor, whose value is read."""
DType = dtype
Device = device | Instance | str | int | None
Index = Tensor
"""An int64 tensor of indices."""
Mask = Tensor
"""A bool tensor."""

__all__ = [
    "TYPE_CHECKING", "Any", "Correction", "DType", "Device", "Dim", "Dims", "DistinctDims", "ExpandedShape", "Final",
    "Index", "InferredShape", "InsertedDim", "Integer", "JoinedTensors", "Literal", "Mask", "NamedTuple", "Number",
    "Origin", "Permutation", "Sequence", "Shape", "StorageOffset", "Tensor", "UnitDims", "overload",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
