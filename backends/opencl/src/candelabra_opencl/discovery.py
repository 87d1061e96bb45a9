"""Which OpenCL devices there are, and in which order they are numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyopencl as cl
from candelabra.errors import DeviceUnavailable


class Found(NamedTuple):
    """A device, and what ``candelabra devices`` says of it."""

    device: Any
    name: str
    facts: Mapping[str, str]


def find() -> list[Found]:
    """Every device of every platform. ``DeviceUnavailable`` where there is none."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:
        raise DeviceUnavailable(f"no OpenCL platform was found ({error}); pip install 'candelabra[pocl]'") from error
    return [_found(platform, device) for platform in platforms for device in platform.get_devices()]


def _found(platform: Any, device: Any) -> Found:
    facts = {
        "platform": platform.name,
        "driver": device.driver_version,
        "version": device.version,
        "memory": f"{device.global_mem_size / 2**30:.1f} GiB",
        "fp64": "yes" if device.double_fp_config else "no",
        "fp16": "yes" if "cl_khr_fp16" in device.extensions else "no",
    }
    return Found(device, device.name.strip(), facts)
