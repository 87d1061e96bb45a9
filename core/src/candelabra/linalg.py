"""Linear algebra: norms, factorizations, solvers, eigenvalues, products of matrices.

The names come from the registry of public names; ``__all__`` is computed from it.
"""

from candelabra._namespace.publishing import members
from candelabra.errors import LinAlgError as LinAlgError

_also = ("LinAlgError",)
__getattr__, __dir__ = members("linalg")
