"""Linear algebra: norms, factorizations, solvers, eigenvalues, products of matrices.

The names are computed from the records and fronts of this package's modules.
"""

from candelabra._namespace.publishing import members
from candelabra.errors import LinAlgError as LinAlgError

__getattr__, __dir__ = members("linalg")
