"""Special functions: the names of ``scipy.special`` that PyTorch has.

The names are computed from the records and fronts of this package's modules.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("special")
