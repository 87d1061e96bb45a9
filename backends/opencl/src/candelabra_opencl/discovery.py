"""The OpenCL devices and their numbering."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import pyopencl as cl
from candelabra.backend import DeviceInfo, Fact
from candelabra.errors import DeviceUnavailable

from candelabra_opencl.icd import driver_search_path, searched_folders
from candelabra_opencl.pocl import pocl_cache
from candelabra_opencl.pocl_processor import name_processor

VARIABLE: Final = "CANDELABRA_OPENCL_DEVICES"
"""The environment variable that selects and orders devices: parts of the output of ``candelabra devices``,
comma-separated."""
INSTALL: Final = (
    "Install the OpenCL driver of your device's vendor, or one for the processor: "
    'pip install "candelabra[pocl]" (small, Linux) or pip install "candelabra[intel]" (0.85 GB, faster)'
)
KINDS: Final = (cl.device_type.GPU, cl.device_type.CPU, cl.device_type.ACCELERATOR)
"""Kinds of devices, in the order of their numbers."""


class OpenCLDevice(NamedTuple):
    """A device, its name, and its facts for ``candelabra devices``."""

    device: Any
    name: str
    facts: Mapping[str, Fact]

    @property
    def line(self) -> str:
        """The device in ``candelabra devices``, without its number: the text that patterns are matched against."""
        return DeviceInfo(self.name, self.facts).line

    @property
    def pattern(self) -> str:
        """A pattern that selects the devices of this device's driver. Special characters are replaced by wildcards."""
        words = ", ".join(f"{key} {self.facts[key]}" for key in ("platform", "driver", "version"))
        return words.replace(",", "*").replace("[", "?")


def find() -> list[OpenCLDevice]:
    """Return every device of every platform, in order.

    Raises ``DeviceUnavailable`` with the reason if there is none.
    """
    try:
        with driver_search_path(), pocl_cache():
            platforms = cl.get_platforms()
    except cl.LogicError as error:
        raise DeviceUnavailable(
            f"no OpenCL platform was found in {searched_folders()} ({error}). {INSTALL}; "
            "candelabra[opencl] has no driver"
        ) from error
    usable, reasons = [], []
    for platform in platforms:
        try:
            with pocl_cache():  # some drivers are loaded only now
                devices = platform.get_devices()
        except cl.Error as error:
            reasons.append(f"{platform.name}: {error}")
            continue
        if not devices:
            reasons.append(f"{platform.name}: it has no devices")
        for device in devices:
            name_processor(platform, device)
            reason = why_unusable(device)
            if reason:
                reasons.append(f"{platform.name}, {device.name}: {reason}")
            else:
                usable.append(describe(platform, device))
    if not usable:
        raise DeviceUnavailable(f"no OpenCL device can be used: {'; '.join(reasons)}. {INSTALL}")
    return select(sort_devices(usable), os.environ.get(VARIABLE, ""))


def why_unusable(device: Any) -> str:
    """Return the reason why a device cannot be used, or an empty string."""
    if not device.available:
        return "it is not available"
    return "" if device.compiler_available else "its driver has no compiler"


def describe(platform: Any, device: Any) -> OpenCLDevice:
    """Return a device with its facts."""
    facts = {
        "platform": platform.name.strip(),
        "driver": device.driver_version.strip(),
        "version": device.version.strip(),
        "memory": int(device.global_mem_size),
        "fp64": bool(device.double_fp_config),
        "fp16": "cl_khr_fp16" in device.extensions,
    }
    return OpenCLDevice(device, device.name.strip(), facts)


def sort_devices(devices: Iterable[OpenCLDevice]) -> list[OpenCLDevice]:
    """Return GPUs first, then CPUs. Of several drivers for one device, the better one comes first.

    Better means a newer OpenCL version, then a newer driver. Otherwise devices keep their order.
    """

    def rank(one: OpenCLDevice) -> tuple[Any, ...]:
        kind = next((n for n, kind in enumerate(KINDS) if one.device.type & kind), len(KINDS))
        return kind, [-n for n in version(str(one.facts["version"]))], *newest_first(str(one.facts["driver"]))

    return sorted(devices, key=rank)


def version(text: str) -> list[int]:
    """Return the version numbers after the word OpenCL: (3, 0) for ``OpenCL 3.0 PoCL …``."""
    match = re.match(r"OpenCL (\d+)\.(\d+)", text)
    return [int(n) for n in match.groups()] if match else [0, 0]


def newest_first(driver: str) -> tuple[list[int], bool]:
    """Return a sort key that puts newer drivers first. All numbers of a version count; a release candidate is older."""
    release, _, candidate = driver.lower().partition("rc")
    return [-int(n) for n in re.findall(r"\d+", release)], bool(candidate)


def select(devices: Sequence[OpenCLDevice], patterns: str) -> list[OpenCLDevice]:
    """Return the devices that match the patterns, in the order of the patterns; all devices without patterns.

    A pattern is a part of a device's line in ``candelabra devices``, in any case; ``*`` matches any text. Raises
    ``DeviceUnavailable`` if no device matches.
    """
    wanted_patterns = [pattern.strip().lower() for pattern in patterns.split(",") if pattern.strip()]
    if not wanted_patterns:
        return list(devices)
    kept: list[OpenCLDevice] = []
    for pattern in wanted_patterns:
        kept += [one for one in devices if one not in kept and fnmatchcase(one.line.lower(), f"*{pattern}*")]
    if not kept:
        offered = "".join(f"\n  {one.line}" for one in devices)
        raise DeviceUnavailable(f"no OpenCL device matches {VARIABLE}={patterns!r}. The devices are:{offered}")
    return kept
