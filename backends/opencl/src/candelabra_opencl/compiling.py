"""Building programs from sources: options, the program cache, progress messages and errors.

Each driver uses exactly one cache. PyOpenCL's cache is not used: it requests a binary from PoCL, which makes PoCL
compile each kernel a second time. Drivers with a cache of their own (PoCL, NVIDIA's) use that one; the others use
:class:`~candelabra_clike.cache.ProgramCache`.
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

POCL: Final = "Portable Computing Language"
"""The platform that compiles with Clang, and preprocesses a program even if it has it in its cache."""
CACHING_PLATFORMS: Final = (POCL, "NVIDIA CUDA")
"""Platforms whose drivers cache compiled programs on disk."""
SILENT_SECONDS: Final = 3.0
"""The build time in seconds after which a message is written to a terminal."""
ATTEMPTS: Final = 4
"""The number of builds by a driver with a cache of its own that gives no reason for a failure."""
PAUSE: Final = 0.25
"""The seconds between two of them."""
QUIET: Final = "-w"
"""The option that suppresses warnings. PoCL writes the number of warnings to the standard error stream."""
log: Final = logging.getLogger("candelabra.opencl")
"""The logger of compiler output, at level DEBUG."""


def program_cache(device: Any) -> ProgramCache | None:
    """Return the program cache of a device, or None if its driver has one or caching is disabled."""
    return None if device.platform.name.strip() in CACHING_PLATFORMS else kept_programs()


def kept_programs() -> ProgramCache | None:
    """Return the programs that are kept for drivers without a cache, or None if caching is disabled."""
    return None if os.environ.get(VARIABLE) == "0" else ProgramCache(cache_folder("opencl") / "programs")


class ProgramBuilder:
    """Builds programs for one device. Thread-safe, for one call at a time."""

    def __init__(
        self, device_name: str, context: Any, device: Any, traits: Traits, dialect: Dialect, cache: ProgramCache | None
    ) -> None:
        self.device_name: Final = device_name
        self.traits: Final = traits
        self.dialect: Final = dialect
        self.cache: Final = cache
        self.built = 0
        """The number of programs built from source."""
        self._context: Final = context
        self._device: Final = device
        self._seconds = 0.0
        self._announced = False

    @property
    def driver(self) -> str:
        """The name and version of the driver."""
        return f"{self._device.platform.name.strip()} {self._device.driver_version.strip()}"

    def options(self, source: Source) -> Sequence[str]:
        """Return the compiler options for a source."""
        exact = () if source.contract else self.dialect.exact_options
        rounding = self.dialect.rounding if self.traits.exact_division else ()
        on_host = self._device.type & cl.device_type.CPU
        processor = self.dialect.processor if on_host else ()
        declaring = self.dialect.declaring if on_host and self._device.platform.name.strip() == POCL else ()
        return (*self.dialect.options, *exact, *rounding, *processor, *declaring, QUIET)

    def program(self, source: Source) -> Any:
        """Return the built program of a source.

        Raises ``UnsupportedDType`` if it needs float64 and the device has none, and ``BackendError`` if the driver
        cannot build it.
        """
        if source.float64 and not self.traits.float64:
            raise UnsupportedDType(
                f"{self.device_name} does not support float64, which {source.name!r} needs: convert to float32 "
                '(x.float()), or move the tensors to a device that supports it (x.to("cpu"))'
            )
        text, options = source.program(self.dialect), " ".join(self.options(source))
        if self.cache is None:
            return self._with_all_functions(source.name, text, options)
        key = self.key(text, options)
        binary = self.cache.read(key)
        if binary is not None:
            try:
                return self._build(_cl._Program(self._context, [self._device], [binary]), options)
            except cl.Error as error:
                log.debug("%s: a cached program cannot be used and is built again: %s", self.device_name, error)
        program = self._from_source(source.name, text, options)
        self.cache.write(key, program.get_info(cl.program_info.BINARIES)[0])
        return program

    def key(self, text: str, options: str) -> str:
        """Return the cache key of a program for this device and driver."""
        device = self._device
        return ProgramCache.key(
            text, options, device.name, device.version, device.driver_version, device.platform.name,
            device.platform.version,
        )  # fmt: skip

    def _with_all_functions(self, name: str, text: str, options: str) -> Any:
        """Build a program without the driver's header, and with it if the program needs functions declared there."""
        declaring = f"{' '.join(self.dialect.declaring)} "
        if declaring in options:
            try:
                return self._from_source(name, text, options)
            except BackendError as error:
                log.debug("%s: built again with the driver's header: %s", self.device_name, error)
                options = options.replace(declaring, "")
        return self._from_source(name, text, options)

    def _from_source(self, name: str, text: str, options: str) -> Any:
        start = time.monotonic()
        for left in reversed(range(ATTEMPTS)):
            program = _cl._Program(self._context, text)
            try:
                self._build(program, options)
                break
            except cl.Error as error:
                # PoCL may have read a file of its cache that another process was writing; a compiler gives a reason.
                if self.cache is not None or not left or "error:" in self._build_log(program):
                    raise self._build_error(name, program, options, error) from error
                time.sleep(PAUSE)
        self.built += 1
        self._seconds += time.monotonic() - start
        if self._seconds > SILENT_SECONDS and not self._announced:
            self._announce()
        return program

    def _build(self, program: Any, options: str) -> Any:
        # Program.build() would emit a warning if the compiler has output.
        program._build(options=options.encode(), devices=[self._device])
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: %s", self.device_name, self._build_log(program))
        return program

    def _announce(self) -> None:
        self._announced = True
        if sys.stderr.isatty():
            sys.stderr.write(
                f"candelabra: compiling kernels for {self.device_name} ({self.driver}); later runs will reuse them\n"
            )

    def _build_log(self, program: Any) -> str:
        return str(program.get_build_info(self._device, cl.program_build_info.LOG) or "").strip()

    def _build_error(self, name: str, program: Any, options: str, error: Exception) -> BackendError:
        log = self._build_log(program)
        shown = "\n".join(log.splitlines()[:20])
        return BackendError(
            f"{self.device_name}: the driver ({self.driver}) cannot build {name!r} with the options {options!r}: "
            f"{error}\n"
            f"{shown or '(the compiler gives no reason)'}\n"
            "Another driver may help: `candelabra devices` lists the drivers, CANDELABRA_OPENCL_DEVICES selects one"
        )
