"""``ReduceOp``: the names of reductions, which programs use whether candelabra-distributed is installed or not."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """The reductions of collective functions. Floating-point sums are in the order of the engine."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"ReduceOp.{self.name}"


ReduceOp.__module__ = "candelabra.distributed"
