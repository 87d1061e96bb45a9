"""Signal processing: :mod:`candelabra.signal.windows`."""

from candelabra.signal import windows as windows
