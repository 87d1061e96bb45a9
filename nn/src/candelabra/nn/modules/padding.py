"""Padding of the last dims. ``padding``: one size for all sides, or (left, right, top, bottom, front, back)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module
from candelabra.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """The common base of the paddings without a value. Subclasses define ``_rank``."""

    _rank: int
    padding: Sequence[int]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._rank)(padding)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# -- values from the opposite side ------------------------------------------------------------------------------------
class _CircularPadNd(_Pad):
    """The common base of CircularPad1d to CircularPad3d."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ``ValueError`` unless the input has the right number of dims."""
        if input.ndim not in (self._rank + 1, self._rank + 2):
            raise ValueError(f"expected {self._rank + 1}D or {self._rank + 2}D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads (N, C, L) or (C, L) with the values of the opposite side."""

    _rank = 1


class CircularPad2d(_CircularPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the opposite side."""

    _rank = 2


class CircularPad3d(_CircularPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the opposite side."""

    _rank = 3


# -- one value --------------------------------------------------------------------------------------------------------
class _ConstantPadNd(_Pad):
    """The common base of ConstantPad1d to ConstantPad3d."""

    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dim with ``value``; a negative size removes elements."""

    _rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dims with ``value``; a negative size removes elements."""

    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dims with ``value``; a negative size removes elements."""

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dim with 0."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dims with 0."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dims with 0."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# -- the values near the edge -----------------------------------------------------------------------------------------
class _ReflectionPadNd(_Pad):
    """The common base of ReflectionPad1d to ReflectionPad3d."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """Pads (N, C, L) or (C, L) with the values reflected at the edge, which itself is not repeated."""

    _rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values reflected at the edge, which itself is not repeated."""

    _rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values reflected at the edge, which itself is not repeated."""

    _rank = 3


class _ReplicationPadNd(_Pad):
    """The common base of ReplicationPad1d to ReplicationPad3d."""

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """Pads (N, C, L) or (C, L) with the values at the edge."""

    _rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values at the edge."""

    _rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values at the edge."""

    _rank = 3


def __dir__() -> list[str]:
    return sorted(__all__)
