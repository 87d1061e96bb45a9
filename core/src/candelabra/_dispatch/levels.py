"""Levels: under which mode bits a virtual device runs the devices below it.

A backend can be built over other devices: its payloads hold tensors, and its kernels call operators on them
(``Capabilities.virtual``). Modes such as ``no_grad`` then belong to one level. A composite with a derivative, or the
engine, switches recording off for the level that it works on; the tensors inside the payloads belong to the level
below, whose own graph must go on. So a virtual device's kernels run under the bits that were in force when its level
was entered.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import state, switch

if TYPE_CHECKING:
    from candelabra._device import Instance


class _Levels(threading.local):
    """The mode bits outside each level that this thread is in, by the bit of the level's device."""

    def __init__(self) -> None:
        self.outer: dict[int, int] = {}


_levels: Final = _Levels()


@contextmanager
def level(instance: Instance) -> Iterator[None]:
    """Enter the level of a virtual device: inside the block its kernels run under the mode bits of this moment.

    Levels nest, the same device's too. A virtual device whose level was not entered runs its kernels without any mode.
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
    """A kernel of a virtual device, which runs under the mode bits of the level below."""

    def __init__(self, kernel: Any, instance: Instance) -> None:
        self.kernel = kernel
        self.bit = instance.bit

    def __call__(self, *args: Any) -> Any:
        mode = state.bits
        switch(_levels.outer.get(self.bit, 0))
        try:
            return self.kernel(*args)
        finally:
            switch(mode)
