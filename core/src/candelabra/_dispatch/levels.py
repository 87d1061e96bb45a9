"""Levels: the mode bits under which a virtual device runs the devices below it.

A backend can be built over other devices: its payloads hold tensors, and its kernels call operators on them
(``Capabilities.virtual``). Modes such as ``no_grad`` then belong to one level. A composite with a derivative, or the
engine, switches recording off for its own level; the tensors inside the payloads belong to the level below, which must
continue to record. So the kernels of a virtual device run under the bits that were active when its level was entered.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import KERNEL_MODES, state, switch

if TYPE_CHECKING:
    from candelabra._device import Instance


class _Levels(threading.local):
    """The mode bits outside each active level of a thread, by the bit of the level's device."""

    def __init__(self) -> None:
        self.outer: dict[int, int] = {}


_levels: Final = _Levels()


@contextmanager
def level(instance: Instance) -> Iterator[None]:
    """Enter the level of a virtual device: inside the block its kernels run under the current mode bits.

    Levels can be nested, also those of one device. If no level of a virtual device is active, its kernels run without
    any mode.
    """
    before = _levels.outer.get(instance.bit)
    _levels.outer[instance.bit] = state.bits
    try:
        yield
    finally:
        if before is None:
            del _levels.outer[instance.bit]
        else:
            _levels.outer[instance.bit] = before


class Lowered:
    """A kernel of a virtual device, which runs under the mode bits of the level below.

    The modes ``own_kernels`` and ``serve_every_size`` belong to no level: they are kept.
    """

    def __init__(self, kernel: Any, instance: Instance) -> None:
        self.kernel = kernel
        self.bit = instance.bit

    def __call__(self, *args: Any) -> Any:
        mode = state.bits
        switch(_levels.outer.get(self.bit, 0) & ~KERNEL_MODES | mode & KERNEL_MODES)
        try:
            return self.kernel(*args)
        finally:
            switch(mode)
