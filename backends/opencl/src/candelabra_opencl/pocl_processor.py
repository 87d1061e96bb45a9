"""Processors that are newer than PoCL's compiler.

PoCL asks LLVM for the name of the processor and compiles for it. LLVM answers ``generic`` for a processor that it does
not know, and its C front end then refuses every program: ``unknown target CPU 'generic'`` (PoCL's issue 1049). PoCL has
no option for the name. So this module writes another name into PoCL's description of the device, before the first
program is built: that of the newest processor whose instructions this one has.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Set
from functools import lru_cache
from typing import Any, Final

from candelabra_clike.processor import processor_flags

PLATFORM: Final = "Portable Computing Language"
UNKNOWN: Final = b"generic"
"""LLVM's name for a processor that it does not know."""
_TRIPLE: Final = b"x86_64-"
"""How the target begins. Its pointer stands before that to the name of the processor."""
_EXTENT: Final = 2048
"""Bytes at the beginning of the description of a device that are searched. PoCL 3.0 has the pointers at 632 and 640."""
_ADDRESSES: Final = range(1 << 12, 1 << 47)
_AVX2: Final = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
TARGETS: Final = {
    "skylake-avx512": _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "haswell": _AVX2,
    "x86-64": frozenset[str](),
}
"""Names that LLVM knows since version 4, with the features whose instructions it then uses. The first two are the
processors for which PoCL's own functions are compiled that it selects if these features are present."""
Read = Callable[[int, int], bytes]


def target_for(flags: Set[str]) -> str:
    """Return the newest processor of :data:`TARGETS` that has no feature but these."""
    return next(name for name, needed in TARGETS.items() if needed <= flags)


def name_processor(platform: Any, device: Any) -> str:
    """Return the processor for which PoCL compiles instead if it does not know this one, otherwise an empty string.

    Does nothing for drivers other than PoCL, for devices other than the processor, and for other architectures, where
    LLVM compiles for ``generic``.
    """
    if platform.name.strip() != PLATFORM or not processor_flags():
        return ""
    target = target_for(processor_flags())
    with open("/proc/self/mem", "rb", buffering=0) as memory:

        def read(address: int, count: int) -> bytes:
            try:
                return os.pread(memory.fileno(), count, address) if address in _ADDRESSES else b""
            except OSError:  # no memory of this process
                return b""

        address = find_name(read, device.int_ptr)
    if address is None:
        return ""
    ctypes.c_void_p.from_address(address).value = ctypes.addressof(_text(target))
    return target


def find_name(read: Read, device: int) -> int | None:
    """Return the address of the pointer to the processor's name if the name is ``generic``, otherwise None.

    ``read(address, count)`` returns the bytes of memory, none if it cannot be read.
    """

    def pointer(address: int) -> int:
        return int.from_bytes(read(address, 8), "little")

    for address in range(device, device + _EXTENT, 8):
        if read(pointer(address), len(_TRIPLE)) == _TRIPLE:
            known = read(pointer(address + 8), len(UNKNOWN) + 1) != UNKNOWN + b"\0"
            return None if known else address + 8
    return None


@lru_cache(None)
def _text(name: str) -> ctypes.Array[ctypes.c_char]:
    """Return the name in memory that is never freed: PoCL keeps the pointer until the process ends."""
    return ctypes.create_string_buffer(name.encode())
