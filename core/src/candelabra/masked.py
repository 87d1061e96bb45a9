"""Reductions and normalisations of the elements that a mask selects.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("masked")
