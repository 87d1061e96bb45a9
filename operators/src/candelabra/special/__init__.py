"""Special functions: the names of ``scipy.special`` that PyTorch has.

The names are computed from the records and fronts of this package's modules.
"""

from candelabra.namespace import members

__getattr__, __dir__ = members("special")
