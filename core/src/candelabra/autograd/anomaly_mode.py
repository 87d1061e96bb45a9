"""The detection of anomalies, under the name ``torch.autograd.anomaly_mode``."""

from __future__ import annotations

from candelabra._autograd.anomaly import detect_anomaly as detect_anomaly
from candelabra._autograd.anomaly import set_detect_anomaly as set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def __dir__() -> list[str]:
    return sorted(__all__)
