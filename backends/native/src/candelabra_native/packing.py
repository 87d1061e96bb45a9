"""Packed operands over NumPy arrays, see :class:`candelabra.graph.Packing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.backend import contiguous_strides
from candelabra.graph import Packing
from candelabra_clike import StridedArray

from candelabra_native.arrays import Unsuitable, ndarray, payload, strided
from candelabra_native.engine import ENGINE
from candelabra_native.finding import Missing

Kernel = Callable[..., Any]


def packing_of_arrays(asked: Callable[..., Packing | None], kernel: Kernel) -> Callable[..., Packing | None]:
    """Return the ``packing`` of a kernel over NumPy arrays for that of the kernel in C.

    It declines calls whose packing is not compiled, and must not be.
    """

    def packing(*arguments: Any) -> Packing | None:
        found = asked(*arguments)
        if found is None or not _is_compiled(found, arguments[found.argument]):
            return None
        return found._replace(pack=_packing(found.pack), kernel=_with_packed(found.kernel, kernel))

    return packing


def _is_compiled(found: Packing, spec: Any) -> bool:
    from candelabra_native.recorded import RECORDER, RECORDING, RecordedBlock

    strides = contiguous_strides(spec.shape)
    operand = StridedArray(RECORDER, RecordedBlock(spec.nbytes), spec.shape, strides, 0, spec.dtype, spec.numel, True)
    RECORDING.steps = []
    try:
        for layout in found.layouts:
            found.pack(operand, layout)
    except Missing:
        return False
    return True


def _packing(pack: Kernel) -> Kernel:
    """Return the function that packs a NumPy array."""

    def kernel(x: Any, layout: Any) -> Any:
        try:
            array = strided(x, ENGINE)
        except Unsuitable:
            array = strided(np.array(x, order="C"), ENGINE)
        return payload(pack(array, layout))

    function: Any = kernel
    function.in_c, function.is_small = pack, "False"
    return kernel


def _with_packed(in_c: Kernel, own: Kernel) -> Kernel:
    """Return the function of the operator's arguments and the list of packed arrays. ``own`` needs none of them."""

    def kernel(*arguments: Any) -> Any:
        *given, arrays = arguments
        try:
            operands = [strided(a, ENGINE) if a.__class__ is ndarray else a for a in given]
            return payload(in_c(*operands, [strided(a, ENGINE) for a in arrays]))
        except (Missing, Unsuitable):
            return own(*given)

    function: Any = kernel
    function.in_c, function.is_small = in_c, "False"
    return kernel
