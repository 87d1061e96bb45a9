"""How an engine computes each ``ReduceOp`` in each dtype."""

from __future__ import annotations

from typing import Any, Final

import candelabra as cd
from candelabra.library import ReduceOp

_BITWISE: Final = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_BOOL: Final = {
    ReduceOp.SUM: "bor", ReduceOp.MAX: "bor", ReduceOp.BOR: "bor", ReduceOp.PRODUCT: "band", ReduceOp.MIN: "band",
    ReduceOp.BAND: "band", ReduceOp.BXOR: "bxor",
}  # fmt: skip


class EngineReduction:
    """What an engine computes for a ReduceOp in a dtype.

    Attributes:
        op: one of ``engine.REDUCTIONS``.
        dtype: the dtype that the engine computes in.
        cast: the dtype to which the tensor is cast for it, or None.
        average: whether the result is then divided by the number of ranks.

    ``halves``: the engine reduces float16 and bfloat16 itself.
    """

    def __init__(self, name: str, op: Any, dtype: Any, halves: bool = False) -> None:
        if not isinstance(op, ReduceOp):
            raise TypeError(f"{name}: op must be a candelabra.distributed.ReduceOp, got {op!r}")
        if op is ReduceOp.PREMUL_SUM:
            raise ValueError(f"{name}: ReduceOp.PREMUL_SUM needs the engine 'nccl'; multiply before the call instead")
        if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT):
            raise ValueError(f"{name} does not support {op} on complex tensors")
        if op in _BITWISE and dtype.is_floating_point:
            raise RuntimeError(f"Cannot use {op} with non-integral dtype")
        self.average = op is ReduceOp.AVG
        if self.average and not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"{name}: {op} needs a floating-point tensor, got {dtype}; reduce by SUM and divide")
        half = not halves and dtype in (cd.float16, cd.bfloat16)
        self.cast = cd.float32 if half else cd.uint8 if dtype is cd.bool else None
        self.dtype: str = (self.cast or dtype).name
        self.op = _BOOL[op] if dtype is cd.bool else "sum" if self.average else op.name.lower()
