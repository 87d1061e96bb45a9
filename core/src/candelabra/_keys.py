"""Dispatch keys: the properties of a call as bits of one Python int.

From low to high: functionality above the kernels, the type of a Python scalar among the arguments, the dtype (one-hot),
the layout, and one bit per *device instance*. The key of a call is the OR of its tensors' keys and the thread's mode
bits. The whole int is looked up at once, so a hit implies that all tensors have one device and one dtype. Python ints
are unbounded, so the number of devices is too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from candelabra._annotations import Final

AUTOGRAD: Final = 1 << 0
"""The tensor requires grad."""
VIEW: Final = 1 << 1
"""The tensor is a tracked view: it must be compared with its base before use."""
INFERENCE: Final = 1 << 2
"""The tensor was created in inference mode."""
NO_GRAD: Final = 1 << 3
"""Mode: recording is disabled. The bit is set to exclude a functionality, since OR is faster than AND NOT."""
PACK: Final = 1 << 4
"""Mode: saved tensors are packed by ``saved_tensors_hooks``."""
ANOMALY: Final = 1 << 5
"""Mode: every node records the traceback of its creation."""
LAYER_SHIFT: Final = 6
LAYER_LIMIT: Final = 18
"""Plugins' functionality layers take bits 6 to 23; see ``candelabra._dispatch.layers``."""
LAYER_MASK: Final = ((1 << LAYER_LIMIT) - 1) << LAYER_SHIFT
SCALAR_SHIFT: Final = 24
SCALAR_BITS: Final[dict[type, int]] = {t: 1 << (SCALAR_SHIFT + i) for i, t in enumerate((bool, int, float, complex))}
"""The bit of a Python scalar among the arguments; its position is the scalar's category."""
SCALAR_MASK: Final = 0b1111 << SCALAR_SHIFT
SCALAR_FIRST: Final = 1 << 28
"""The first of two operands is the scalar, not the second."""
DTYPE_SHIFT: Final = 29
DTYPE_LIMIT: Final = 32
"""Dtypes take bits 29 to 60, one each. Unused bits are reserved for the float8 types and narrower ones."""
LAYOUT_SHIFT: Final = DTYPE_SHIFT + DTYPE_LIMIT
LAYOUT_MASK: Final = 0b111 << LAYOUT_SHIFT
"""The bits of the layout. Strided tensors have none, sparse ones have one; see ``candelabra._sparse``."""
INFERENCE_MODE: Final = 1 << 64
"""Mode: results are inference tensors. Not INFERENCE: outside the mode, results from inference tensors are normal."""
OVERRIDE: Final = 1 << 65
"""The tensor belongs to a subclass that handles calls by ``__torch_function__``."""
NO_OVERRIDE: Final = 1 << 66
"""Mode: subclasses are treated as plain tensors."""
FUNCTION_MODE: Final = 1 << 67
"""Mode: a function mode (``candelabra.overrides.TorchFunctionMode``) handles calls."""
OWN_KERNELS: Final = 1 << 68
"""Mode: the kernels of a device's owner serve, not those that other distributions contribute."""
EVERY_SIZE: Final = 1 << 69
"""Mode: contributed kernels serve calls of every size, also those that they leave to the owner's."""
DEFERRED: Final = 1 << 70
"""Mode: calls are collected (``candelabra.batching``). Also the bit of their results, until these are computed."""
UNCERTAIN: Final = VIEW | DEFERRED
"""The bits of tensors whose payload and node may be out of date, or not computed yet: see ``Tensor._fresh``."""
KERNEL_MODES: Final = OWN_KERNELS | EVERY_SIZE
RECORDING_MODES: Final = NO_GRAD | INFERENCE_MODE
TRACING: Final = 1 << 71
"""Mode: a tracer records the kernels that run; see ``candelabra._graph.tracing``."""
DEVICE_SHIFT: Final = 72
"""From here up: one bit per device instance, assigned at the first use of the device."""


class ThreadState(threading.local):
    """The mode bits of a thread in one int. Only :func:`switch` writes it."""

    bits: int = 0


state: Final = ThreadState()
active: Final[list[None]] = []
"""One entry per thread with a mode. While the list is empty, a call need not read its thread's state: that takes 50 ns,
the test of a list takes 5 ns. (A thread that ends inside a mode leaves its entry; calls are then slower but
correct.)"""


def switch(bits: int) -> None:
    """Set this thread's mode bits."""
    if state.bits:
        if not bits:
            active.pop()
    elif bits:
        active.append(None)
    state.bits = bits


@contextmanager
def mode(include: int = 0, exclude: int = 0) -> Iterator[None]:
    """Set and clear mode bits in this thread inside a ``with`` block."""
    before = state.bits
    switch((before | include) & ~exclude)
    try:
        yield
    finally:
        switch(before)
