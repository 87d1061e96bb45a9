"""Pipelines: the layers of a model on several ranks, and schedules of microbatches.

As ``torch.distributed.pipelining``. A program gives each rank its own module. Splitting one model by tracing is not
supported.
"""

from __future__ import annotations

from candelabra.distributed.pipelining._schedules import Schedule1F1B as Schedule1F1B
from candelabra.distributed.pipelining._schedules import ScheduleGPipe as ScheduleGPipe
from candelabra.distributed.pipelining._stage import PipelineStage as PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]


def __dir__() -> list[str]:
    return sorted(__all__)
