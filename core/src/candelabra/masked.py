"""Reductions and normalisations that leave out what a mask says.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra._namespace.publishing import members

__getattr__, __dir__ = members("masked")
