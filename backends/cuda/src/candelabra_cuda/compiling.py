"""NVRTC: a program in CUDA C++ becomes machine code for one compute capability. It needs no driver and no device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from candelabra.errors import BackendError
from candelabra_clike import CUDA, Source
from candelabra_clike.cache import VARIABLE, ProgramCache, cache_folder
from cuda.bindings import nvrtc


class CompilationError(BackendError):
    """NVRTC refused a program; the text has its log."""


QUICKLY: Final = "--Ofast-compile=max"
"""The option of programs that shall be compiled soon, and need not be fast."""


def options(source: Source, capability: str) -> tuple[str, ...]:
    """Return the options for NVRTC. ``capability`` is a compute capability like ``"90"``."""
    exact = () if source.contract else CUDA.exact_options
    return (f"--gpu-architecture=sm_{capability}", *CUDA.options, *exact)


def compile_program(name: str, program: str, options: Sequence[str]) -> bytes:
    """A CUBIN. Raises :class:`CompilationError`."""
    handle = _checked(nvrtc.nvrtcCreateProgram(program.encode(), f"{name}.cu".encode(), 0, [], []))
    try:
        words = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(words), words)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(f"{name}: {_log(handle)}")
        code: bytes = b" " * _checked(nvrtc.nvrtcGetCUBINSize(handle))
        _checked(nvrtc.nvrtcGetCUBIN(handle, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def usual_cache() -> ProgramCache | None:
    """Where machine code is kept from one process to the next; None where none is wanted."""
    return None if os.environ.get(VARIABLE) == "0" else ProgramCache(cache_folder("cuda") / "programs")


class Compiler:
    """Machine code for one compute capability, from the disk where it has been made before."""

    def __init__(self, capability: str, cache: ProgramCache | None) -> None:
        self.capability: Final = capability
        self.cache: Final = cache
        self.built = 0
        """Programs compiled so far."""

    def machine_code(self, source: Source) -> bytes:
        """A CUBIN. Raises :class:`CompilationError`."""
        text, words = source.program(CUDA), options(source, self.capability)
        if self.cache is None:
            return self._compiled(source.name, text, words)
        key = self.key(text, words)
        code = self.cache.read(key)
        if code is None:
            code = self._compiled(source.name, text, words)
            self.cache.write(key, code)
        return code

    def rebuilt(self, source: Source) -> bytes:
        """Compile a program again, because the driver rejects the cached machine code."""
        if self.cache is not None:
            self.cache.forget(self.key(source.program(CUDA), options(source, self.capability)))
        return self.machine_code(source)

    @staticmethod
    def key(text: str, words: Sequence[str]) -> str:
        """What machine code depends on, as a name: the program, the options (the capability is one), the compiler."""
        _, major, minor = nvrtc.nvrtcVersion()
        return ProgramCache.key(text, *words, f"NVRTC {major}.{minor}")

    def _compiled(self, name: str, text: str, words: Sequence[str]) -> bytes:
        self.built += 1
        return compile_program(name, text, words)


def _log(handle: Any) -> str:
    text: bytes = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(handle))
    _checked(nvrtc.nvrtcGetProgramLog(handle, text))
    return text.rstrip(b"\0").decode(errors="replace")


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompilationError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
    return values[0] if values else None
