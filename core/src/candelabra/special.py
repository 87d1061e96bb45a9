"""Special functions: the names of ``scipy.special`` that PyTorch has.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("special")
