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
from candelabra._keys import KERNEL_MODES, RECORDING_MODES, state, switch

if TYPE_CHECKING:
    from candelabra._device import Instance


class _ActiveLevels(threading.local):
    """The active levels of a thread: the mode bits outside each, by the bit of its device, and the transforms."""

    def __init__(self) -> None:
        self.outer: dict[int, int] = {}
        self.frames: list[Any] = []


active_levels: Final = _ActiveLevels()
"""``active_levels.frames`` is not empty while the thread runs a function transform."""


@contextmanager
def level(instance: Instance) -> Iterator[None]:
    """Enter the level of a virtual device: inside the block its kernels run under the current mode bits.

    Levels can be nested, also those of one device. If no level of a virtual device is active, its kernels run without
    any mode.
    """
    before = active_levels.outer.get(instance.bit)
    active_levels.outer[instance.bit] = state.bits
    try:
        yield
    finally:
        if before is None:
            del active_levels.outer[instance.bit]
        else:
            active_levels.outer[instance.bit] = before


def active_frames() -> list[Any]:
    """Return the function transforms that are active in this thread, the outermost first; the list itself."""
    return active_levels.frames


def innermost() -> Any:
    """Return the innermost function transform that is active in this thread, or None."""
    frames = active_levels.frames
    return frames[-1] if frames else None


def batch_levels(tensor: Any) -> frozenset[int]:
    """Return the depths of the levels of ``vmap`` at which a tensor has a value for each example."""
    found = []
    while tensor._instance.depth:
        payload = tensor._fresh()._payload
        if getattr(payload, "batched", False):
            found.append(tensor._instance.depth)
        tensor = payload.tensor
    return frozenset(found)


def without_levels(tensor: Any) -> Any:
    """Return the tensor of the device that a tensor of any level holds: the values of all examples.

    For bodies whose number of steps depends on the largest value: it may be the largest one of all examples.
    """
    while tensor._instance.depth:
        tensor = tensor._fresh()._payload.tensor
    return tensor


def bits_below(bit: int) -> int:
    """Return the mode bits for the devices below the level of the device with this bit.

    The modes ``own_kernels`` and ``serve_every_size`` belong to no level: they are kept.
    """
    return active_levels.outer.get(bit, 0) & ~KERNEL_MODES | state.bits & KERNEL_MODES


def follow(modes: int) -> list[tuple[int, int]]:
    """Set the modes of recording in ``modes`` for all levels below the innermost one; return their former bits.

    ``no_grad`` in a function makes constants for every derivative, on whatever level it is recorded. A level below
    never loses a mode that was active when the level above it was entered.
    """
    outer = active_levels.outer
    changed = []
    for frame in active_levels.frames:
        bit = frame.instance.bit
        changed.append((bit, outer[bit]))
        outer[bit] = outer[bit] & ~RECORDING_MODES | (frame.entered[0] | modes) & RECORDING_MODES
    return changed


def unfollow(changed: list[tuple[int, int]]) -> None:
    """Restore the bits that :func:`follow` has returned, of the levels that are still active."""
    outer = active_levels.outer
    for bit, before in changed:
        if bit in outer:
            outer[bit] = before


@contextmanager
def modes_below(bit: int, include: int = 0, exclude: int = 0) -> Iterator[None]:
    """Set and clear mode bits for the devices below the level of the device with this bit, inside the block."""
    before = active_levels.outer[bit]
    active_levels.outer[bit] = (before | include) & ~exclude
    try:
        yield
    finally:
        active_levels.outer[bit] = before


def enter(instance: Instance, frame: Any, modes: int) -> tuple[int, int | None]:
    """Enter the level of a function transform with additional modes; return what :func:`leave` needs."""
    outer, bits = active_levels.outer, state.bits
    before = outer.get(instance.bit)
    outer[instance.bit] = bits
    active_levels.frames.append(frame)
    if modes:
        switch(bits | modes)
    return bits, before


def leave(instance: Instance, entered: tuple[int, int | None]) -> None:
    """Leave the level that :func:`enter` has entered, and restore the modes."""
    bits, before = entered
    active_levels.frames.pop()
    switch(bits)
    if before is None:
        del active_levels.outer[instance.bit]
    else:
        active_levels.outer[instance.bit] = before


def lowered(kernel: Any, instance: Instance) -> Any:
    """Return a kernel of a virtual device so that it runs under the mode bits of the level below."""
    bit = instance.bit

    def run(*args: Any) -> Any:
        mode = state.bits
        bits = active_levels.outer.get(bit, 0)
        if (bits | mode) & KERNEL_MODES:
            bits = bits & ~KERNEL_MODES | mode & KERNEL_MODES
        if bits == mode:
            return kernel(*args)
        switch(bits)
        try:
            return kernel(*args)
        finally:
            switch(mode)

    return run
