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
        in_c = asked(*arguments)
        if in_c is None or not _is_compiled(in_c, arguments[in_c.argument]):
            return None
        return in_c._replace(pack=_packing(in_c.pack), kernel=_with_packed(in_c.kernel, kernel))

    return packing


def _is_compiled(packing: Packing, spec: Any) -> bool:
    from candelabra_clike.recording import RECORDING, RecordedBlock

    from candelabra_native.recorded import RECORDER

    strides = contiguous_strides(spec.shape)
    operand = StridedArray(RECORDER, RecordedBlock(spec.nbytes), spec.shape, strides, 0, spec.dtype, spec.numel, True)
    RECORDING.steps = []
    try:
        for layout in packing.layouts:
            packing.pack(operand, layout)
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
