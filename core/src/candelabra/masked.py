"""Reductions and normalisations that leave out what a mask says.

The names are computed from the records and fronts of this package's modules.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("masked")
