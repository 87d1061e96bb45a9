"""Signal processing: :mod:`candelabra.signal.windows`."""

from candelabra.signal import windows as windows

__all__ = ["windows"]


def __dir__() -> list[str]:
    return sorted(__all__)
