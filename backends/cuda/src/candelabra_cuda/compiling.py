"""A program in CUDA C++ becomes machine code for one compute capability, once for all processes of this machine.

NVRTC needs no driver and no device, so machine code may also come from another machine: ``make cuda-kernels``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from candelabra_clike import CUDA, Source
from candelabra_clike.cache import VARIABLE, ProgramCache, cache_folder

from candelabra_cuda import nvrtc

QUICKLY: Final = "--Ofast-compile=max"
"""The option of programs that shall be compiled soon, and need not be fast."""


def options(source: Source, capability: str) -> tuple[str, ...]:
    """Return the options for NVRTC. ``capability`` is a compute capability like ``"90"``."""
    exact = () if source.contract else CUDA.exact_options
    return (f"--gpu-architecture=sm_{capability}", *CUDA.options, *exact)


def compile_program(name: str, program: str, options: Sequence[str]) -> bytes:
    """A CUBIN. Raises :class:`~candelabra_cuda.nvrtc.CompilationError`."""
    return nvrtc.load().compile(name, program, options)


def usual_cache() -> ProgramCache | None:
    """Where machine code is kept from one process to the next; None where none is wanted."""
    return None if os.environ.get(VARIABLE) == "0" else ProgramCache(cache_folder("cuda") / "programs")


def prebuilt_cache() -> ProgramCache | None:
    """Where machine code lies that another machine made; None where no cache is wanted."""
    return None if os.environ.get(VARIABLE) == "0" else ProgramCache(cache_folder("cuda") / "prebuilt")


class Compiler:
    """Machine code for one compute capability: of another machine, of an earlier process, or made here and now.

    ``prebuilt`` is asked first, under keys without the compiler's version: machine code is of a capability, whatever
    NVRTC made it. So a process that finds all its kernels there does not even load NVRTC.
    """

    def __init__(self, capability: str, cache: ProgramCache | None, prebuilt: ProgramCache | None = None) -> None:
        self.capability: Final = capability
        self.cache: Final = cache
        self.prebuilt: Final = prebuilt
        self.built = 0
        """Programs compiled so far."""

    def machine_code(self, source: Source) -> bytes:
        """A CUBIN. Raises :class:`~candelabra_cuda.nvrtc.CompilationError`."""
        text, words = source.program(CUDA), options(source, self.capability)
        code = self.prebuilt.read(prebuilt_key(text, words)) if self.prebuilt is not None else None
        if code is None and self.cache is not None:
            code = self.cache.read(cache_key(text, words))
        return self._compiled(source.name, text, words) if code is None else code

    def rebuilt(self, source: Source) -> bytes:
        """Compile a program again, because the driver rejects the stored machine code."""
        text, words = source.program(CUDA), options(source, self.capability)
        if self.prebuilt is not None:
            self.prebuilt.forget(prebuilt_key(text, words))
        return self._compiled(source.name, text, words)

    def _compiled(self, name: str, text: str, words: Sequence[str]) -> bytes:
        self.built += 1
        code = compile_program(name, text, words)
        if self.cache is not None:
            self.cache.write(cache_key(text, words), code)
        return code


def cache_key(text: str, words: Sequence[str]) -> str:
    """What machine code depends on, as a name: the program, the options (the capability is one), the compiler."""
    major, minor = nvrtc.load().version()
    return ProgramCache.key(text, *words, f"NVRTC {major}.{minor}")


def prebuilt_key(text: str, words: Sequence[str]) -> str:
    """The name of the same machine code whatever compiler made it."""
    return ProgramCache.key(text, *words)
