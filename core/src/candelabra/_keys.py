"""Dispatch keys: what a call looks like, as bits of one Python int.

From low to high: functionality that sits above the kernels, the kind of a Python scalar among the arguments, the dtype
(one-hot), the layout, and one bit per *device instance*. The OR over a call's tensors and the thread's mode is its key,
and the whole int is looked up at once, so a hit proves that the tensors share one device and one dtype. Python ints
don't run out of bits, so neither do devices.
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
"""The tensor was made in inference mode."""
NO_GRAD: Final = 1 << 3
"""Mode: record nothing. Exclusion is a bit that is *included*: OR is cheaper than AND NOT."""
PACK: Final = 1 << 4
"""Mode: saved tensors go through ``saved_tensors_hooks``."""
ANOMALY: Final = 1 << 5
"""Mode: every node remembers where it was made."""
LAYER_SHIFT: Final = 6
LAYER_LIMIT: Final = 18
"""Plugins' functionality layers take bits 6 to 23; see ``candelabra._dispatch.layers``."""
LAYER_MASK: Final = ((1 << LAYER_LIMIT) - 1) << LAYER_SHIFT
SCALAR_SHIFT: Final = 24
SCALAR_BITS: Final[dict[type, int]] = {t: 1 << (SCALAR_SHIFT + i) for i, t in enumerate((bool, int, float, complex))}
"""The bit of a Python scalar beside the tensors; its position is its category."""
SCALAR_MASK: Final = 0b1111 << SCALAR_SHIFT
SCALAR_FIRST: Final = 1 << 28
"""The first of two operands is the scalar, not the second."""
DTYPE_SHIFT: Final = 29
DTYPE_LIMIT: Final = 32
"""Dtypes take bits 29 to 60, one each: there is room for the float8 types and narrower ones."""
LAYOUT_SHIFT: Final = DTYPE_SHIFT + DTYPE_LIMIT
LAYOUT_MASK: Final = 0b111 << LAYOUT_SHIFT
"""How elements are kept: strided tensors have no bit here. Sparse layouts will have one each."""
INFERENCE_MODE: Final = 1 << 64
"""Mode: results are inference tensors. A bit of its own: outside the mode, what inference tensors give is normal."""
DEVICE_SHIFT: Final = 65
"""From here up: one bit per device instance, handed out when the device is first used."""
MODE_MASK: Final = NO_GRAD | INFERENCE_MODE | PACK | ANOMALY | LAYER_MASK


class ThreadState(threading.local):
    """What one thread has switched on, all in one int. It is written by :func:`switch` only."""

    bits: int = 0


state: Final = ThreadState()
active: Final[list[None]] = []
"""One entry per thread that has something switched on. While it is empty, which is nearly always, a call need not read
its thread's state: that costs 50 ns, looking at a list 5. (A thread that ends with a mode on leaves its entry behind;
calls are slower then, not wrong.)"""


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
    """Switch mode bits on and off in this thread for the length of a ``with`` block."""
    before = state.bits
    switch((before | include) & ~exclude)
    try:
        yield
    finally:
        switch(before)
