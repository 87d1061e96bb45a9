"""Which OpenCL devices there are, and in which order they are numbered."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import pyopencl as cl
from candelabra.errors import DeviceUnavailable

from candelabra_opencl.icd import drivers_shown, looked_in
from candelabra_opencl.pocl import cache_shown

VARIABLE: Final = "CANDELABRA_OPENCL_DEVICES"
"""The environment variable that chooses and orders: parts of what ``candelabra devices`` prints, between commas."""
INSTALL: Final = (
    "Install the OpenCL driver of your device's vendor, or one for the processor: "
    'pip install "candelabra[pocl]" (small, Linux) or pip install "candelabra[intel]" (0.85 GB, faster)'
)
KINDS: Final = (cl.device_type.GPU, cl.device_type.CPU, cl.device_type.ACCELERATOR)
"""Kinds of devices, in the order in which they are numbered."""


class Found(NamedTuple):
    """A device, and what ``candelabra devices`` says of it."""

    device: Any
    name: str
    facts: Mapping[str, str]

    @property
    def line(self) -> str:
        """What patterns are held against."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.facts.items())])

    @property
    def pattern(self) -> str:
        """A pattern that chooses the devices of this one's driver; what would mean something in it is left open."""
        words = ", ".join(f"{key} {self.facts[key]}" for key in ("platform", "driver", "version"))
        return words.replace(",", "*").replace("[", "?")


def find() -> list[Found]:
    """Every device of every platform, in order. ``DeviceUnavailable`` says what was looked for where there is none."""
    try:
        with drivers_shown(), cache_shown():
            platforms = cl.get_platforms()
    except cl.LogicError as error:
        raise DeviceUnavailable(
            f"no OpenCL platform was found in {looked_in()} ({error}). {INSTALL}; candelabra[opencl] alone brings none"
        ) from error
    found, reasons = [], []
    for platform in platforms:
        try:
            with cache_shown():  # some wake only now
                devices = platform.get_devices()
        except cl.Error as error:
            reasons.append(f"{platform.name}: {error}")
            continue
        if not devices:
            reasons.append(f"{platform.name}: it has no devices")
        for device in devices:
            reason = unusable(device)
            if reason:
                reasons.append(f"{platform.name}, {device.name}: {reason}")
            else:
                found.append(described(platform, device))
    if not found:
        raise DeviceUnavailable(f"no OpenCL device can be used: {'; '.join(reasons)}. {INSTALL}")
    return chosen(ordered(found), os.environ.get(VARIABLE, ""))


def unusable(device: Any) -> str:
    """Why a device cannot be used; empty where it can."""
    if not device.available:
        return "it is not available"
    return "" if device.compiler_available else "its driver has no compiler"


def described(platform: Any, device: Any) -> Found:
    """A device with its facts."""
    facts = {
        "platform": platform.name.strip(),
        "driver": device.driver_version.strip(),
        "version": device.version.strip(),
        "memory": f"{device.global_mem_size / 2**30:.1f} GiB",
        "fp64": "yes" if device.double_fp_config else "no",
        "fp16": "yes" if "cl_khr_fp16" in device.extensions else "no",
    }
    return Found(device, device.name.strip(), facts)


def ordered(found: Iterable[Found]) -> list[Found]:
    """GPUs first, then processors; of each kind the better driver first, which is what one device by two drivers takes.

    Better is the newer version of OpenCL, then the newer driver. Devices that are alike in both keep their order.
    """

    def rank(one: Found) -> tuple[Any, ...]:
        kind = next((n for n, kind in enumerate(KINDS) if one.device.type & kind), len(KINDS))
        return kind, [-n for n in version(one.facts["version"])], *newest_first(one.facts["driver"])

    return sorted(found, key=rank)


def version(text: str) -> list[int]:
    """The numbers after the word OpenCL: ``OpenCL 3.0 PoCL …`` is of version 3.0."""
    match = re.match(r"OpenCL (\d+)\.(\d+)", text)
    return [int(n) for n in match.groups()] if match else [0, 0]


def newest_first(driver: str) -> tuple[list[int], bool]:
    """A key by which newer drivers come first: all numbers of a version count, candidates are older."""
    release, _, candidate = driver.lower().partition("rc")
    return [-int(n) for n in re.findall(r"\d+", release)], bool(candidate)


def chosen(found: Sequence[Found], patterns: str) -> list[Found]:
    """The devices that patterns choose, in the order of the patterns; all of them without any.

    A pattern is a part of what ``candelabra devices`` prints of a device, in any case, ``*`` for anything between.
    ``DeviceUnavailable`` where none of them fits.
    """
    wanted = [pattern.strip().lower() for pattern in patterns.split(",") if pattern.strip()]
    if not wanted:
        return list(found)
    kept: list[Found] = []
    for pattern in wanted:
        kept += [one for one in found if one not in kept and fnmatchcase(one.line.lower(), f"*{pattern}*")]
    if not kept:
        offered = "".join(f"\n  {one.line}" for one in found)
        raise DeviceUnavailable(f"no OpenCL device fits {VARIABLE}={patterns!r}. There are:{offered}")
    return kept
