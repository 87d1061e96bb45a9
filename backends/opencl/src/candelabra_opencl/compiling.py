"""From a source to a built program: options, what is kept on disk, progress, and what to say where it fails.

Of the caches that there are one is used for each driver. PyOpenCL's is not: it asks PoCL for a binary, which makes that
compile each kernel a second time. Drivers that keep what they compile (PoCL, NVIDIA's) are left to it, for others there
is :class:`~candelabra_clike.cache.ProgramCache`.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import pyopencl as cl
from candelabra.errors import BackendError, UnsupportedDType
from candelabra_clike import Dialect, Source, Traits
from candelabra_clike.cache import VARIABLE, ProgramCache, cache_folder
from pyopencl import _cl

KEEPING: Final = ("Portable Computing Language", "NVIDIA CUDA")
"""Platforms whose drivers keep compiled programs on disk themselves."""
PATIENCE: Final = 3.0
"""Seconds of building before a first run says on a terminal what it is doing."""
QUIET: Final = "-w"
"""Without warnings: PoCL says how many there are on the standard error stream, whoever that belongs to."""
log: Final = logging.getLogger("candelabra.opencl")
"""What compilers say is told here, at the level DEBUG."""


def usual_cache(device: Any) -> ProgramCache | None:
    """The cache of a device's programs; None where its driver has one, or none is wanted."""
    if device.platform.name.strip() in KEEPING or os.environ.get(VARIABLE) == "0":
        return None
    return ProgramCache(cache_folder("opencl") / "programs")


class Compiler:
    """Builds programs for one device. Its methods may be called by several threads, one at a time."""

    def __init__(
        self, place: str, context: Any, device: Any, traits: Traits, dialect: Dialect, cache: ProgramCache | None
    ) -> None:
        self.place: Final = place
        self.traits: Final = traits
        self.dialect: Final = dialect
        self.cache: Final = cache
        self.built = 0
        """Programs built from source so far."""
        self._context: Final = context
        self._device: Final = device
        self._seconds = 0.0
        self._told = False

    @property
    def driver(self) -> str:
        """The driver, in words."""
        return f"{self._device.platform.name.strip()} {self._device.driver_version.strip()}"

    def options(self, source: Source) -> Sequence[str]:
        """The compiler's options for a source."""
        exact = () if source.contract else self.dialect.exact_options
        rounding = self.dialect.rounding if self.traits.exact_division else ()
        processor = self.dialect.processor if self._device.type & cl.device_type.CPU else ()
        return (*self.dialect.options, *exact, *rounding, *processor, QUIET)

    def program(self, source: Source) -> Any:
        """The built program of a source. ``UnsupportedDType`` where it takes float64 and the device has none,
        ``BackendError`` where the driver cannot build it.
        """
        if source.float64 and not self.traits.float64:
            raise UnsupportedDType(
                f"{self.place} has no float64, in which {source.name!r} computes: convert to float32 before "
                '(x.float()), or move the tensors to a device that has it (x.to("cpu"))'
            )
        text, options = source.program(self.dialect), " ".join(self.options(source))
        if self.cache is None:
            return self._from_source(source.name, text, options)
        key = self.key(text, options)
        binary = self.cache.read(key)
        if binary is not None:
            try:
                return self._build(_cl._Program(self._context, [self._device], [binary]), options)
            except cl.Error as error:
                log.debug("%s: a kept program cannot be used and is built anew: %s", self.place, error)
        program = self._from_source(source.name, text, options)
        self.cache.write(key, program.get_info(cl.program_info.BINARIES)[0])
        return program

    def key(self, text: str, options: str) -> str:
        """What a compiled program depends on, as a name."""
        device = self._device
        return ProgramCache.key(
            text, options, device.name, device.version, device.driver_version, device.platform.name,
            device.platform.version,
        )  # fmt: skip

    def _from_source(self, name: str, text: str, options: str) -> Any:
        program = _cl._Program(self._context, text)
        start = time.monotonic()
        try:
            self._build(program, options)
        except cl.Error as error:
            raise self._failure(name, program, options, error) from error
        self.built += 1
        self._seconds += time.monotonic() - start
        if self._seconds > PATIENCE and not self._told:
            self._tell()
        return program

    def _build(self, program: Any, options: str) -> Any:
        # Not `build`, which warns where a compiler had something to say.
        program._build(options=options.encode(), devices=[self._device])
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: %s", self.place, self._said(program))
        return program

    def _tell(self) -> None:
        self._told = True
        if sys.stderr.isatty():
            sys.stderr.write(f"candelabra: compiling kernels for {self.place} ({self.driver}); the next run has them\n")

    def _said(self, program: Any) -> str:
        return str(program.get_build_info(self._device, cl.program_build_info.LOG) or "").strip()

    def _failure(self, name: str, program: Any, options: str, error: Exception) -> BackendError:
        said = self._said(program)
        shown = "\n".join(said.splitlines()[:20])
        return BackendError(
            f"{self.place}: the driver ({self.driver}) cannot build {name!r} with the options {options!r}: {error}\n"
            f"{shown or '(its compiler says nothing more)'}\n"
            "A newer driver may: `candelabra devices` lists those that there are, CANDELABRA_OPENCL_DEVICES chooses one"
        )
