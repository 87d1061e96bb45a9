"""Write the package of a new backend as a starting point for a vendor: ``candelabra new-backend acme``."""

from candelabra_conformance.scaffold.write import InvalidName, write_backend

__all__ = ["InvalidName", "write_backend"]
