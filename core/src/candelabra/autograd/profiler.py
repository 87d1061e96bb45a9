"""The profiler under its older name ``torch.autograd.profiler``."""

from __future__ import annotations

from candelabra.profiler import EventList as EventList
from candelabra.profiler import FunctionEvent as FunctionEvent
from candelabra.profiler import ProfilerActivity as ProfilerActivity
from candelabra.profiler import profile as profile
from candelabra.profiler import record_function as record_function

__all__ = ["EventList", "FunctionEvent", "ProfilerActivity", "profile", "record_function"]


def __dir__() -> list[str]:
    return sorted(__all__)
