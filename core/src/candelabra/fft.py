"""Discrete Fourier transforms over one, two and n dims, and their helpers.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("fft")
