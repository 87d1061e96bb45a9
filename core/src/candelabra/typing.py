"""The names for annotations of operators and public callables.

``candelabra._records.schema`` defines their meaning for the dispatcher. The last group replaces names of Python's
``typing`` in modules that ``import candelabra`` loads: importing ``typing`` would take a quarter of that time.
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
"""The position of a new dim."""
Permutation = Sequence[int]
"""Every dim once, in any order."""
DistinctDims = int | Sequence[int]
"""Distinct dims; an empty sequence means no dim."""
UnitDims = int | Sequence[int] | None
"""Dims to remove if their size is 1; None for all of that size."""
Correction = int | float | None
"""The correction of a variance, which is subtracted from the number of elements; None for 1."""
Shape = Sequence[int] | int
ExpandedShape = Sequence[int] | int
"""A shape to expand to; -1 keeps a size."""
InferredShape = Sequence[int] | int
"""A shape for existing elements; one size may be -1."""
JoinedTensors = Sequence[Tensor]
"""Tensors to join along a dim. An empty vector fits any shape and affects only the dtype."""
StorageOffset = int | None
"""The storage offset of a view in elements; None for that of the tensor."""
Origin = tuple[tuple[int, ...], int, int, int] | None
"""Strides and offset of a tensor, and begin and end of its memory. They are computed; an argument is ignored."""
Integer = int
"""An integer of Python or of an array library, or a 0-d integer tensor, whose value is read."""
DType = dtype
Device = device | Instance | str | int | None
Index = Tensor
"""An int64 tensor of indices."""
Mask = Tensor
"""A bool tensor. uint8 is converted."""
BoolMask = Tensor
"""A bool tensor; another dtype is an error."""

__all__ = [
    "TYPE_CHECKING", "Any", "BoolMask", "Correction", "DType", "Device", "Dim", "Dims", "DistinctDims", "ExpandedShape",
    "Final", "Index", "InferredShape", "InsertedDim", "Integer", "JoinedTensors", "Literal", "Mask", "NamedTuple",
    "Number", "Origin", "Permutation", "Sequence", "Shape", "StorageOffset", "Tensor", "UnitDims", "overload",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
