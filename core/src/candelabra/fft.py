"""Discrete Fourier transforms over one, two and n dims, and their helpers.

The names are computed from the records and fronts of this package's modules.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("fft")
