"""NVRTC: a program in CUDA C++ becomes machine code for one compute capability. It needs no driver and no device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from candelabra_clike import CUDA, Source
from cuda.bindings import nvrtc


class CompilationError(RuntimeError):
    """NVRTC refused a program; the text has its log."""


QUICKLY: Final = "--Ofast-compile=max"
"""The option of programs that shall be compiled soon, and need not be fast."""


def options(source: Source, capability: str, machine: bool = True) -> tuple[str, ...]:
    """What NVRTC is told; ``capability`` is like ``"90"``. Without ``machine`` it stops at intermediate code (PTX)."""
    exact = () if source.contract else CUDA.exact_options
    return (f"--gpu-architecture={'sm' if machine else 'compute'}_{capability}", *CUDA.options, *exact)


def compile_program(name: str, program: str, options: Sequence[str]) -> bytes:
    """A CUBIN, empty where the options stop before machine code. Raises :class:`CompilationError`."""
    handle = _checked(nvrtc.nvrtcCreateProgram(program.encode(), f"{name}.cu".encode(), 0, [], []))
    try:
        words = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(words), words)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(f"{name}: {_log(handle)}")
        code = b" " * _checked(nvrtc.nvrtcGetCUBINSize(handle))
        _checked(nvrtc.nvrtcGetCUBIN(handle, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _log(handle: object) -> str:
    text = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(handle))
    _checked(nvrtc.nvrtcGetProgramLog(handle, text))
    return text.rstrip(b"\0").decode(errors="replace")


def _checked(answer: tuple) -> object:  # type: ignore[type-arg]
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompilationError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
    return values[0] if values else None
