"""Elementwise kernels with several results: each operand is read once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.engine import Engine
from candelabra_clike.language import all_declared, value_type
from candelabra_clike.layouts import WIDE, is_wide
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS, ElementwiseSchedule, Launches
from candelabra_clike.templates.elementwise.loops import LoopNest, operands


class ElementwiseSeveral:
    """``outs[k][i] = function(a[i], b[i], …)[k]`` for arrays of one shape, with the dtypes ``inputs`` and ``outputs``.

    Raises ``ExpressionError`` for a wrong function.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], inputs: Sequence[dtype], outputs: Sequence[dtype]
    ) -> None:
        values = all_declared(name, function, operands(inputs), [[value_type(d)] for d in outputs])
        self._launches = Launches(LoopNest(name, tuple(values), tuple(inputs), tuple(outputs), (), False))
        self._schedule = lru_cache(MAX_PLANS)(self._scheduled)

    def __call__(self, arrays: Sequence[StridedArray], outs: Sequence[StridedArray]) -> None:
        """Write the results to ``outs``, which have elements, none of them in an array or twice."""
        placed = (*outs, *arrays)
        first = outs[0]
        wide = is_wide(*placed)
        plan = self._schedule(first.engine, first.shape, tuple([array.strides for array in placed]), wide)
        if max([array.offset for array in placed]) > plan.max_offset:
            plan = self._schedule(first.engine, first.shape, tuple([array.strides for array in placed]), True)
        buffers, offsets = [array.buffer for array in placed], [array.offset for array in placed]
        plan.launch(plan.items, *buffers, *offsets, *plan.numbers)

    def _scheduled(self, engine: Engine, shape: Shape, rows: tuple[Shape, ...], wide: bool) -> ElementwiseSchedule:
        furthest = max([extent(shape, row) for row in rows])
        return self._launches.schedule(engine, shape, rows, False, wide or furthest >= WIDE, furthest)
