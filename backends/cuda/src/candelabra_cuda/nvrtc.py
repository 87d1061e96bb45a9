"""NVRTC, NVIDIA's compiler as a library, through whichever binding is installed: ``cuda.bindings``, or CuPy's own.

Both need no driver and no device. A machine with CuPy always has the second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Protocol

from candelabra.errors import BackendError

from candelabra_cuda.discovery import INSTALL


class CompilationError(BackendError):
    """NVRTC refused a program, or cannot be loaded; the text has its log."""


class Nvrtc(Protocol):
    """What a binding is used for."""

    name: ClassVar[str]

    def version(self) -> tuple[int, int]:
        """NVRTC's version: major, minor."""

    def compile(self, name: str, program: str, options: Sequence[str]) -> bytes:
        """The CUBIN of a program. Raises :class:`CompilationError` with NVRTC's log."""


class CudaBindings:
    """NVRTC through ``cuda.bindings``: every function returns a status and its values."""

    name: ClassVar = "cuda.bindings"

    def __init__(self) -> None:
        from cuda.bindings import nvrtc

        self._nvrtc: Any = nvrtc

    def version(self) -> tuple[int, int]:
        major, minor = self._called("nvrtcVersion")
        return major, minor

    def compile(self, name: str, program: str, options: Sequence[str]) -> bytes:
        (handle,) = self._called("nvrtcCreateProgram", program.encode(), f"{name}.cu".encode(), 0, [], [])
        try:
            words = [option.encode() for option in options]
            (status,) = self._nvrtc.nvrtcCompileProgram(handle, len(words), words)
            if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
                raise CompilationError(f"{name}: {self._log(handle)}")
            (size,) = self._called("nvrtcGetCUBINSize", handle)
            code: bytes = b" " * size
            self._called("nvrtcGetCUBIN", handle, code)
            return code
        finally:
            self._nvrtc.nvrtcDestroyProgram(handle)

    def _log(self, handle: Any) -> str:
        (size,) = self._called("nvrtcGetProgramLogSize", handle)
        text: bytes = b" " * size
        self._called("nvrtcGetProgramLog", handle, text)
        return text.rstrip(b"\0").decode(errors="replace")

    def _called(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        status, *values = getattr(self._nvrtc, function)(*arguments)
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(f"{function} failed: {self._nvrtc.nvrtcGetErrorString(status)[1].decode()}")
        return tuple(values)


class CupyBindings:
    """NVRTC through the module that CuPy compiles its own kernels with: a failure is an exception."""

    name: ClassVar = "CuPy"

    def __init__(self) -> None:
        from cupy_backends.cuda.libs import nvrtc

        self._nvrtc: Any = nvrtc

    def version(self) -> tuple[int, int]:
        major, minor = self._nvrtc.getVersion()
        return major, minor

    def compile(self, name: str, program: str, options: Sequence[str]) -> bytes:
        nvrtc = self._nvrtc
        handle = nvrtc.createProgram(program, f"{name}.cu", (), ())
        try:
            nvrtc.compileProgram(handle, tuple(options))
            code: bytes = nvrtc.getCUBIN(handle)
            return code + b"\0"  # CuPy takes the last byte for the end of a text and leaves it out
        except nvrtc.NVRTCError as error:
            raise CompilationError(f"{name}: {nvrtc.getProgramLog(handle) or error}") from error
        finally:
            nvrtc.destroyProgram(handle)


BINDINGS: tuple[type[CudaBindings] | type[CupyBindings], ...] = (CudaBindings, CupyBindings)
"""In the order in which they are tried."""


@cache
def load() -> Nvrtc:
    """The first binding that finds NVRTC. Raises :class:`CompilationError` with the reason of each where none does."""
    reasons = []
    for binding in BINDINGS:
        try:
            found = binding()
            found.version()
        except Exception as error:  # ImportError, or what the binding raises where it finds no library
            reasons.append(f"through {binding.name}: {type(error).__name__}: {error}")
        else:
            return found
    raise CompilationError(f"NVRTC cannot be loaded ({'; '.join(reasons)}): {INSTALL}")
